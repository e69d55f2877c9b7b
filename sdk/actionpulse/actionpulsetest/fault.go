package actionpulsetest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Fault is what happens to a request instead of, or beside, what should. The
// methods change it and return it, so that a script reads as a sentence:
//
//	server.Script(actionpulsetest.Answer(503, api.CodeUnavailable, nil).On("POST /v1/track").Times(2))
type Fault struct {
	what  fate
	on    string
	times int
	// status, code and details are the answer's; an answer without a code is not
	// in the envelope of errors.
	status  int
	code    api.Code
	details map[string]any
	wait    time.Duration
	delay   time.Duration
	do      func()
}

// fate is what becomes of a request.
type fate int

const (
	delayed fate = iota
	refused
	lost
	answered
)

// LoseAnswer does what the request asks for, and cuts the connection before the
// answer: the client cannot know whether it was done.
func LoseAnswer() *Fault { return &Fault{what: lost, times: 1} }

// RefuseConnection cuts the connection before anything is done. The client sees
// what it sees after [LoseAnswer].
func RefuseConnection() *Fault { return &Fault{what: refused, times: 1} }

// Answer refuses the request with a status and a code, before anything is done.
// details are added to what the code implies; they win. Without a code the answer
// is a text that is not in the envelope of errors, as a proxy's.
func Answer(status int, code api.Code, details map[string]any) *Fault {
	return &Fault{what: answered, times: 1, status: status, code: code, details: details}
}

// Delay does what the request asks for once d has passed.
func Delay(d time.Duration) *Fault { return (&Fault{times: 1}).Delay(d) }

// On has the fault happen to requests of a route only: its method and its path as
// the API document writes it, such as "POST /v1/track" or
// "GET /v1/customers/{external_user_id}".
func (f *Fault) On(route string) *Fault {
	f.on = route
	return f
}

// Times has the fault happen to the next n requests instead of one.
func (f *Fault) Times(n int) *Fault {
	f.times = n
	return f
}

// RetryAfter adds the header to an answer, in whole seconds, rounded up.
func (f *Fault) RetryAfter(d time.Duration) *Fault {
	f.wait = d
	return f
}

// Delay has d pass first, by the machine's clock. A client that leaves meanwhile
// ends the delay, and not the work: it is done, and nobody hears of it.
func (f *Fault) Delay(d time.Duration) *Fault {
	f.delay = d
	return f
}

// Then calls do when a request meets the fault, before anything else, such as to
// cancel the client's context at that moment.
func (f *Fault) Then(do func()) *Fault {
	f.do = do
	return f
}

// Script has faults happen to requests to come. Each request meets the first one
// that is for its route, and each fault happens as often as it says; so faults of
// one route happen in their order. A fault that is left when the test ends fails
// it: the test has not shown what it says. A route that the fake does not have
// ends the test.
func (s *Server) Script(faults ...*Fault) {
	s.t.Helper()
	all := routes()
	for _, f := range faults {
		if f.on != "" && !slices.ContainsFunc(all, func(r route) bool { return r.name() == f.on }) {
			s.t.Fatalf("actionpulsetest: there is no route %q", f.on)
		}
		if f.what == answered && (f.status < http.StatusOK || f.status > lastStatus) {
			s.t.Fatalf("actionpulsetest: %d is no status of an answer", f.status)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		own := *f
		s.faults = append(s.faults, &own)
	}
}

// lastStatus is the highest status of an answer.
const lastStatus = 599

// checkScript fails the test if a fault has not happened.
func (s *Server) checkScript() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	for _, f := range s.faults {
		if f.on == "" {
			f.on = "any route"
		}
		left = append(left, f.on)
	}
	if len(left) > 0 {
		s.t.Errorf("actionpulsetest: no request has met the faults for %s", strings.Join(left, ", "))
	}
}

// nextFault returns what is to happen to a request, nil if nothing is.
func (s *Server) nextFault(x *exchange) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f *Fault) bool { return f.on == "" || x.route != nil && f.on == x.route.name() })
	if i < 0 {
		return nil
	}
	f := s.faults[i]
	if f.times--; f.times <= 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
	}
	return f
}

// meet has the request meet its fault, and otherwise lets work answer it.
func (s *Server) meet(x *exchange, work func() (reply, error)) (reply, error) {
	f := s.nextFault(x)
	if f == nil {
		return work()
	}
	if f.do != nil {
		f.do()
	}
	if f.delay > 0 {
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.r.Context().Done():
		case <-s.over:
		}
	}
	switch f.what {
	case refused:
		return reply{cut: true}, nil
	case lost:
		_, _ = work() // it is done, and nobody hears of it
		return reply{cut: true}, nil
	case answered:
		return f.answer(x)
	case delayed:
	}
	return work()
}

// answer is the scripted answer.
func (f *Fault) answer(x *exchange) (reply, error) {
	if f.code != "" {
		return reply{}, &refusal{code: f.code, status: f.status, message: "this answer was scripted", details: f.details, wait: f.wait}
	}
	if f.wait > 0 {
		x.retryAfter(f.wait)
	}
	return reply{status: f.status, body: []byte(http.StatusText(f.status)), foreign: true}, nil
}

// cut ends the connection in the midst of the answer. Some bytes are said first:
// a connection that ends without any is one on which Go's HTTP client repeats a
// request by itself, and the test would not see what the client under test does.
func cut(w http.ResponseWriter) {
	connection, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
	}
	_, _ = buffer.WriteString("HTTP/1.1 ")
	_ = buffer.Flush()
	_ = connection.Close()
}
