package idempotency_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/idempotency"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// The bodies of the table: the first request's; the same facts in another
// spelling; another.
const (
	sameBody    = `{"credit_type":"main","amount":"5"}`
	respelt     = `{"amount":5.0,"credit_type":"main"}`
	anotherBody = `{"credit_type":"main","amount":"6"}`
)

// situation is one row of the table of verdicts.
type situation struct {
	state         idempotency.State
	keyExpired    bool
	answerExpired bool
	answerGone    bool // swept, or never kept
	lapsed        bool // the lease
	body          string
	policy        string
}

func policies() map[string]idempotency.Policy {
	return map[string]idempotency.Policy{
		"marker": idempotency.ReleaseMarker(), "movement": idempotency.CreditMovement(time.Hour),
		"execution": idempotency.Execution(), "draft": idempotency.IETF(time.Hour),
	}
}

func ago(is bool) time.Time {
	if is {
		return noon
	}
	return noon.Add(time.Microsecond)
}

func (s *situation) judge() idempotency.Judgement {
	p := policies()[s.policy]
	first := idempotency.Request{Policy: &p, Body: []byte(sameBody)}
	rec := idempotency.Record{
		State: s.state, Owner: idempotency.Owner{ExpiresAt: ago(s.lapsed)},
		Print: p.Compare.Print(&first), KeyExpiresAt: ago(s.keyExpired), AnswerExpiresAt: ago(s.answerExpired),
	}
	if p.Retention.Tombstone != nil {
		rec.Tombstone = p.Retention.Tombstone.Print(&first)
	}
	if !s.answerGone {
		rec.Answer = &idempotency.Answer{Status: 200}
	}
	again := idempotency.Request{Policy: &p, Body: []byte(s.body)}
	return idempotency.Judge(&again, &rec, noon)
}

// want is the contract, written as what must hold and not as the code has it.
func (s *situation) want() (verdict idempotency.Verdict, expired bool) {
	held := s.state == idempotency.Claimed && !s.lapsed
	if s.state == idempotency.Free || s.keyExpired && !held {
		return idempotency.Fresh, false
	}
	keepsAnswer := s.policy == "movement" || s.policy == "draft"
	expired = s.state == idempotency.Done && keepsAnswer && (s.answerExpired || s.answerGone)
	// Only what is kept of a movement for ever is compared by value here: the
	// marker has no rule by which "5" and 5.0 are one.
	byValue := s.policy == "movement" && expired
	if s.body == anotherBody || s.body == respelt && !byValue {
		return idempotency.Conflicting, false
	}
	switch {
	case s.state == idempotency.Done:
		return idempotency.Repeated, expired
	case held:
		return idempotency.Busy, false
	default:
		return idempotency.Fresh, false
	}
}

func TestEveryVerdict(t *testing.T) {
	both := []bool{false, true}
	rows := 0
	for policy := range policies() {
		for _, state := range []idempotency.State{idempotency.Free, idempotency.Claimed, idempotency.Done} {
			for _, body := range []string{sameBody, respelt, anotherBody} {
				for bits := range 16 {
					is := func(bit int) bool { return both[bits>>bit&1] }
					s := situation{state, is(0), is(1), is(2), is(3), body, policy}
					verdict, expired := s.want()
					got := s.judge()
					if got.Verdict != verdict || got.AnswerExpired != expired ||
						(verdict == idempotency.Conflicting) != (len(got.Differs) > 0) {
						t.Errorf("%+v: got %+v, want %d expired %t", s, got, verdict, expired)
					}
					rows++
				}
			}
		}
	}
	if rows != 4*3*3*16 {
		t.Fatalf("%d rows", rows)
	}
}

// judgeBody judges a body against one that has taken the key.
func judgeBody(p idempotency.Policy, rec idempotency.Record, body string, now time.Time) idempotency.Judgement {
	first := idempotency.Request{Policy: &p, Body: []byte(sameBody)}
	rec.Print = p.Compare.Print(&first)
	if p.Retention.Tombstone != nil {
		rec.Tombstone = p.Retention.Tombstone.Print(&first)
	}
	return idempotency.Judge(&idempotency.Request{Policy: &p, Body: []byte(body)}, &rec, now)
}

// A mismatch is told while the first request runs: waiting for it would not
// help.
func TestMismatchBeforeRunning(t *testing.T) {
	rec := idempotency.Record{State: idempotency.Claimed, Owner: idempotency.Owner{ExpiresAt: noon.Add(time.Second)}}
	if got := judgeBody(idempotency.Execution(), rec, anotherBody, noon); got.Verdict != idempotency.Conflicting {
		t.Errorf("got %+v", got)
	}
	if got := judgeBody(idempotency.Execution(), rec, sameBody, noon); got.Verdict != idempotency.Busy {
		t.Errorf("got %+v", got)
	}
}

// An abandoned work may have been done: only its own repeat may go on with it.
func TestAnAbandonedKeyIsClosedToOthers(t *testing.T) {
	rec := idempotency.Record{State: idempotency.Claimed, Owner: idempotency.Owner{ExpiresAt: noon}}
	if got := judgeBody(idempotency.Execution(), rec, anotherBody, noon); got.Verdict != idempotency.Conflicting {
		t.Errorf("got %+v", got)
	}
	if got := judgeBody(idempotency.Execution(), rec, sameBody, noon); got.Verdict != idempotency.Fresh {
		t.Errorf("got %+v", got)
	}
}

