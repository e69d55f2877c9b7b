package actionpulse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

const (
	// growAfter is how many bodies of a reduced size are taken before a larger
	// one is tried.
	growAfter = 10
	// maxRefused is how many single records in a row may be refused, each by a
	// request of its own, before it seems to be something else than they.
	maxRefused = 10
	// sentAtRoom is how long the member sent_at can be.
	sentAtRoom = len(`"sent_at":"2006-01-02T15:04:05.000+00:00",`)
)

// batch is records that are sent together until there is a verdict.
type batch struct {
	records []outbox.Record
	// body is the items as they are sent.
	body []byte
	// last is the record up to which the outbox is done with then; records
	// before it that are not in the batch were given up.
	last outbox.Record
	// began is the first attempt.
	began time.Time
}

func newBatch(records []outbox.Record) *batch {
	return &batch{records: records, last: records[len(records)-1]}
}

// prefix begins the body of a batch.
func (t *Tracker) prefix() string {
	prefix := `{`
	if t.o.Historical {
		prefix += `"historical":true,`
	}
	if t.o.CorrectSkew {
		prefix += `"sent_at":"` + t.o.Now().UTC().Format(tsLayout) + `",`
	}
	return prefix + `"events":[`
}

const bodyEnd = "]}"

// items joins the records of a batch, once.
func (b *batch) items() []byte {
	if b.body == nil {
		for i, r := range b.records {
			if i > 0 {
				b.body = append(b.body, ',')
			}
			b.body = append(b.body, r.Data...)
		}
	}
	return b.body
}

// nextBatch returns the batch to send, without what has become too old. It is
// nil if nothing is left of it, or the clock is in doubt.
func (t *Tracker) nextBatch(l *lane) (*batch, error) {
	if len(l.todo) == 0 {
		l.newRecords.Store(0)
		l.newBytes.Store(0)
		room := t.room(l)
		records, err := l.queue.Peek(outbox.Limit{Records: t.o.MaxBatch, Bytes: room})
		if err != nil || len(records) == 0 {
			return nil, err
		}
		l.todo = []*batch{newBatch(together(records, room))}
		l.since = time.Time{}
	}
	b := l.todo[0]
	return t.prune(l, b), nil
}

// room is how many bytes the items of a body may take.
func (t *Tracker) room(l *lane) int {
	size := t.o.MaxBytes
	if l.limit > 0 {
		size = min(size, l.limit)
	}
	return size - len(`{"historical":true,"events":[]}`) - sentAtRoom
}

// together returns the records from the first on that go into one request: of
// track as many as fit, of the others one.
func together(records []outbox.Record, room int) []outbox.Record {
	size := 0
	for i, r := range records {
		size += len(r.Data) + 1
		if i > 0 && (r.Type != typeTrack || size > room) {
			return records[:i]
		}
		if r.Type != typeTrack {
			return records[:1]
		}
	}
	return records
}

// prune gives up the records of a batch that have become too old. It returns
// nil if the batch is not to be sent now.
func (t *Tracker) prune(l *lane, b *batch) *batch {
	now := t.o.Now()
	var fresh, old []outbox.Record
	for _, r := range b.records {
		if t.tooOld(r, b, now) {
			old = append(old, r)
		} else {
			fresh = append(fresh, r)
		}
	}
	if len(old) == 0 {
		return b
	}
	if doubt := t.clock.doubt(); doubt > 0 {
		t.rest(l, &PausedError{Message: "the clock was set ahead; it is not believed yet"}, doubt)
		return nil
	}
	for _, r := range old {
		t.gaveUp(l, r, GaveUpTooOld)
	}
	if len(fresh) == 0 {
		t.finish(l, b)
		return nil
	}
	b.records, b.body = fresh, nil
	return b
}

// tooOld reports whether a record must not be sent any more. A batch that has
// been tried for that long by elapsed time counts, whatever the wall says.
func (t *Tracker) tooOld(r outbox.Record, b *batch, now time.Time) bool {
	return age(r, now, t.o.Historical) > MaxKept || !b.began.IsZero() && time.Since(b.began) > MaxKept
}

// checkHeld gives up what has become too old without a key.
func (t *Tracker) checkHeld(l *lane) {
	l.nextCheck = time.Now().Add(checkHeld)
	records, err := l.queue.Peek(outbox.Limit{Records: 1})
	if err != nil {
		t.o.Logger.Error("actionpulse: the outbox cannot be read", slog.Any("error", err))
		return
	}
	if len(records) == 0 || !t.tooOld(records[0], &batch{}, t.o.Now()) {
		return
	}
	if t.prune(l, newBatch(records)) == nil && t.clock.doubt() == 0 {
		l.nextCheck = time.Time{} // there may be more
	}
}

