package credit

import (
	"crypto/sha256"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/recent"
)

// maxAnswers is how many bytes of answers are remembered at most, about.
const maxAnswers = 16 << 20

// answers are the first answers of movements that were committed here, so that
// a repeat that follows soon is answered without the store. They are given to
// the same bytes only: what anything else means, the store says.
type answers struct {
	// fresh is how long one is given: half as long as the store keeps it, so
	// that it makes no difference whose clock is a little ahead.
	fresh time.Duration
	byKey *recent.Map[idempotency.Ref, given]
}

// given is an answer and to what it was given.
type given struct {
	digest [sha256.Size]byte
	answer *idempotency.Answer
	at     time.Time // no later than when it was made
}

func newAnswers(kept time.Duration) *answers {
	return &answers{fresh: kept / 2, byKey: recent.New[idempotency.Ref, given](maxAnswers)}
}

// keep remembers the answer to a movement that is committed, and began at a
// time.
func (a *answers) keep(r *idempotency.Request, answer *idempotency.Answer, began time.Time) {
	const overhead = 300 // bytes, for what else there is of an answer
	a.byKey.Put(r.Ref(), given{digestOf(r), answer, began}, len(answer.Body)+len(r.Key)+overhead)
}

// find returns the answer to a request if it is remembered, else nil.
func (a *answers) find(r *idempotency.Request, now time.Time) *idempotency.Answer {
	one, ok := a.byKey.Find(r.Ref())
	if age := now.Sub(one.at); !ok || age < 0 || age >= a.fresh || one.digest != digestOf(r) {
		return nil
	}
	return one.answer
}

// digestOf is of the bytes of a request and of its facts, none of which has a
// zero byte in a request that was done.
func digestOf(r *idempotency.Request) [sha256.Size]byte {
	var text []byte
	for _, f := range r.Facts {
		text = append(append(text, f.Value...), 0)
	}
	return sha256.Sum256(append(text, r.Body...))
}
