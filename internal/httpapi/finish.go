package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intake"
)

// finish is the one place that answers, logs and counts. It panics with
// http.ErrAbortHandler, after counting, when the connection is to end without
// an answer.
func (s *service) finish(x *exchange, a answer, err error) {
	if err == nil && a.stream != nil {
		s.stream(x, a)
		return
	}
	if err == nil {
		s.note(x, outcome{status: a.status})
		s.write(x, a)
		return
	}
	if abort := abortion(x, err); abort != nil {
		x.body.forget()
		s.note(x, outcome{status: abort.status, code: abort.code, err: err})
		panic(http.ErrAbortHandler)
	}
	refusal := s.refuse(x, err)
	s.note(x, outcome{status: refusal.status, code: string(fault.CodeOf(err)), err: err})
	s.write(x, refusal)
}

// abortion returns why err is not to be answered, or nil if it is.
func abortion(x *exchange, err error) *abortError {
	if abort, ok := errors.AsType[*abortError](err); ok {
		return abort
	}
	if errors.Is(err, intake.ErrNoAnswer) {
		return &abortError{code: "no_answer", cause: err}
	}
	// What failed because the client left is no failure of the server.
	if x.r.Context().Err() != nil && api.Lookup(fault.CodeOf(err)).Status >= http.StatusInternalServerError {
		abort, _ := errors.AsType[*abortError](clientGone(err))
		return abort
	}
	return nil
}

// outcome is how a request ended.
type outcome struct {
	status int
	code   string
	err    error
}

// note logs and counts.
func (s *service) note(x *exchange, o outcome) {
	took := s.Now().Sub(x.began)
	x.resource.metrics.End(o.status, o.code, took)
	level := slog.LevelDebug
	switch {
	case o.status == http.StatusInternalServerError || o.code == "no_answer":
		level = slog.LevelError
	case o.status > http.StatusInternalServerError:
		level = slog.LevelWarn
	}
	ctx := x.r.Context()
	if !s.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", x.requestID), slog.String("method", x.r.Method), slog.String("path", x.r.URL.Path),
		slog.Int("status", o.status), slog.Duration("took", took), slog.Int64("key", x.caller.Number),
	}
	if o.err != nil {
		attrs = append(attrs, slog.String("code", o.code), slog.Any("err", o.err))
	}
	s.Log.LogAttrs(ctx, level, "request", attrs...)
}

// jsonType is the content type of nearly every answer.
var jsonType = []string{"application/json"}

// write sends an answer. That the client does not take it is nobody's fault.
func (s *service) write(x *exchange, a answer) {
	h := x.w.Header()
	if a.body != nil {
		h["Content-Type"] = jsonType
		if a.contentType != "" {
			h["Content-Type"] = []string{a.contentType}
		}
		h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	}
	if x.r.Method != http.MethodPost && h["Cache-Control"] == nil {
		h["Cache-Control"] = noStore
	}
	lingers := x.unread && s.beginLinger(x)
	x.w.WriteHeader(a.status)
	if _, err := x.w.Write(a.body); err != nil && a.body != nil {
		s.Log.Debug("answer not taken", "request_id", x.requestID, "err", err)
		return
	}
	if lingers {
		s.linger(x)
	}
}

// stream sends an answer that is written while it is worked out. Like finish it
// panics with http.ErrAbortHandler when it fails, so that a client that reads to
// the end has all of it.
func (s *service) stream(x *exchange, a answer) {
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"] = []string{a.contentType}, noStore
	x.w.WriteHeader(a.status)
	if x.r.Method == http.MethodHead {
		s.note(x, outcome{status: a.status})
		return
	}
	err := runStream(x, a)
	if err == nil {
		s.note(x, outcome{status: a.status})
		return
	}
	abort := abortion(x, err)
	if abort == nil {
		abort = &abortError{status: a.status, code: "no_answer", cause: err}
	}
	s.note(x, outcome{status: abort.status, code: abort.code, err: err})
	panic(http.ErrAbortHandler)
}

// runStream writes the body. A panic becomes an error.
func runStream(x *exchange, a answer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while an answer was sent: %v\n%s", p, debug.Stack())
		}
	}()
	return a.stream(x.w)
}

// noStore keeps state and people's data out of caches.
var noStore = []string{"no-store"}
