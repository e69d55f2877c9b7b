package sendfile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/sendfile"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/test/faultproxy"
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
				Faults: faultproxy.Faults{DropRequest: 0.1, DropAnswer: 0.15, Truncate: 0.1, Duplicate: 0.15, TooMany: 0.05,
					ServerError: 0.1, Unavailable: 0.1, Delay: 0.1, MaxDelay: time.Millisecond, RetryAfter: 3 * time.Second},
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
		"forbidden": {func(w http.ResponseWriter, _ int) bool { refuse(w, api.CodeForbidden, "no\x1b[31m"); return true },
			"", "403 forbidden: no [31m"},
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

// TestSendHalves: a request that is too large is halved, later ones are kept
// smaller, and an item too large alone is rejected.
func TestSendHalves(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	server.limit = 2000
	text := usersCSV(20) + "view,user-big," + strings.Repeat("x", 2000) + "\nview,user-20,\n"
	r := run{url: server.URL, batchSize: 20}
	got, err := r.send(t, file("a.csv", text))
	if err != nil || got.Sent != 22 || got.Accepted != 21 || got.Rejected != 1 || got.Retries != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(r.rejected) != 1 || r.rejected[0].Line != 22 || r.rejected[0].Code != api.RejectEventTooLarge {
		t.Errorf("rejected %+v", r.rejected)
	}
	expectUsers(t, server.users(), 21)
}

// TestSendKeepsToLimits: bodies stay under 1 MiB, items over 64 KiB are not
// sent, and neighbours do not suffer.
func TestSendKeepsToLimits(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	var text strings.Builder
	text.WriteString("event,user_id,page\n")
	for i := range 100 {
		fmt.Fprintf(&text, "view,user-%d,%s\nview,large,%s\n", i, strings.Repeat("y", 60_000), strings.Repeat("z", 70_000))
	}
	got, err := (&run{url: server.URL}).send(t, file("a.csv", text.String()))
	if err != nil || got.Sent != 100 || got.Rejected != 100 || got.Requests != 6 || len(got.Reasons) != 1 || got.Reasons[0].Count != 100 {
		t.Errorf("%+v, %v", got, err)
	}
	expectUsers(t, server.users(), 100)
}

func TestSendReportsRejections(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	text := "event_id,event,user_id\n,a,u\n50172,a,u\n,,u\n,a,\n,a,\n,a,\n,a,\n,a\n"
	r := run{url: server.URL, batchSize: 3}
	got, err := r.send(t, file("a.csv", text))
	if err != nil || got.Read != 8 || got.Sent != 7 || got.Accepted != 1 || got.Rejected != 7 {
		t.Fatalf("%+v, %v", got, err)
	}
	var lines []string
	for _, x := range r.rejected {
		lines = append(lines, fmt.Sprintf("%d %s", x.Line, x.Code))
	}
	want := []string{"3 invalid_event_id", "4 invalid_event", "9 invalid_event", "5 missing_identity", "6 missing_identity", "7 missing_identity", "8 missing_identity"}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("rejected %q, want %q", lines, want)
	}
	for _, reason := range got.Reasons {
		if reason.Code == api.RejectMissingIdentity && (reason.Count != 4 || len(reason.Examples) != 3) {
			t.Errorf("%+v", reason)
		}
	}
	var b strings.Builder
	if err := got.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"sent 7, accepted 1, duplicates 0, rejected 7\n", "  missing_identity: 4\n    a.csv:5: so it is\n"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in the summary:\n%s", part, b.String())
		}
	}
}

// TestSendInputBreaks: what came before the break is sent.
func TestSendInputBreaks(t *testing.T) {
	t.Parallel()
	server := newTrackServer(t)
	got, err := (&run{url: server.URL, batchSize: 3}).send(t, file("a.csv", usersCSV(4)+"view,\"user,\n"), file("b.csv", usersCSV(9)))
	input, ok := errors.AsType[*sendfile.InputError](err)
	if !ok || input.Line != 6 || got.Sent != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	expectUsers(t, server.users(), 4)
}

func TestSendEnvelope(t *testing.T) {
	t.Parallel()
	for historical, want := range map[bool]string{false: `{"events":[{"event_id":`, true: `{"historical":true,"events":[{"event_id":`} {
		server := newTrackServer(t)
		if _, err := (&run{url: server.URL, historical: historical}).send(t, file("a.csv", usersCSV(2))); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(server.bodies[0], want) || strings.Contains(server.bodies[0], "sent_at") {
			t.Errorf("body %s", server.bodies[0])
		}
	}
}

// answering is a transport that accepts everything and notes when.
type answering struct {
	start time.Time
	at    []time.Duration
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.at = append(a.at, time.Since(a.start))
	n := strings.Count(string(body), `"event_id"`)
	return &http.Response{
		StatusCode: http.StatusAccepted, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"accepted":%d,"duplicates":0,"rejected":[]}`, n))),
	}, nil
}

// TestSendDoesNotHoldLinesBack: lines that trickle in are sent a second after
// the first of them, though the batch is not full; and a run whose input
// blocks can be interrupted.
func TestSendDoesNotHoldLinesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		a := &answering{start: time.Now()}
		s := sendfile.NewSender(sendfile.SenderParams{
			URL: "http://server/v1/track", Key: key, HTTP: &http.Client{Transport: a}, BatchSize: 500, Now: time.Now,
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- s.Run(ctx, sendfile.Feed(ctx, []sendfile.Source{{Name: "pipe", Open: func() (io.ReadCloser, error) { return in, nil }}}, sendfile.Options{}))
		}()
		for _, line := range []string{`{"event":"a"}`, `{"event":"b"}`} {
			if _, err := io.WriteString(out, line+"\n"); err != nil {
				t.Fatal(err)
			}
			<-time.After(600 * time.Millisecond)
		}
		synctest.Wait()
		if got := s.Summary(); got.Sent != 2 || !slices.Equal(a.at, []time.Duration{time.Second}) {
			t.Errorf("%+v, requests at %v", got, a.at)
		}
		cancel()
		if err := <-ended; !errors.Is(err, sendfile.ErrInterrupted) {
			t.Errorf("ended with %v", err)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
}
