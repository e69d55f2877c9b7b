package judgeclient

import (
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// A slow answer takes slowness, and scaledSlowness in the client's unit: longer
// than the jitter of its first delays, so that what is sent in parallel
// overlaps.
const (
	slowness       = 80 * time.Millisecond
	scaledSlowness = 500 * time.Millisecond
)

// perform does with a request what its answer says.
func (s *stand) perform(w http.ResponseWriter, r *http.Request, request *Request) {
	a := request.Answer
	if a.Slow && !faultproxy.Pause(r.Context(), slowness+s.params.scaled(scaledSlowness)) {
		s.ended(request, 0)
		return
	}
	switch {
	case a.Stuck:
		<-r.Context().Done()
		s.ended(request, 0)
	case a.Lost:
		s.remember(request, a)
		s.ended(request, 0)
		faultproxy.Reset(w)
	case a.Cut:
		s.cutShort(w, request)
	case a.success():
		status, body := s.successOf(request, a)
		if a.Replayed {
			w.Header().Set("Idempotency-Replayed", "true")
		}
		s.write(w, request, status, body)
	case a.Foreign:
		w.Header().Set("Content-Type", "text/html")
		s.ended(request, 0)
		w.WriteHeader(a.Status)
		say(w, []byte("<html><body>a proxy of the lab has failed</body></html>\n"))
	default:
		s.refuse(w, request)
	}
}

// write sends an answer in JSON.
func (s *stand) write(w http.ResponseWriter, request *Request, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "lab-"+strconv.Itoa(request.N))
	s.ended(request, s.due(w, request.Answer))
	w.WriteHeader(status)
	say(w, body)
}

// due sets Retry-After and returns when the wait will be over. A date is the
// first whole second at or after the wait.
func (s *stand) due(w http.ResponseWriter, a Answer) time.Duration {
	if a.RetryAfter <= 0 {
		return 0
	}
	wait := max(a.RetryAfter, s.params.scaled(a.ScaledWait)+time.Second-1).Truncate(time.Second)
	at := time.Now().Add(wait)
	if a.AsDate {
		at = at.Truncate(time.Second)
		w.Header().Set("Retry-After", at.UTC().Format(http.TimeFormat))
	} else {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
	}
	return at.Sub(s.started)
}

// refuse sends an error: in our envelope, or as the API at hand has it.
func (s *stand) refuse(w http.ResponseWriter, request *Request) {
	a := request.Answer
	if !s.params.API.Envelope {
		s.write(w, request, a.Status, encode(map[string]any{"error": "the lab refuses this on purpose", "code": a.Code}))
		return
	}
	w.Header().Set("X-Should-Retry", strconv.FormatBool(a.Retryable && !s.unkeyed(request)))
	body := api.Error{Error: api.ErrorBody{
		Code: a.Code, Message: "the lab refuses this on purpose", RequestID: "lab-" + strconv.Itoa(request.N),
		Details: api.ErrorDetails{Retryable: a.Retryable, Applied: a.Applied},
	}}
	s.write(w, request, a.Status, encode(body))
}

// unkeyed reports whether a repeat of the request could do the work twice, and
// whether it was done is not known: then the header says not to repeat it.
func (s *stand) unkeyed(r *Request) bool {
	return s.params.Profile == Mutation && (r.Answer.Status == http.StatusInternalServerError || r.Answer.Status == http.StatusServiceUnavailable)
}

// cutShort sends the head of a success and half its body.
func (s *stand) cutShort(w http.ResponseWriter, request *Request) {
	status, body := s.successOf(request, request.Answer)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	s.ended(request, 0)
	w.WriteHeader(status)
	say(w, body[:len(body)/2])
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
	panic(http.ErrAbortHandler)
}

// say writes to a client that may have left.
func say(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil { //nolint:gosec // what is written is JSON, never a page
		panic(http.ErrAbortHandler)
	}
}
