package idempotency

import "time"

// Verdict says what a key means for a request.
type Verdict int

// The verdicts.
const (
	// Fresh: nothing is in the way; the request may claim the key, or take
	// over what an owner has abandoned.
	Fresh Verdict = iota
	// Repeated: the work has been done.
	Repeated
	// Conflicting: the key names another request's work.
	Conflicting
	// Busy: another request with this key is being worked on.
	Busy
)

// Judgement is a verdict and what it rests on.
type Judgement struct {
	Verdict Verdict
	// AnswerExpired is set for Repeated when the answer is not kept any more.
	AnswerExpired bool
	// Differs and SameJSON explain Conflicting.
	Differs  []string
	SameJSON bool
}

// Judge decides what a key's record means for a request at a time. It is pure:
// the same arguments give the same verdict. A mismatch is found before
// "running", and by what is known at that time: an answer's bytes that are
// gone count as expired. A work that its owner has abandoned is open only to a
// repeat of the same request: it may have been done.
func Judge(r *Request, rec *Record, now time.Time) Judgement {
	held := rec.State == Claimed && !past(rec.Owner.ExpiresAt, now)
	if rec.State == Free || past(rec.KeyExpiresAt, now) && !held {
		return Judgement{Verdict: Fresh}
	}
	expired := rec.State == Done && r.Policy.Repeat == FirstAnswer &&
		(past(rec.AnswerExpiresAt, now) || rec.Answer == nil)
	before, fingerprint := rec.Print, r.Policy.Compare
	if expired && r.Policy.Retention.Tombstone != nil && !rec.Tombstone.IsZero() {
		before, fingerprint = rec.Tombstone, r.Policy.Retention.Tombstone
	}
	asked := fingerprint.Print(r)
	if differs := before.Differs(asked); len(differs) > 0 {
		return Judgement{Verdict: Conflicting, Differs: differs, SameJSON: rec.Print.sameJSON(r.Policy.Compare.Print(r))}
	}
	switch {
	case rec.State == Done:
		return Judgement{Verdict: Repeated, AnswerExpired: expired}
	case held:
		return Judgement{Verdict: Busy}
	default:
		return Judgement{Verdict: Fresh}
	}
}

// past says whether t is a time and has come.
func past(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// Resolve turns a judgement into what the caller hears: the result of a repeat,
// or an error. It is for stores, and must not be called with [Fresh].
func (j *Judgement) Resolve(r *Request, rec Record) (Result, error) {
	switch j.Verdict {
	case Conflicting:
		e := r.Policy.refuse(Mismatch)
		e.Record, e.Differs, e.SameJSON = &rec, j.Differs, j.SameJSON
		return Result{}, e
	case Busy:
		e := r.Policy.refuse(StillRunning)
		e.Record = &rec
		return Result{}, e
	default:
		result := Result{Replayed: true, AnswerExpired: j.AnswerExpired, Record: rec}
		if r.Policy.Repeat == FirstAnswer && !j.AnswerExpired {
			result.Answer = rec.Answer
		}
		return result, nil
	}
}
