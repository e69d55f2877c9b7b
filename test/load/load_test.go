package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestRequestsAreNewEachTime reads a prepared request as a server would.
func TestRequestsAreNewEachTime(t *testing.T) {
	t.Parallel()
	r := newRequest(requestParams{Host: "127.0.0.1", Key: "secret", Events: 100, Seed: 1, Now: time.Now()})
	seen := map[uuid.UUID]bool{}
	for range 3 {
		r.renew()
		var body struct {
			Events []struct {
				EventID uuid.UUID      `json:"event_id"`
				Event   string         `json:"event"`
				UserID  string         `json:"user_id"`
				TS      time.Time      `json:"ts"`
				More    map[string]any `json:"properties"`
			} `json:"events"`
		}
		if err := json.Unmarshal(r.body(), &body); err != nil {
			t.Fatal(err)
		}
		if len(body.Events) != r.events() {
			t.Fatalf("%d events, want %d", len(body.Events), r.events())
		}
		for _, e := range body.Events {
			age := time.Since(e.TS)
			if seen[e.EventID] || e.EventID.Version() != 4 || e.Event == "" || len(e.UserID) != len("user_")+userDigits || age < 0 || age > spread+time.Minute {
				t.Fatalf("event %+v is of no use", e)
			}
			seen[e.EventID] = true
		}
	}
}

// TestConnectionReadsAnswers sends over one connection, refusals included.
func TestConnectionReadsAnswers(t *testing.T) {
	t.Parallel()
	count := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Events []any }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if count++; count == 3 {
			http.Error(w, "too many", http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		if _, err := w.Write(verdict(len(body.Events), 0)); err != nil {
			t.Error(err)
		}
	}))
	defer web.Close()
	address := strings.TrimPrefix(web.URL, "http://")
	c, err := dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	r := newRequest(requestParams{Host: address, Key: "secret", Events: 7, Seed: 1, Now: time.Now()})
	for range 2 {
		if answer, err := c.do(r.bytes); err != nil || !bytes.Equal(answer, verdict(7, 0)) {
			t.Fatalf("answer %q, %v", answer, err)
		}
	}
	if _, err := c.do(r.bytes); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Fatalf("a refusal came out as %v", err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	if got := (sample{3, 1, 2, 10}).median(); got != 2.5 {
		t.Errorf("median %v, want 2.5", got)
	}
	if got := percentile([]int{5, 1, 4, 2, 3}, 0.99); got != 5 {
		t.Errorf("99th percentile %v, want 5", got)
	}
	if got := (sample{151_000, 149_000, 150_000}).format("events/s"); got != "150 k events/s (149 k–151 k)" {
		t.Errorf("sample %q", got)
	}
}
