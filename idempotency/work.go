package idempotency

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	recorder := &recorder{header: w.Header().Clone()}
	returned := false
	end := func() error {
		cancel(nil)
		<-stopped
		return m.settle(r.Context(), request, lease, m.answer(recorder, returned))
	}
	defer func() {
		if !returned { // a panic, which goes on to whoever is outside
			m.ended(end())
		}
	}()
	m.next.ServeHTTP(recorder, r.WithContext(context.WithValue(ctx, leaseKey{}, lease)))
	returned = true
	switch err := end(); {
	case errors.Is(err, ErrLeaseLost):
		return m.lost(w, r, request)
	case err != nil:
		m.ended(err)
		return plainError(NotRecorded)
	}
	clear(w.Header())
	maps.Copy(w.Header(), recorder.said())
	m.write(w, Answer{Status: recorder.code(), Body: recorder.body})
	return nil
}

func (m *middleware) ended(err error) {
	if err != nil {
		m.Log.Error("record the end of an idempotent request", "err", err)
	}
}

// renewals is how many times a lease is renewed before it would end.
const renewals = 3

// renew keeps the lease until ctx ends. It ends the work when the lease is
// lost, or when it could not be renewed for so long that it may be lost before
// the next attempt.
func (m *middleware) renew(ctx context.Context, lease *Lease, cancel context.CancelCauseFunc) {
	interval := m.lease() / renewals
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for renewed := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		within, done := context.WithTimeout(ctx, interval)
		err := m.Store.Renew(within, lease.ref, lease.owner, m.lease())
		done()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			renewed = asked
			continue
		case !errors.Is(err, ErrLeaseLost):
			m.Log.Warn("renew the claim on an idempotency key", "err", err)
		}
		if errors.Is(err, ErrLeaseLost) || time.Since(renewed) >= m.lease()-interval {
			cancel(ErrLeaseLost)
			return
		}
	}
}

// settle takes the key for good or frees it, as the policy says. Without an
// answer the handler has not returned.
func (m *middleware) settle(ctx context.Context, request Request, lease *Lease, answer *Answer) error {
	made, isMade := lease.Resource()
	taken := isMade && m.Policy.Takes == OnResource
	if answer == nil {
		answer = &Answer{Status: http.StatusInternalServerError}
	} else {
		taken = taken || m.Policy.Takes == OnAnswer ||
			m.Policy.Takes == OnSuccess && answer.Status < http.StatusBadRequest
	}
	answer.Resource = made
	return m.insist(ctx, func(ctx context.Context) error {
		if taken {
			return m.Store.Complete(ctx, request, lease.owner, *answer)
		}
		return m.Store.Release(ctx, lease.ref, lease.owner)
	})
}

// insist runs end until it is done or certainly cannot be, for a while: the
// work has been done, and without its record it would be done again. An end
// that was done although its answer was lost is found by its own repeat.
func (m *middleware) insist(ctx context.Context, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(recordFor, m.lease()))
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
		m.ended(err)
		return plainError(NotRecorded)
	}
	if !found {
		return plainError(NotRecorded)
	}
	// The key may have been freed since and name something else. What has been
	// recorded this moment has not expired.
	switch j := Judge(&request, &record, record.CreatedAt); j.Verdict {
	case Repeated, Busy:
		return m.repeat(w, r, request, &Claim{Judgement: j, Record: record})
	default:
		return plainError(NotRecorded)
	}
}
