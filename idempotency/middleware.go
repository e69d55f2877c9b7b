package idempotency

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// MiddlewareParams configures [Middleware].
type MiddlewareParams struct {
	Policy Policy
	Store  Store
	// Scope returns whose key a request carries. It must name the principal.
	// An error is answered with 500.
	Scope func(*http.Request) (string, error)
	// Facts returns what is compared beside the body; nil is method and path.
	Facts func(*http.Request) []Fact
	// MaxBody is the longest body in bytes; 0 is [DefaultMaxBody].
	MaxBody int64
	// Current answers a repeat with the resource as it is now. It is needed
	// if the policy repeats with CurrentResource, or remembers a key for
	// longer than its answer.
	Current func(w http.ResponseWriter, r *http.Request, result Result)
	// WriteError answers a refusal; nil is problem details as in RFC 9457.
	WriteError func(http.ResponseWriter, *http.Request, *Error)
	// Tally, if set, counts repeats and conflicts.
	Tally *Tally
	// Log is told of failures of the store; nil is nobody.
	Log *slog.Logger
}

// DefaultMaxBody is the longest body where nothing else is said.
const DefaultMaxBody = 1 << 20

// recordFor is how long a claim or an answer may take to be recorded, whatever
// the client does.
const recordFor = 10 * time.Second

// Middleware returns the leased form: it runs a handler once for each key, one
// owner at a time, and answers repeats. The handler's answer is held in memory
// until it is recorded; nothing is said before that. The handler's context does
// not end when the client leaves, but does, with cause [ErrLeaseLost], when
// another owner has taken the claim over.
//
// A crash between the work and its record makes the next owner do the work
// again: a handler that has no transaction of its own must look, by
// [LeaseFrom], at what an owner before it did. Where work and record can share
// a transaction, use the atomic form instead.
//
// Bodies are compared as they arrive: what undoes a Content-Encoding, and what
// compresses answers for the client at hand, belongs outside of the middleware.
// The handler cannot stream, hijack or send trailers.
//
// The error says that the parameters do not fit together.
func Middleware(p MiddlewareParams) (func(http.Handler) http.Handler, error) {
	if p.Store == nil || p.Scope == nil {
		return nil, errors.New("idempotency: the middleware needs a Store and a Scope")
	}
	if err := p.Policy.Validate(); err != nil {
		return nil, err
	}
	outlives := p.Policy.Retention.Answer > 0 && p.Policy.Retention.Key != p.Policy.Retention.Answer
	if p.Current == nil && (p.Policy.Repeat == CurrentResource || outlives) {
		return nil, errors.New("idempotency: the policy answers repeats with the resource, which needs Current")
	}
	if p.Facts == nil {
		p.Facts = methodAndPath
	}
	if p.MaxBody == 0 {
		p.MaxBody = DefaultMaxBody
	}
	if p.WriteError == nil {
		p.WriteError = WriteProblem
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	return func(next http.Handler) http.Handler {
		return &middleware{MiddlewareParams: p, next: next}
	}, nil
}

func methodAndPath(r *http.Request) []Fact {
	return []Fact{{"method", r.Method}, {"path", r.URL.EscapedPath()}}
}

type middleware struct {
	MiddlewareParams

	next http.Handler
}

func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, refused := m.Policy.ParseKey(r.Header)
	switch {
	case refused != nil:
		m.WriteError(w, r, refused)
	case key == "":
		m.next.ServeHTTP(w, r)
	default:
		request, err := m.request(w, r, key)
		if err == nil {
			err = m.serve(w, r, request)
		}
		if err != nil {
			m.fail(w, r, err)
		}
	}
}

// request reads what the key layer compares. The handler gets the same bytes
// again.
func (m *middleware) request(w http.ResponseWriter, r *http.Request, key string) (Request, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, m.MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Request{}, plainError(TooLarge)
	}
	if err != nil {
		return Request{}, plainError(Unreadable)
	}
	scope, err := m.Scope(r)
	if err != nil {
		return Request{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return Request{Policy: &m.Policy, Scope: scope, Key: key, Facts: m.Facts(r), Body: body}, nil
}

// serve claims the key and works, or answers a repeat.
func (m *middleware) serve(w http.ResponseWriter, r *http.Request, request Request) error {
	claim, err := m.claim(r.Context(), request)
	if err != nil {
		if r.Context().Err() == nil {
			m.Log.Error("claim an idempotency key", "err", err)
		}
		return plainError(NotClaimed)
	}
	if claim.Judgement.Verdict != Fresh {
		return m.repeat(w, r, request, &claim)
	}
	return m.work(w, r, request, &claim)
}

// pollFirst and pollMost bound how often a repeat that waits asks again.
const (
	pollFirst = 20 * time.Millisecond
	pollMost  = 500 * time.Millisecond
)

// claim claims the key; while another request is being worked on it waits as
// long as the policy says.
func (m *middleware) claim(ctx context.Context, request Request) (Claim, error) {
	deadline := time.Now().Add(m.Policy.Running.Wait)
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		claim, err := m.claimOnce(ctx, request)
		left := time.Until(deadline)
		if err != nil || claim.Judgement.Verdict != Busy || left <= 0 {
			return claim, err
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Claim{}, context.Cause(ctx)
		}
	}
}

// claimOnce does not let a client that leaves cut a claim off half way: nobody
// would own what has just been committed, and the key would be busy for a
// whole lease.
func (m *middleware) claimOnce(ctx context.Context, request Request) (Claim, error) {
	if err := context.Cause(ctx); err != nil {
		return Claim{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	return m.Store.Claim(ctx, request, m.lease())
}

func (m *middleware) lease() time.Duration {
	if m.Policy.Running.Lease > 0 {
		return m.Policy.Running.Lease
	}
	return DefaultLease
}

// repeat answers a request whose key names work already.
func (m *middleware) repeat(w http.ResponseWriter, r *http.Request, request Request, claim *Claim) error {
	result, err := claim.Judgement.Resolve(&request, claim.Record)
	if m.Tally != nil {
		if errors.Is(err, &Error{Problem: Mismatch}) {
			m.Tally.Conflict(request.Ref())
		} else {
			m.Tally.Repeat(request.Ref())
		}
	}
	if err != nil {
		return err
	}
	if result.Answer == nil && m.Current == nil {
		return plainError(Failed)
	}
	w.Header().Set(Replayed, "true")
	if result.Answer == nil {
		m.Current(w, r, result)
		return nil
	}
	a := *result.Answer
	if m.Policy.ReplayStatus != 0 {
		a.Status = m.Policy.ReplayStatus
	}
	m.write(w, a)
	return nil
}

// write says an answer. That a client does not take it is nobody's fault.
func (m *middleware) write(w http.ResponseWriter, a Answer) {
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	if a.ContentType != "" {
		w.Header().Set("Content-Type", a.ContentType)
	}
	w.WriteHeader(a.Status)
	if _, err := w.Write(a.Body); err != nil {
		m.Log.Debug("an answer was not taken", "err", err)
	}
}

// fail answers what is not an answer of the handler.
func (m *middleware) fail(w http.ResponseWriter, r *http.Request, err error) {
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		m.Log.Error("an idempotent request failed", "err", err)
		refused = plainError(Failed)
	}
	m.WriteError(w, r, refused)
}
