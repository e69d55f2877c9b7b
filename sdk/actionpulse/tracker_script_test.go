package actionpulse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

const (
	serverKey  = "aps_000000000000000000000000000000000000"
	browserKey = "apb_000000000000000000000000000000000000"
	legacyKey  = "an-imported-key"
)

// intake is a server without a network: it answers by a script, and then takes
// every event once.
type intake struct {
	mu       sync.Mutex
	requests []intakeRequest
	// script is what the next answers are; nil is a true one.
	script []reaction
	stored map[string]int
	// reject says why an event is rejected; empty: it is not.
	reject func(id string) string
}

// reaction is what the server does with a request. Without an answer and an
// error it takes it.
type reaction func(*intakeRequest) (*answered, error)

// answered is an answer that is on its way.
type answered struct {
	status int
	body   string
	header http.Header
}

type intakeRequest struct {
	at         time.Time
	path, key  string
	body       string
	historical bool
	events     []sentEvent
}

type sentEvent struct {
	EventID string `json:"event_id"`
	Event   string `json:"event"`
	TS      string `json:"ts"`
}

func newIntake(script ...reaction) *intake {
	return &intake{script: script, stored: map[string]int{}}
}

func (s *intake) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	got := intakeRequest{at: time.Now(), path: r.URL.Path, key: r.Header.Get("Authorization"), body: string(body)}
	var batch struct {
		Historical bool
		Events     []sentEvent
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		return nil, err
	}
	got.historical, got.events = batch.Historical, batch.Events
	s.mu.Lock()
	s.requests = append(s.requests, got)
	answer := truth
	if len(s.script) > 0 {
		answer, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if answer == nil {
		answer = truth
	}
	said, err := answer(&got)
	switch {
	case err != nil:
		return nil, err
	case said == nil:
		said = s.take(&got)
	}
	return said.response(), nil
}

// truth has the server take what was sent.
func truth(*intakeRequest) (*answered, error) { return nil, nil }

func (s *intake) take(r *intakeRequest) *answered {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.path != "/v1/track" {
		return reply(http.StatusAccepted, `{}`)
	}
	accepted, duplicates, rejected := 0, 0, []string{}
	for i, e := range r.events {
		if s.reject != nil && s.reject(e.EventID) != "" {
			rejected = append(rejected, fmt.Sprintf(`{"index":%d,"event_id":%q,"code":%q,"message":"no"}`, i, e.EventID, s.reject(e.EventID)))
			continue
		}
		accepted++
		if s.stored[e.EventID]++; s.stored[e.EventID] > 1 {
			duplicates++
		}
	}
	return reply(http.StatusAccepted, fmt.Sprintf(`{"accepted":%d,"duplicates":%d,"rejected":[%s]}`, accepted, duplicates, strings.Join(rejected, ",")))
}

func reply(status int, body string, headers ...string) *answered {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &answered{status, body, h}
}

func (a *answered) response() *http.Response {
	return &http.Response{
		StatusCode: a.status, Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), Header: a.header,
		Body: io.NopCloser(strings.NewReader(a.body)),
	}
}

// declines answers in the envelope.
func declines(status int, code string, headers ...string) reaction {
	return func(*intakeRequest) (*answered, error) {
		return reply(status, fmt.Sprintf(`{"error":{"code":%q,"message":"no","request_id":"r","details":{"retryable":false}}}`, code), headers...), nil
	}
}

// foreign answers as a proxy would.
func foreign(status int) reaction {
	return func(*intakeRequest) (*answered, error) {
		return reply(status, "<html>", "Content-Type", "text/html"), nil
	}
}

// loses has the server take the request, and the answer get lost.
func (s *intake) loses(r *intakeRequest) (*answered, error) {
	s.take(r)
	return nil, io.ErrUnexpectedEOF
}

// count returns how often an event was taken.
func (s *intake) count(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[id]
}

// sent returns the requests so far, or those to one path.
func (s *intake) sent(path ...string) []intakeRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []intakeRequest
	for _, r := range s.requests {
		if len(path) == 0 || r.path == path[0] {
			out = append(out, r)
		}
	}
	return out
}

// heard is what the callbacks and the log of a tracker said.
type heard struct {
	mu       sync.Mutex
	rejected []actionpulse.Rejected
	gaveUp   []actionpulse.GaveUp
	paused   []*actionpulse.PausedError
	log      strings.Builder
}

// options lets a tracker speak to the server, and be heard.
func (h *heard) options(s http.RoundTripper) actionpulse.TrackerOptions {
	return actionpulse.TrackerOptions{
		HTTPClient: &http.Client{Transport: s, Timeout: 30 * time.Second},
		Logger:     slog.New(slog.NewTextHandler(h, nil)),
		OnRejected: func(r actionpulse.Rejected) { h.note(func() { h.rejected = append(h.rejected, r) }) },
		OnGaveUp:   func(g actionpulse.GaveUp) { h.note(func() { h.gaveUp = append(h.gaveUp, g) }) },
		OnPaused:   func(p *actionpulse.PausedError) { h.note(func() { h.paused = append(h.paused, p) }) },
	}
}

func (h *heard) note(what func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what()
}

func (h *heard) gone() []actionpulse.GaveUp {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gaveUp
}

func (h *heard) refused() []actionpulse.Rejected {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rejected
}

func (h *heard) pauses() []*actionpulse.PausedError {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.paused
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(b)
}

// says demands that the log holds a text.
func (h *heard) says(t *testing.T, text string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !strings.Contains(h.log.String(), text) {
		t.Errorf("the log does not say %q: %s", text, h.log.String())
	}
}

// newTracker makes a tracker that a test ends itself.
func newTracker(t *testing.T, key string, o actionpulse.TrackerOptions) *actionpulse.Tracker {
	t.Helper()
	tracker, err := actionpulse.NewTracker("https://pulse.example", key, o)
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

// track tracks an event and returns its id.
func track(t *testing.T, tracker *actionpulse.Tracker, name string) string {
	t.Helper()
	id, err := tracker.Track(actionpulse.Event{Name: name, UserID: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// closeNow closes a tracker, and demands that nothing is left.
func closeNow(t *testing.T, tracker *actionpulse.Tracker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := tracker.Close(ctx); err != nil {
		t.Error(err)
	}
}

// names are those of the events of a request.
func (r intakeRequest) names() string {
	var names []string
	for _, e := range r.events {
		names = append(names, e.Event)
	}
	return strings.Join(names, " ")
}

// elapse lets time pass in a bubble of synctest.
func elapse(d time.Duration) { <-time.After(d) }
