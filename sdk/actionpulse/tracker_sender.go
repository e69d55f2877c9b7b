package actionpulse

import (
	"context"
	"log/slog"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

const (
	// checkHeld is how often records without a key are looked through for those
	// that have become too old.
	checkHeld = time.Hour
	// never is a wait that something else ends.
	never = time.Duration(1<<63 - 1)
)

// run is the sender: one request at a time, until ctx is done.
func (t *Tracker) run(ctx context.Context) {
	defer close(t.done)
	for ctx.Err() == nil {
		l, wait := t.next()
		if l != nil {
			t.work(ctx, l)
			t.signal()
			continue
		}
		t.sleep(ctx, wait)
	}
}

// sleep waits until there may be something to do. When nothing is there to be
// sent, the next record wakes the sender.
func (t *Tracker) sleep(ctx context.Context, wait time.Duration) {
	defer t.dozing.Store(false)
	if t.main.since.IsZero() {
		t.dozing.Store(true)
		if t.main.queue.State().Records > 0 { // it came before dozing was set
			return
		}
	}
	var timeUp <-chan time.Time
	if wait < never {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeUp = timer.C
	}
	select {
	case <-t.wake:
	case <-timeUp:
	case <-ctx.Done():
	}
}

// next returns a lane with something to do, or how long it is until one has.
func (t *Tracker) next() (*lane, time.Duration) {
	wait := never
	for _, l := range t.lanes {
		due := t.due(l)
		if due <= 0 {
			return l, 0
		}
		wait = min(wait, due)
	}
	return nil, wait
}

// due returns how long it is until a lane has something to do.
func (t *Tracker) due(l *lane) time.Duration {
	s := l.queue.State()
	switch {
	case s.Records == 0:
		l.since = time.Time{}
		return never
	case l.key == "":
		return time.Until(l.nextCheck)
	}
	if l.since.IsZero() {
		l.since = time.Now()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case l.resting():
		return time.Until(l.until)
	case len(l.todo) > 0, l.flushTo > s.Done, s.Records >= t.o.MaxBatch, s.Bytes >= int64(t.o.MaxBytes):
		return 0
	default:
		return t.o.MaxAge - time.Since(l.since)
	}
}

// signal wakes those who wait in Flush.
func (t *Tracker) signal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.moved)
	t.moved = make(chan struct{})
}

// work takes the next step for a lane.
func (t *Tracker) work(ctx context.Context, l *lane) {
	if l.key == "" {
		t.checkHeld(l)
		return
	}
	b, err := t.nextBatch(l)
	switch {
	case err != nil:
		t.rest(l, &PausedError{Message: "the outbox cannot be read", Err: err}, 0)
	case b == nil: // what there was had become too old
	case b.records[0].Type == typeTrack:
		t.sendBatch(ctx, l, b)
	default:
		t.sendPerson(ctx, l, b)
	}
}

// rest pauses a lane, for at least as long as the server has named. It is said
// once for each reason.
func (t *Tracker) rest(l *lane, p *PausedError, named time.Duration) {
	p.KeyKind = l.kind
	now := time.Now()
	p.Until = now.Add(max(t.o.Pause, named))
	t.mu.Lock()
	known := l.pause != nil && l.pause.Code == p.Code && l.pause.Status == p.Status && l.pause.Message == p.Message
	l.pause, l.until, l.notBefore = p, p.Until, now.Add(named)
	t.mu.Unlock()
	attrs := []any{slog.Any("error", p), slog.Int("records", l.queue.State().Records), slog.Time("until", p.Until)}
	if known {
		t.o.Logger.Debug("actionpulse: sending is still paused", attrs...)
		return
	}
	t.o.Logger.Error("actionpulse: sending is paused; the records are kept", attrs...)
	if t.o.OnPaused != nil {
		t.o.OnPaused(p)
	}
}

// ended pauses a lane after the last attempt at a request.
func (t *Tracker) ended(l *lane, e *retry.Error, a intakeAnswer) {
	o := e.Outcome
	named, _ := retry.ParseRetryAfter(o.RetryAfter, time.Now())
	p := &PausedError{Code: api.Code(o.Code), Status: o.Status, Message: e.Verdict.Reason, RequestID: a.requestID, Err: o.Err}
	if e.Verdict.Retry {
		p.Message = "attempts have run out: " + p.Message
	}
	if a.message != "" {
		p.Message += ": " + a.message
	}
	t.rest(l, p, named)
}

// strange pauses a lane because somebody else answered.
func (t *Tracker) strange(l *lane, a intakeAnswer) {
	t.rest(l, &PausedError{Message: "the answer is not one of ActionPulse (" + a.stranger + "): is the URL right?"}, 0)
}

// policy is that of one request of a lane.
func (t *Tracker) policy(l *lane) retry.Policy {
	p := t.o.Policy
	p.Now = time.Now
	told := p.OnRetry
	p.OnRetry = func(r retry.Retry) {
		t.count(func(s *TrackerStats) { s.Retries++ })
		t.o.Logger.Warn("actionpulse: a request is sent again", slog.String("reason", r.Verdict.Reason),
			slog.Int("attempt", r.Attempt), slog.Duration("wait", r.Wait), slog.Int("status", r.Outcome.Status),
			slog.String("code", r.Outcome.Code), slog.Any("error", r.Outcome.Err), slog.String("key_kind", string(l.kind)))
		if told != nil {
			told(r)
		}
	}
	return p
}

// attempt makes one request.
func (t *Tracker) attempt(ctx context.Context, r intakeRequest) (intakeAnswer, retry.Outcome) {
	t.count(func(s *TrackerStats) { s.Requests++ })
	return t.send.post(ctx, r)
}

// succeeded ends what a pause has said.
func (t *Tracker) succeeded(l *lane) {
	l.refused = 0
	t.mu.Lock()
	was := l.pause
	l.pause, l.until, l.notBefore = nil, time.Time{}, time.Time{}
	t.mu.Unlock()
	if was != nil {
		t.o.Logger.Info("actionpulse: sending goes on", slog.String("key_kind", string(l.kind)))
	}
}
