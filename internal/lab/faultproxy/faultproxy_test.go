package faultproxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// upstream answers with how often it was asked, and counts.
func upstream(t *testing.T) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		w.Header().Set("X-Asked", "yes")
		w.WriteHeader(http.StatusAccepted)
		if _, err := fmt.Fprintf(w, "%d %s %s", asked.Add(1), r.Header.Get("X-Sent"), body); err != nil {
			t.Logf("the client left: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), asked
}

func start(t *testing.T, o faultproxy.Options) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

type result struct {
	status int
	header http.Header
	body   string
	err    error
}

func post(t *testing.T, p *faultproxy.Proxy, body string) result {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL()+"/v1/track", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Sent", "mine")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return result{err: err}
	}
	text, err := io.ReadAll(response.Body)
	if e := response.Body.Close(); e != nil {
		t.Fatal(e)
	}
	return result{response.StatusCode, response.Header, string(text), err}
}

func TestEachFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		faults faultproxy.Faults
		check  func(result) bool
		// asked is how often the server was; -1 if that is up to the coin.
		asked  int64
		counts func(faultproxy.Counts) int64
	}{
		{
			"none",
			faultproxy.Faults{},
			func(r result) bool {
				return r.err == nil && r.status == 202 && r.body == "1 mine x" && r.header.Get("X-Asked") == "yes"
			},
			1, func(c faultproxy.Counts) int64 { return c.Passed },
		},
		{
			"request dropped",
			faultproxy.Faults{DropRequest: 1},
			func(r result) bool { return errors.Is(r.err, syscall.ECONNRESET) || errors.Is(r.err, io.EOF) },
			0, func(c faultproxy.Counts) int64 { return c.DropRequest },
		},
		{
			"answer dropped",
			faultproxy.Faults{DropAnswer: 1},
			func(r result) bool { return errors.Is(r.err, syscall.ECONNRESET) || errors.Is(r.err, io.EOF) },
			1, func(c faultproxy.Counts) int64 { return c.DropAnswer },
		},
		{
			"truncated",
			faultproxy.Faults{Truncate: 1},
			func(r result) bool {
				return r.status == 202 && r.body == "1 mi" && errors.Is(r.err, io.ErrUnexpectedEOF)
			},
			1, func(c faultproxy.Counts) int64 { return c.Truncate },
		},
		{
			"doubled",
			faultproxy.Faults{Duplicate: 1},
			func(r result) bool { return r.status == 202 && strings.HasSuffix(r.body, " mine x") },
			2, func(c faultproxy.Counts) int64 { return c.Duplicate },
		},
		{
			"429",
			faultproxy.Faults{TooMany: 1, RetryAfter: 2 * time.Second},
			func(r result) bool { return r.status == 429 && r.header.Get("Retry-After") == "2" },
			0, func(c faultproxy.Counts) int64 { return c.TooMany },
		},
		{
			"500",
			faultproxy.Faults{ServerError: 1},
			func(r result) bool { return r.status == 500 && r.header.Get("X-Asked") == "" },
			-1, func(c faultproxy.Counts) int64 { return c.ServerError },
		},
		{
			"503",
			faultproxy.Faults{Unavailable: 1},
			func(r result) bool { return r.status == 503 && r.header.Get("X-Asked") == "" },
			-1, func(c faultproxy.Counts) int64 { return c.Unavailable },
		},
		{
			"delayed",
			faultproxy.Faults{Delay: 1, MaxDelay: time.Millisecond},
			func(r result) bool { return r.status == 202 && r.body == "1 mine x" },
			1, func(c faultproxy.Counts) int64 { return c.Delay },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address, asked := upstream(t)
			var seen atomic.Int64
			p := start(t, faultproxy.Options{Seed: 1, Faults: c.faults, Upstream: address, OnDeliver: func(r *http.Request) {
				if r.Header.Get("X-Sent") == "mine" {
					seen.Add(1)
				}
			}})
			if r := post(t, p, "x"); !c.check(r) {
				t.Errorf("got %+v", r)
			}
			counts := p.Counts()
			if c.asked >= 0 && (asked.Load() != c.asked || counts.Deliveries != c.asked) {
				t.Errorf("the server was asked %d times, %+v", asked.Load(), counts)
			}
			if counts.Requests != 1 || c.counts(counts) != 1 || seen.Load() != counts.Deliveries {
				t.Errorf("counts %+v, %d deliveries seen", counts, seen.Load())
			}
		})
	}
}

// TestReplay: one seed brings one course of events, another seed another; and
// a repeat of the same request has a fate of its own.
func TestReplay(t *testing.T) {
	t.Parallel()
	faults := faultproxy.Faults{TooMany: 0.3, ServerError: 0.2, Unavailable: 0.2}
	address, _ := upstream(t)
	run := func(seed uint64) string {
		var seen strings.Builder
		p := start(t, faultproxy.Options{Seed: seed, Faults: faults, Upstream: address})
		for i := range 20 {
			for range 3 {
				fmt.Fprint(&seen, post(t, p, fmt.Sprint("request ", i)).status, " ")
			}
		}
		return seen.String()
	}
	first := run(7)
	if again := run(7); again != first {
		t.Errorf("seed 7 brought\n%s\nand then\n%s", first, again)
	}
	if other := run(8); other == first {
		t.Errorf("seeds 7 and 8 brought the same: %s", first)
	}
	for _, status := range []string{"202", "429", "500", "503"} {
		if !strings.Contains(first, status) {
			t.Errorf("no %s in %s", status, first)
		}
	}
}

func TestSetUpstream(t *testing.T) {
	t.Parallel()
	oldAddress, _ := upstream(t)
	newAddress, asked := upstream(t)
	p := start(t, faultproxy.Options{Upstream: oldAddress})
	if r := post(t, p, "a"); r.err != nil {
		t.Fatal(r.err)
	}
	p.SetUpstream("127.0.0.1:1") // nobody listens there
	if r := post(t, p, "b"); r.err == nil {
		t.Errorf("an absent server answered %+v", r)
	}
	p.SetUpstream(newAddress)
	if r := post(t, p, "c"); r.body != "1 mine c" {
		t.Errorf("got %+v", r)
	}
	if c := p.Counts(); c.Unreachable != 1 || c.Passed != 2 || asked.Load() != 1 {
		t.Errorf("%+v", c)
	}
}

func TestRefusesImpossibleFaults(t *testing.T) {
	t.Parallel()
	impossible := []faultproxy.Faults{{DropRequest: 0.6, DropAnswer: 0.6}, {Truncate: -1}, {Delay: 2}}
	p := start(t, faultproxy.Options{})
	for _, f := range impossible {
		if _, err := faultproxy.Start(faultproxy.Options{Faults: f}); err == nil {
			t.Errorf("started with %+v", f)
		}
		if err := p.SetFaults(f); err == nil {
			t.Errorf("took %+v", f)
		}
	}
	if err := p.SetFaults(faultproxy.Faults{DropRequest: 0.5, DropAnswer: 0.5}); err != nil {
		t.Error(err)
	}
}
