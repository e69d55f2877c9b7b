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
)

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
	for i := range 40 {
		fmt.Fprintf(&text, "view,user-%d,%s\nview,large,%s\n", i, strings.Repeat("y", 60_000), strings.Repeat("z", 70_000))
	}
	got, err := (&run{url: server.URL}).send(t, file("a.csv", text.String()))
	if err != nil || got.Sent != 40 || got.Rejected != 40 || len(got.Reasons) != 1 || got.Reasons[0].Count != 40 {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Requests < 3 || len(server.bodies) != got.Requests {
		t.Errorf("%d requests, of which %d were not too large", got.Requests, len(server.bodies))
	}
	expectUsers(t, server.users(), 40)
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
