package faultproxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// fates collects a log.
type fates struct {
	mu    sync.Mutex
	lines bytes.Buffer
	kinds []string
}

func (f *fates) add(e faultproxy.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	f.lines.Write(append(line, '\n'))
	f.kinds = append(f.kinds, fmt.Sprint(e.Request, e.Repeat, e.Fault, e.Coin, e.Second, e.BeforeMS, e.AfterMS))
}

var many = faultproxy.Faults{DropRequest: 0.1, DropAnswer: 0.1, Truncate: 0.1, Reset: 0.1, Duplicate: 0.1, TooMany: 0.1, ServerError: 0.1, Unavailable: 0.1}

// TestReplayOfLog: a log gives the same fates to the same requests, whatever the
// seed and the faults; to others, those of their path in order; and none after
// its end.
func TestReplayOfLog(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	first := &fates{}
	p := start(t, faultproxy.Options{Seed: 3, Faults: many, Upstream: address, OnFate: first.add})
	for i := range 30 {
		post(t, p, fmt.Sprint("body ", i%20))
	}
	if strings.Count(strings.Join(first.kinds, "\n"), "pass") == 30 {
		t.Fatal("nothing happened to any request")
	}
	replay, err := faultproxy.ReadReplay(bytes.NewReader(first.lines.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	again := &fates{}
	p = start(t, faultproxy.Options{Seed: 4, Upstream: address, Replay: replay, OnFate: again.add})
	for i := range 30 {
		post(t, p, fmt.Sprint("body ", i%20))
	}
	// An entry is written when a request has met its fate, in no fixed order.
	slices.Sort(first.kinds)
	slices.Sort(again.kinds)
	if a, b := strings.Join(first.kinds, "\n"), strings.Join(again.kinds, "\n"); a != b {
		t.Errorf("first\n%s\nagain\n%s", a, b)
	}
	if r := post(t, p, "one too many"); r.err != nil || r.status != 202 {
		t.Errorf("after the end of the log: %+v", r)
	}
}

func TestReplayOfOtherRequests(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	log := `{"method": "POST", "path": "/v1/track", "request": "ab", "fault": "429", "retry_after_ms": 3000}
{"method": "GET", "path": "/v1/track", "request": "ab", "fault": "500"}
{"method": "POST", "path": "/v1/track", "request": "ab", "fault": "pass"}
`
	replay, err := faultproxy.ReadReplay(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, faultproxy.Options{Upstream: address, Replay: replay})
	if r := post(t, p, "x"); r.status != 429 || r.header.Get("Retry-After") != "3" {
		t.Errorf("got %+v", r)
	}
	for range 2 {
		if r := post(t, p, "x"); r.status != 202 {
			t.Errorf("got %+v", r)
		}
	}
}

func TestReplayRefused(t *testing.T) {
	t.Parallel()
	for _, log := range []string{"", "nonsense", `{"fault": "earthquake"}`} {
		if _, err := faultproxy.ReadReplay(strings.NewReader(log)); err == nil {
			t.Errorf("took %q", log)
		}
	}
}
