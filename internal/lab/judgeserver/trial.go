package judgeserver

import (
	"context"
	"strings"
)

// Where the rules come from.
const (
	sourceDraft = "IETF draft The Idempotency-Key HTTP Header Field, section 2"
	sourceRetry = "docs/guides/retries.md: a request without an answer is repeated with the same key"
	sourceKeys  = "docs/guides/idempotency-keys.md: a key names one unit of work"
)

// trials are those of an operation that takes a key, in the order of a report.
func trials() []trial {
	return []trial{
		{"repeat-same-object", "a repeat with the same key is answered with the object of the first request", sourceKeys, (*judge).repeat},
		{"repeat-marked", "a repeat is marked as one, and the first request is not", "docs/guides/idempotency-keys.md: Idempotency-Replayed", (*judge).marked},
		{"race-one-object", "requests at once with one new key make one object", sourceDraft, (*judge).race},
		{"race-honest-answers", "who loses the race hears the result, or 409 or 425 with Retry-After; never a failure of the server", sourceDraft, (*judge).raceAnswers},
		{"lost-answer", "a request whose answer was lost after the work is answered with the same object when it is repeated", sourceRetry, (*judge).lostAnswer},
		{"doubled-request", "a request that the network delivers twice makes one object", sourceRetry, (*judge).doubled},
		{"lost-request", "a request that was lost before the server read it is done when it is repeated, once", sourceRetry, (*judge).lostRequest},
		{"cut-request", "half a request does nothing, and does not spoil its key", sourceRetry, (*judge).cutRequest},
		{"other-body-refused", "the same key with another body is refused, nothing is made, and the first object is still the key's", sourceDraft, (*judge).otherBody},
		{"other-key-other-object", "the same body with another key is other work", sourceKeys, (*judge).otherKey},
		{"key-absent", "a request without a key is refused, and nothing is made", sourceDraft, (*judge).keyAbsent},
		{"key-doubled", "a request with two keys is refused, and nothing is made", sourceKeys, (*judge).keyDoubled},
		{"key-too-long", "a request with a key that is too long is refused, and nothing is made", sourceKeys, (*judge).keyTooLong},
		{"refused-leaves-key", "a refusal before any work leaves the key to a corrected request", sourceKeys, (*judge).refused},
		{"restart-keeps-key", "a key still names its object after a restart", sourceKeys, (*judge).restart},
		{"restart-under-load", "work that a restart cuts off is done once when it is repeated", sourceRetry, (*judge).restartUnderLoad},
	}
}

// within runs a trial with a unit of work of its own.
func (j *judge) within(ctx context.Context, try func(unit) finding) finding {
	u, err := j.unit(ctx)
	if err != nil {
		return inconclusive("%v", err)
	}
	return try(u)
}

func (j *judge) repeat(ctx context.Context) finding {
	return j.within(ctx, func(u unit) finding {
		first, second, third := j.send(ctx, u), j.send(ctx, u), j.send(ctx, u)
		return succeeds(u, "the first request", first).and(
			succeeds(u, "its repeat", second), succeeds(u, "the repeat after that", third), j.one(ctx, u, first, second, third))
	})
}

func (j *judge) marked(ctx context.Context) finding {
	return j.within(ctx, func(u unit) finding {
		first, second := j.send(ctx, u), j.send(ctx, u)
		switch {
		case first.replayed():
			return fail("%s: the first request is said to be a repeat", u.name)
		case !second.succeeded():
			return inconclusive("%s: the repeat: %s", u.name, second.short())
		case !second.replayed():
			return notTested("%s: the server does not mark repeats", u.name)
		}
		return pass("%s: the repeat has a header that says so", u.name)
	})
}

func (j *judge) requests(u unit) []request {
	out := make([]request, j.options.AtOnce)
	for i := range out {
		out[i] = j.request(u)
	}
	return out
}

