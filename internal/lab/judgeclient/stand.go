package judgeclient

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// stand is the scripted server of one scenario. Its methods may be called at
// any time.
type stand struct {
	params   *Params
	scenario *Scenario
	started  time.Time
	server   *http.Server
	served   chan error

	mu       sync.Mutex
	run      int
	requests []*Request
	// taken counts the steps used: by fact for keyed work, else in all, of
	// the present run.
	taken map[string]int
	// carried counts the requests with items of the present run.
	carried  int
	accepted map[string]bool
	// failing is when an outage began, 0 before it.
	failing time.Duration
	// stuck and enough are signalled once each run.
	stuck, enough chan struct{}
}

// runKey is where a connection keeps the run in which it was opened, so that
// what a killed client has left in its sockets is not taken for the next one's.
type runKey struct{}

func newStand(p *Params, s *Scenario, listener net.Listener) *stand {
	out := &stand{params: p, scenario: s, started: time.Now(), served: make(chan error, 1), accepted: map[string]bool{}}
	out.server = &http.Server{
		Handler: http.HandlerFunc(out.serve), ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			out.mu.Lock()
			defer out.mu.Unlock()
			return context.WithValue(ctx, runKey{}, out.run)
		},
	}
	go func() { out.served <- out.server.Serve(listener) }()
	return out
}

func (s *stand) close() error {
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// begin starts the next run and returns its number.
func (s *stand) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run++
	s.taken, s.carried = map[string]int{}, 0
	s.stuck, s.enough = make(chan struct{}, 1), make(chan struct{}, 1)
	return s.run
}

// stage is the script of a run.
func (s *stand) stage(run int) *stage { return &s.scenario.stages[run-1] }

// serve notes a request and does with it what the script says.
func (s *stand) serve(w http.ResponseWriter, r *http.Request) {
	arrived := time.Since(s.started)
	body, err := readBody(r)
	request := describe(s.params, r, body)
	request.Arrived = arrived
	if err != nil {
		request.Problem = err.Error()
	}
	run, ok := r.Context().Value(runKey{}).(int)
	if !ok || run == 0 {
		run = 1
	}
	request.Run = run
	s.note(request)
	s.perform(w, r, request)
}

// note appends a request and picks its answer.
func (s *stand) note(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.N, r.open = len(s.requests)+1, true
	s.requests = append(s.requests, r)
	stage := s.stage(r.Run)
	switch {
	case r.Refresh:
		r.Answer = stage.refresh
	case len(r.Items) > 0:
		r.Answer = s.pick(stage, r)
	}
	if r.Answer.Stuck {
		signal(s.stuck)
	}
}

// pick takes the next step of the script; mu is held.
func (s *stand) pick(stage *stage, r *Request) Answer {
	if r.Run == s.run {
		if s.carried++; stage.enough > 0 && s.carried >= stage.enough {
			signal(s.enough)
		}
	}
	unit := ""
	if s.params.Profile == Keyed {
		unit = r.Items[0].Fact
	}
	if stage.outage > 0 {
		if s.failing == 0 {
			s.failing = r.Arrived
		}
		if r.Arrived-s.failing <= s.params.scaled(stage.outage) {
			return stage.steps[0]
		}
		return stage.then
	}
	n := s.taken[unit]
	if n >= len(stage.steps) {
		return stage.then
	}
	s.taken[unit]++
	return stage.steps[n]
}

// signal sends without waiting; one signal that waits is enough.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ended notes that a request was answered.
func (s *stand) ended(r *Request, due time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Ended, r.Due, r.open = time.Since(s.started), due, false
}

// record returns what was seen, with copies of requests that are still under
// way.
func (s *stand) record() *Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &Record{Scenario: s.scenario, Began: s.started}
	for _, r := range s.requests {
		seen := *r
		if seen.open {
			seen.Ended = time.Since(s.started)
		}
		out.Requests = append(out.Requests, &seen)
	}
	return out
}
