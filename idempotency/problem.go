package idempotency

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// More problems, which the middleware alone can have.
const (
	// TooLarge: the body is larger than MaxBody.
	TooLarge Problem = iota + 101
	// Unreadable: the body did not arrive whole.
	Unreadable
	// NotClaimed: the store failed before any work was done.
	NotClaimed
	// NotRecorded: the work was done or not; the store could not say which.
	NotRecorded
	// Failed: what the middleware needs of the service failed.
	Failed
)

// plain holds the refusals that no policy changes.
var plain = map[Problem]Refusal{
	TooLarge:    {http.StatusRequestEntityTooLarge, "body_too_large", "the body is too large"},
	Unreadable:  {http.StatusBadRequest, "body_unreadable", "the body did not arrive whole"},
	NotClaimed:  {http.StatusServiceUnavailable, "unavailable", "nothing was done; send the same request with the same key again"},
	NotRecorded: {http.StatusServiceUnavailable, "unavailable", "the work may have been done; send the same request with the same key again"},
	Failed:      {http.StatusInternalServerError, "internal", "the server failed; send the same request with the same key again"},
}

func plainError(problem Problem) *Error {
	e := &Error{Problem: problem, Refusal: plain[problem]}
	if problem == NotClaimed || problem == NotRecorded {
		e.RetryAfter = DefaultRetryAfter
	}
	return e
}

// WriteProblem answers a refusal with problem details as in RFC 9457, with the
// members code and differs beside the standard ones.
func WriteProblem(w http.ResponseWriter, _ *http.Request, e *Error) {
	body, err := json.Marshal(struct {
		Title   string   `json:"title"`
		Status  int      `json:"status"`
		Detail  string   `json:"detail"`
		Code    string   `json:"code"`
		Differs []string `json:"differs,omitempty"`
	}{http.StatusText(e.Refusal.Status), e.Refusal.Status, e.Refusal.Message, e.Refusal.Code, e.Differs})
	if err != nil {
		http.Error(w, e.Refusal.Message, e.Refusal.Status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(e.Refusal.Status)
	w.Write(body) //nolint:errcheck // a client that does not take its answer has left
}