func (j *judge) race(ctx context.Context) finding {
	return j.within(ctx, func(u unit) finding {
		answers := j.client.race(ctx, j.requests(u))
		last := j.settle(ctx, j.request(u))
		f := succeeds(u, "after the race", last).and(j.objects(ctx, u, 1, append(answers, last)...))
		f.evidence = append([]string{u.name + ": " + statuses(answers)}, f.evidence...)
		return f
	})
}

func (j *judge) raceAnswers(ctx context.Context) finding {
	return j.within(ctx, func(u unit) finding {
		answers := j.client.race(ctx, j.requests(u))
		f := pass("%s: %s", u.name, statuses(answers))
		won := 0
		for _, a := range answers {
			switch {
			case a.succeeded():
				won++
			case !a.running():
				return f.and(fail("%s: a request of the race got: %s", u.name, a.short()))
			}
		}
		if won == 0 {
			return f.and(inconclusive("%s: no request of the race succeeded", u.name))
		}
		// Two objects are the finding of another trial; here only words count.
		if j.endpoint.Identify == nil || j.endpoint.Exact {
			return f.and(j.same(u, answers...))
		}
		return f
	})
}

// otherBody demands a refusal: 422 in the IETF's draft, 409 here and elsewhere.
func (j *judge) otherBody(ctx context.Context) finding {
	if j.endpoint.Other == nil {
		return notTested("no other body was given")
	}
	return j.within(ctx, func(u unit) finding {
		first := j.send(ctx, u)
		r := j.request(u)
		r.body = j.endpoint.Other(u.name)
		other := j.client.send(ctx, r)
		again := j.send(ctx, u)
		f := succeeds(u, "the first request", first)
		if !other.refused() {
			f = f.and(fail("%s: another body with its key: %s", u.name, other.short()))
		} else {
			f = f.and(pass("%s: another body with its key: %d", u.name, other.status))
		}
		return f.and(succeeds(u, "the first body again", again), j.one(ctx, u, first, again))
	})
}

func (j *judge) otherKey(ctx context.Context) finding {
	return j.within(ctx, func(u unit) finding {
		first := j.send(ctx, u)
		other := u
		other.key += "-other"
		second := j.send(ctx, other)
		return succeeds(u, "the first key", first).and(succeeds(u, "another key", second), j.objects(ctx, u, 2, first, second))
	})
}

// refusedKeys sees that a request with the given keys is refused.
func (j *judge) refusedKeys(ctx context.Context, keys func(unit) []string) finding {
	return j.within(ctx, func(u unit) finding {
		r := j.request(u)
		r.keys = keys(u)
		a := j.client.send(ctx, r)
		if !a.refused() {
			return fail("%s: %s", u.name, a.short())
		}
		return pass("%s: refused: %d", u.name, a.status).and(j.objects(ctx, u, 0))
	})
}

func (j *judge) keyAbsent(ctx context.Context) finding {
	if j.endpoint.KeyOptional {
		return notTested("requests without a key are allowed")
	}
	return j.refusedKeys(ctx, func(unit) []string { return nil })
}

func (j *judge) keyDoubled(ctx context.Context) finding {
	return j.refusedKeys(ctx, func(u unit) []string { return []string{u.key, u.key + "-other"} })
}

func (j *judge) keyTooLong(ctx context.Context) finding {
	if j.endpoint.LongKey <= 0 {
		return notTested("no length was given that is too long")
	}
	return j.refusedKeys(ctx, func(u unit) []string {
		return []string{u.key + strings.Repeat("x", max(0, j.endpoint.LongKey-len(u.key)))}
	})
}

func (j *judge) refused(ctx context.Context) finding {
	if j.endpoint.Refused == nil {
		return notTested("no body was given that is refused")
	}
	return j.within(ctx, func(u unit) finding {
		r := j.request(u)
		r.body = j.endpoint.Refused(u.name)
		bad := j.client.send(ctx, r)
		if !bad.refused() {
			return inconclusive("%s: what should be refused: %s", u.name, bad.short())
		}
		good := j.send(ctx, u)
		return pass("%s: refused: %d", u.name, bad.status).and(
			succeeds(u, "the corrected request with the same key", good), j.one(ctx, u, good, j.send(ctx, u)))
	})
}
