package idempotency

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// work runs the handler as the owner of the key and records its answer before
// it is said.
func (m *middleware) work(w http.ResponseWriter, r *http.Request, request Request, claim *Claim) error {
	lease := &Lease{store: m.Store, ref: request.Ref(), owner: claim.Owner, made: claim.Record.Resource}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		m.renew(ctx, lease, cancel)
	}()
	recorder := &recorder{header: http.Header{}}
	var panicked any
	func() {
		defer func() { panicked = recover() }()
		m.next.ServeHTTP(recorder, r.WithContext(context.WithValue(ctx, leaseKey{}, lease)))
	}()
	cancel(nil)
	<-stopped
	err := m.settle(r.Context(), request, lease, recorder, panicked != nil)
	switch {
	case panicked != nil:
		panic(panicked)
	case errors.Is(err, ErrLeaseLost):
		return m.lost(w, r, request)
	case err != nil:
		m.Log.Error("record the answer to an idempotent request", "err", err)
		return plainError(NotRecorded)
	}
	for name, values := range recorder.header {
		w.Header()[name] = values
	}
	m.write(w, Answer{Status: recorder.code(), Body: recorder.body})
	return nil
}

// renewals is how many times a lease is renewed before it would end.
const renewals = 3

// renew keeps the lease until ctx ends; it ends the work when it is lost.
func (m *middleware) renew(ctx context.Context, lease *Lease, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(m.lease() / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := m.Store.Renew(ctx, lease.ref, lease.owner, m.lease())
		switch {
		case errors.Is(err, ErrLeaseLost):
			cancel(ErrLeaseLost)
			return
		case err != nil && ctx.Err() == nil:
			m.Log.Warn("renew the claim on an idempotency key", "err", err)
		}
	}
}

// settle takes the key for good or frees it, as the policy says.
func (m *middleware) settle(ctx context.Context, request Request, lease *Lease, rec *recorder, panicked bool) error {
	made, isMade := lease.Resource()
	answer := Answer{
		Status: rec.code(), ContentType: rec.header.Get("Content-Type"), Body: rec.body, Resource: made,
		Header: m.keep(rec.header),
	}
	if panicked {
		answer = Answer{Status: http.StatusInternalServerError, Resource: made}
	}
	taken := isMade && m.Policy.Takes == OnResource
	if !panicked {
		taken = taken || m.Policy.Takes == OnAnswer || m.Policy.Takes == OnSuccess && rec.code() < http.StatusBadRequest
	}
	return m.insist(ctx, func(ctx context.Context) error {
		if taken {
			return m.Store.Complete(ctx, request, lease.owner, answer)
		}
		return m.Store.Release(ctx, lease.ref, lease.owner)
	})
}

// insist runs end until it is done or certainly cannot be, for a while: the
// work has been done, and without its record it would be done again. An end
// that was done although its answer was lost is found by its own repeat.
func (m *middleware) insist(ctx context.Context, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(completeFor, m.lease()))
	defer cancel()
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		err := end(ctx)
		if err == nil || errors.Is(err, ErrLeaseLost) {
			return err
		}
		m.Log.Warn("record the end of an idempotent request", "err", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("gave up: %w", err)
		}
	}
}

// lost answers for an owner whose claim has passed to another: with that
// owner's answer if there is one, never with its own.
func (m *middleware) lost(w http.ResponseWriter, r *http.Request, request Request) error {
	record, found, err := m.Store.Find(r.Context(), request.Ref())
	if err != nil {
		m.Log.Error("read an idempotency key", "err", err)
		return plainError(NotRecorded)
	}
	if !found || record.State != Done {
		return request.Policy.refuse(StillRunning)
	}
	return m.repeat(w, r, request, &Claim{Judgement: Judgement{
		Verdict: Repeated, AnswerExpired: request.Policy.Repeat == FirstAnswer && record.Answer == nil,
	}, Record: record})
}

// keep picks the headers that are kept.
func (m *middleware) keep(h http.Header) map[string]string {
	var kept map[string]string
	for _, name := range m.Policy.KeepHeaders {
		if value := h.Get(name); value != "" {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

// recorder holds a handler's answer.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
		if r.header.Get("Content-Type") == "" {
			r.header.Set("Content-Type", http.DetectContentType(b))
		}
	}
	r.body = append(r.body, b...)
	return len(b), nil
}

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
