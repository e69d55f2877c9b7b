package sendfile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
	"github.com/actionpulse/actionpulse/internal/sendfile"
	"github.com/actionpulse/actionpulse/retry"
)

// file is an input with a name and a text.
func file(name, text string) sendfile.Source {
	return sendfile.Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

// usersCSV is a file of n lines, each with a user of its own.
func usersCSV(n int) string {
	var b strings.Builder
	b.WriteString("event,user_id,page\n")
	for i := range n {
		fmt.Fprintf(&b, "view,user-%d,\n", i)
	}
	return b.String()
}

func TestSendTwice(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	text := usersCSV(1234)
	got, err := (&run{url: server.URL}).send(t, file("a.csv", text))
	if err != nil || got.Sent != 1234 || got.Accepted != 1234 || got.Duplicates != 0 || got.Requests != 3 || got.Retries != 0 {
		t.Fatalf("first time: %+v, %v", got, err)
	}
	// Again, under another name, gzipped and in other batches; and once more
	// as part of two files.
	got, err = (&run{url: server.URL, batchSize: 7}).send(t, file("b", zip(t, text)))
	if err != nil || got.Accepted != 1234 || got.Duplicates != 1234 {
		t.Errorf("again: %+v, %v", got, err)
	}
	got, err = (&run{url: server.URL}).send(t, file("c", text), file("d", text))
	if err != nil || got.Duplicates != 2468 {
		t.Errorf("twice in one run: %+v, %v", got, err)
	}
	expectUsers(t, server.users(), 1234)
}

// TestSendThroughFaults: whatever the network does, at the end each line is
// stored once and in order, and the counts are those of the lines.
func TestSendThroughFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			server := newTrackServer(t)
			p, err := faultproxy.Start(faultproxy.Options{
				Seed: seed, Upstream: strings.TrimPrefix(server.URL, "http://"),
				Faults: faultproxy.Faults{
					DropRequest: 0.1, DropAnswer: 0.15, Truncate: 0.1, Duplicate: 0.15, TooMany: 0.05,
					ServerError: 0.1, Unavailable: 0.1, Delay: 0.1, MaxDelay: time.Millisecond, RetryAfter: 3 * time.Second,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			text := usersCSV(1000) + "view,,\n,user-x,\n"
			r := run{url: p.URL(), batchSize: 10, attempts: 40}
			got, err := r.send(t, file("a.csv", text))
			if err != nil || got.Read != 1002 || got.Sent != 1002 || got.Accepted != 1000 || got.Rejected != 2 || got.Retries == 0 ||
				got.Duplicates == 0 || got.Retries != len(r.waits) || got.Requests != 101+got.Retries {
				t.Errorf("%+v, %v", got, err)
			}
			expectUsers(t, server.users(), 1000)
			if counts := p.Counts(); int64(got.Requests) != counts.Requests || counts.TooMany == 0 || counts.DropAnswer == 0 {
				t.Errorf("%d requests, the proxy saw %+v", got.Requests, counts)
			}
			for _, wait := range r.waits {
				if wait != 3*time.Second && (wait < 750*time.Millisecond || wait > 37500*time.Millisecond) {
					t.Errorf("waited %v", wait)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSendInterruptedAndResumed: the request under way is finished and
// counted, nothing is sent after it, and the same command adds the rest.
func TestSendInterruptedAndResumed(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	text := usersCSV(1000)
	ctx, cancel := context.WithCancel(t.Context())
	server.before = func(_ http.ResponseWriter, request int) bool {
		if request == 3 {
			cancel()
		}
		return false
	}
	r := run{url: server.URL, batchSize: 100, ctx: ctx}
	got, err := r.send(t, file("a.csv", text))
	if !errors.Is(err, sendfile.ErrInterrupted) || got.Sent != 300 || got.Requests != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	expectUsers(t, server.users(), 300)
	got, err = (&run{url: server.URL, batchSize: 100}).send(t, file("a.csv", text))
	if err != nil || got.Sent != 1000 || got.Duplicates != 300 {
		t.Errorf("resumed: %+v, %v", got, err)
	}
	expectUsers(t, server.users(), 1000)
}

// TestSendInterruptedInAWait: no further attempt is made.
func TestSendInterruptedInAWait(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	server.before = func(w http.ResponseWriter, _ int) bool {
		cancel()
		refuse(w, api.CodeInternal, "broken")
		return true
	}
	got, err := (&run{url: server.URL, ctx: ctx}).send(t, file("a.csv", usersCSV(5)))
	if !errors.Is(err, sendfile.ErrInterrupted) || got.Sent != 0 || got.Requests != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSendGivesUp(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	server.before = func(w http.ResponseWriter, request int) bool {
		if request > 1 {
			refuse(w, api.CodeInternal, "broken")
		}
		return request > 1
	}
	got, err := (&run{url: server.URL, batchSize: 2, attempts: 4}).send(t, file("a.csv", usersCSV(6)))
	if e, ok := errors.AsType[*retry.Error](err); !ok || e.Attempts != 4 || got.Sent != 2 || got.Requests != 5 || got.Retries != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSendRefused: an answer that a repeat cannot change ends the run at once,
// with the server's words and without the key.
func TestSendRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(w http.ResponseWriter, _ int) bool
		key    string
		want   string
	}{
		"unknown key": {nil, "aps_wrong", "401 unauthenticated: unknown key Bearer [key] (request r-1)"},
		"forbidden": {
			func(w http.ResponseWriter, _ int) bool { refuse(w, api.CodeForbidden, "no\x1b[31m"); return true },
			"", "403 forbidden: no [31m",
		},
		"redirect": {func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Location", "https://elsewhere.example/"+key)
			w.WriteHeader(http.StatusPermanentRedirect)
			return true
		}, "", "308 Permanent Redirect to https://elsewhere.example/[key]"},
		"not ours": {func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusOK)
			return true
		}, "", "the answer is not one of ActionPulse (200 OK, text/html)"},
	} {
		server := newTrackServer(t)
		server.before = c.before
		got, err := (&run{url: server.URL, key: c.key, batchSize: 1}).send(t, file("a.csv", usersCSV(3)))
		if !isRefused(err) || !strings.Contains(err.Error(), c.want) || got.Requests != 1 || got.Sent != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