// A key that was taken before its policy had a tombstone is compared as it was
// then; a stored print must never be compared with one of another kind.
func TestATombstoneThatCameLater(t *testing.T) {
	p := idempotency.CreditMovement(time.Hour)
	first := idempotency.Request{Policy: &p, Body: []byte(sameBody)}
	rec := idempotency.Record{State: idempotency.Done, Print: p.Compare.Print(&first), AnswerExpiresAt: noon}
	if got := idempotency.Judge(&first, &rec, noon); got.Verdict != idempotency.Repeated || !got.AnswerExpired {
		t.Errorf("got %+v", got)
	}
}

func TestSameJSONMeansOnlyTheSpelling(t *testing.T) {
	p := idempotency.Execution()
	request := func(body, customer string) *idempotency.Request {
		return &idempotency.Request{Policy: &p, Body: []byte(body), Facts: []idempotency.Fact{{Name: "customer", Value: customer}}}
	}
	rec := idempotency.Record{State: idempotency.Done, Print: p.Compare.Print(request(`{"a":1,"b":2}`, "ada"))}
	for _, tt := range []struct {
		body, customer string
		differs        []string
		sameJSON       bool
	}{
		{`{"b":2,"a":1.0}`, "ada", []string{"body"}, true},
		{`{"b":2,"a":2}`, "ada", []string{"body"}, false},
		{`{"b":2,"a":1}`, "eve", []string{"customer", "body"}, false},
		{`{"a":1,"b":2}`, "eve", []string{"customer"}, false},
		{`{"a":1,"b":2`, "ada", []string{"body"}, false},
	} {
		got := idempotency.Judge(request(tt.body, tt.customer), &rec, noon)
		if got.Verdict != idempotency.Conflicting || !slices.Equal(got.Differs, tt.differs) || got.SameJSON != tt.sameJSON {
			t.Errorf("%s for %s: got %+v", tt.body, tt.customer, got)
		}
	}
}

// TestTimeOnlyGoesOneWay: as time passes, a key that is done is a repeat with
// its answer, a repeat without it, then unknown; and a clock that steps back
// says again what it said at that time, except about bytes that are gone.
func TestTimeOnlyGoesOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policies()[rapid.SampledFrom([]string{"marker", "movement", "execution", "draft"}).Draw(t, "policy")]
		second := func(label string) time.Time {
			return noon.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, label)) * time.Second)
		}
		rec := idempotency.Record{State: idempotency.Done, Answer: &idempotency.Answer{}, AnswerExpiresAt: second("answer")}
		if rapid.Bool().Draw(t, "forgets") {
			rec.KeyExpiresAt = rec.AnswerExpiresAt.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "key")) * time.Second)
		}
		phase := func(now time.Time) int {
			switch j := judgeBody(p, rec, sameBody, now); {
			case j.Verdict == idempotency.Fresh:
				return 2
			case j.AnswerExpired:
				return 1
			default:
				return 0
			}
		}
		early, late := second("early"), second("late")
		if late.Before(early) {
			early, late = late, early
		}
		before := phase(early)
		if after := phase(late); after < before {
			t.Fatalf("phase %d at %v and %d at %v", before, early, after, late)
		}
		if again := phase(early); again != before {
			t.Fatalf("a clock that steps back: phase %d, then %d", before, again)
		}
		rec.Answer = nil
		if p.Repeat == idempotency.FirstAnswer && phase(early) == 0 {
			t.Fatal("an answer that is gone counts as kept")
		}
	})
}

func TestResolve(t *testing.T) {
	p := idempotency.IETF(time.Hour)
	p.Running.RetryAfter = 3 * time.Second
	r := &idempotency.Request{Policy: &p, Scope: "s", Key: "k"}
	answer := &idempotency.Answer{Status: 201}
	rec := idempotency.Record{Ref: r.Ref(), Answer: answer}

	busy := idempotency.Judgement{Verdict: idempotency.Busy}
	_, err := busy.Resolve(r, rec)
	e, ok := errors.AsType[*idempotency.Error](err)
	if !ok || e.Problem != idempotency.StillRunning || e.RetryAfter != 3*time.Second || e.Refusal.Status != 409 || e.Record.Key != "k" {
		t.Errorf("busy: %+v", e)
	}
	conflicting := idempotency.Judgement{Verdict: idempotency.Conflicting, Differs: []string{"body"}, SameJSON: true}
	_, err = conflicting.Resolve(r, rec)
	e, ok = errors.AsType[*idempotency.Error](fmt.Errorf("wrapped: %w", err))
	if !ok || e.Problem != idempotency.Mismatch || e.Refusal.Status != 422 || !e.SameJSON || len(e.Differs) != 1 {
		t.Errorf("conflicting: %+v", e)
	}
	if !errors.Is(err, &idempotency.Error{Problem: idempotency.Mismatch}) || errors.Is(err, &idempotency.Error{Problem: idempotency.Missing}) {
		t.Error("errors are told apart by their problem")
	}
	repeated := idempotency.Judgement{Verdict: idempotency.Repeated}
	result, err := repeated.Resolve(r, rec)
	if err != nil || !result.Replayed || result.Answer != answer || result.AnswerExpired {
		t.Errorf("repeated: %+v, %v", result, err)
	}
	repeated.AnswerExpired = true
	if result, err := repeated.Resolve(r, rec); err != nil || result.Answer != nil || !result.AnswerExpired {
		t.Errorf("an answer that has expired is shown: %+v, %v", result, err)
	}
	p.Repeat = idempotency.CurrentResource
	repeated.AnswerExpired = false
	if result, err := repeated.Resolve(r, rec); err != nil || result.Answer != nil {
		t.Errorf("an answer is shown instead of the resource: %+v, %v", result, err)
	}
}