// finish takes a batch out of the outbox.
func (t *Tracker) finish(l *lane, b *batch) {
	if len(l.todo) > 0 {
		l.todo = l.todo[1:]
	}
	if err := l.queue.Ack(b.last); err != nil {
		t.o.Logger.Error("actionpulse: the outbox could not note what was sent; after a crash it would be sent again, with the same ids",
			slog.Any("error", err))
	}
}

// errAged ends the attempts at a batch of which a record has become too old.
var errAged = fmt.Errorf("a record has become too old: %w", context.Canceled)

// sendBatch sends a batch until there is a verdict or a repeat does not help.
func (t *Tracker) sendBatch(ctx context.Context, l *lane, b *batch) {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	var size int
	got, err := retry.Do(ctx, t.policy(l), func(ctx context.Context) (intakeAnswer, retry.Outcome) {
		now := t.o.Now()
		for _, r := range b.records {
			if t.tooOld(r, b, now) {
				return intakeAnswer{}, retry.Outcome{Kind: retry.Event, Err: errAged}
			}
		}
		body := append(append([]byte(t.prefix()), b.items()...), bodyEnd...)
		size = len(body)
		return t.attempt(ctx, intakeRequest{path: "/v1/track", key: l.key, body: body, items: len(b.records)})
	})
	e, refused := errors.AsType[*retry.Error](err)
	switch {
	case err == nil && got.stranger != "":
		t.strange(l, got)
	case err == nil:
		t.judged(l, b, got)
	case errors.Is(err, errAged), !refused: // next time without it; or the tracker is closed
	case e.Outcome.Status == http.StatusRequestEntityTooLarge:
		t.tooLarge(l, b, e, size)
	case e.Outcome.Code != "" && (e.Outcome.Status == http.StatusBadRequest || e.Outcome.Status == http.StatusUnprocessableEntity):
		t.refusedBatch(l, b, e, got)
	default:
		t.ended(l, e, got)
	}
}

// judged takes note of the verdicts on a batch.
func (t *Tracker) judged(l *lane, b *batch, got intakeAnswer) {
	t.count(func(s *TrackerStats) {
		s.Sent += int64(got.Accepted)
		s.Duplicates += int64(got.Duplicates)
	})
	for _, r := range got.Rejected {
		t.rejected(Rejected{l.show(b.records[r.Index]), r.Index, r.Code, r.Message})
	}
	t.finish(l, b)
	t.succeeded(l)
	if l.limit == 0 {
		return
	}
	if l.taken++; l.taken >= growAfter {
		l.taken, l.limit = 0, l.limit*2
		if l.limit >= t.o.MaxBytes {
			l.limit = 0
		}
	}
}

// tooLarge makes two batches of one whose body was too large, and later bodies
// smaller.
func (t *Tracker) tooLarge(l *lane, b *batch, e *retry.Error, size int) {
	l.limit, l.taken = max(size/2, 1), 0
	if !l.halve(b) {
		t.refuse(l, b, e, Rejected{
			Code: api.RejectEventTooLarge, Message: fmt.Sprintf("the server refuses a body of %d bytes", size),
		})
	}
}

// refusedBatch looks for the record for whose sake a whole request was
// refused, which intake does not do to a request that is well formed.
func (t *Tracker) refusedBatch(l *lane, b *batch, e *retry.Error, got intakeAnswer) {
	if !l.halve(b) {
		t.refuse(l, b, e, Rejected{Code: api.RejectCode(e.Outcome.Code), Message: got.message})
	}
}

// halve puts two halves in the place of a batch, unless it is a single record.
func (l *lane) halve(b *batch) bool {
	n := len(b.records) / 2
	if n == 0 {
		return false
	}
	first, second := newBatch(b.records[:n]), newBatch(b.records[n:])
	first.began, second.began, second.last = b.began, b.began, b.last
	l.todo = append([]*batch{first, second}, l.todo[1:]...)
	return true
}

// refuse reports a single record as rejected. If that happens to one after the
// other, it is hardly for their sake: from then on only one ends for each
// pause.
func (t *Tracker) refuse(l *lane, b *batch, e *retry.Error, r Rejected) {
	if l.refused >= maxRefused {
		l.refused--
		t.ended(l, e, intakeAnswer{message: r.Message})
		return
	}
	l.refused++
	r.OutboxRecord = l.show(b.records[0])
	t.rejected(r)
	t.finish(l, b)
}
