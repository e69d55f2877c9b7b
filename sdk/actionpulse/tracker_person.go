package actionpulse

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// sendPerson sends the one record of identify or alias in a batch. What was
// begun and has no verdict on record may have been taken.
func (t *Tracker) sendPerson(ctx context.Context, l *lane, b *batch) {
	r := b.records[0]
	switch {
	case r.Type == typeAlias:
		got, err := t.sendAlias(ctx, l, r.Data)
		t.personEnded(l, b, personResult{got, err, t.sentOne})
	case l.queue.Begun() == r.Seq:
		t.settle(ctx, l, b)
	default:
		t.sendIdentify(ctx, l, b)
	}
}

func (t *Tracker) sentOne() { t.count(func(s *TrackerStats) { s.Sent++ }) }

// sendAlias makes a link; it may be repeated as often as need be.
func (t *Tracker) sendAlias(ctx context.Context, l *lane, body []byte) (intakeAnswer, error) {
	return retry.Do(ctx, t.policy(l), func(ctx context.Context) (intakeAnswer, retry.Outcome) {
		return t.attempt(ctx, intakeRequest{path: "/v1/alias", key: l.key, body: body})
	})
}

// sendIdentify sends an identify, and again only if it was certainly not taken.
// That it is about to be sent is on disk before it is: a process that dies
// meanwhile leaves word.
func (t *Tracker) sendIdentify(ctx context.Context, l *lane, b *batch) {
	r := b.records[0]
	var failed error
	got, err := retry.Do(ctx, t.policy(l), func(ctx context.Context) (intakeAnswer, retry.Outcome) {
		if failed = l.queue.Begin(r); failed != nil {
			return intakeAnswer{}, retry.Outcome{Err: fmt.Errorf("%w: %w", context.Canceled, failed)}
		}
		a, o := t.attempt(ctx, intakeRequest{path: "/v1/identify", key: l.key, body: r.Data})
		o.Kind = retry.Mutation
		if !o.Succeeded() && surelyNotTaken(a, o) {
			o.Kind = retry.Event
			failed = l.queue.Begin(outbox.Record{})
		}
		return a, o
	})
	e, ended := errors.AsType[*retry.Error](err)
	switch {
	case failed != nil:
		t.rest(l, &PausedError{Message: "the outbox cannot be written", Err: failed}, 0)
	case ended && !surelyNotTaken(got, e.Outcome):
		t.settle(ctx, l, b)
	default:
		t.personEnded(l, b, personResult{got, err, t.sentOne})
	}
}

// settle ends an identify of which nobody knows whether it was taken: at least
// the link is made.
func (t *Tracker) settle(ctx context.Context, l *lane, b *batch) {
	lost := func() { t.gaveUp(l, b.records[0], GaveUpOutcomeUnknown) }
	who, err := personOf(b.records[0].Data)
	alias, err2 := who.encodeAlias(t.o.Now())
	if errors.Join(err, err2) != nil || l.kind == KeyBrowser {
		lost()
		t.finish(l, b)
		return
	}
	got, err := t.sendAlias(ctx, l, alias.Data)
	t.personEnded(l, b, personResult{got, err, lost})
}

// personResult is how a request about a person ended, and what to do if it was
// accepted.
type personResult struct {
	got      intakeAnswer
	err      error
	accepted func()
}

// personEnded takes note of how a request about a person ended.
func (t *Tracker) personEnded(l *lane, b *batch, p personResult) {
	e, ended := errors.AsType[*retry.Error](p.err)
	switch {
	case p.err == nil && p.got.stranger != "":
		t.strange(l, p.got)
	case p.err == nil:
		p.accepted()
		t.finish(l, b)
		t.succeeded(l)
	case !ended: // the tracker is closed
	case e.Outcome.Code != "" && refusesPerson(e.Outcome.Status):
		t.refuse(l, b, e, Rejected{Code: api.RejectCode(e.Outcome.Code), Message: p.got.message})
	default:
		t.ended(l, e, p.got)
	}
}

func refusesPerson(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || status == http.StatusRequestEntityTooLarge
}
