package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// modelKeep is how long the model's answers are kept.
const modelKeep = 50 * time.Second

// One amount in two spellings, and another amount.
var modelBodies = []string{`{"amount":1}`, `{"amount":1.0}`, `{"amount":2}`}

// modelKey is what the model knows of a key.
type modelKey struct {
	state    idempotency.State // "" is never used, free or forgotten
	body     int
	answer   string
	owner    idempotency.Owner
	made     idempotency.Resource
	expires  time.Time // of the lease
	answers  time.Time // until when the answer is kept
	until    time.Time // until when the key is remembered; zero is for ever
	units    int
	wasOwner []idempotency.Owner
}

// model is a tiny store beside the real one.
type model struct {
	f     *fixture
	ctx   context.Context //nolint:containedctx // the actions of rapid take no others
	scope string
	keys  map[idempotency.Ref]*modelKey
	count int
}

// pick draws a request: two policies, two keys, three bodies.
func (m *model) pick(t *rapid.T) (idempotency.Request, *modelKey, int) {
	p := idempotency.CreditMovement(modelKeep)
	p.Retention.Tombstone = idempotency.ChosenFields(idempotency.Field{Name: "amount", Kind: idempotency.Decimal})
	if rapid.Bool().Draw(t, "forgets") {
		p = idempotency.IETF(modelKeep)
		p.Takes = idempotency.OnSuccess
	}
	body := rapid.IntRange(0, len(modelBodies)-1).Draw(t, "body")
	r := request(p, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), modelBodies[body])
	r.Scope = m.scope
	k := m.keys[r.Ref()]
	if k == nil {
		k = &modelKey{}
		m.keys[r.Ref()] = k
	}
	return r, k, body
}

// verdict is what the contract says of a request, in the order of its text.
func (m *model) verdict(r *idempotency.Request, k *modelKey, body int) (v idempotency.Verdict, expired bool) {
	now := m.f.clock.now()
	held := k.state == idempotency.Claimed && now.Before(k.expires)
	forgotten := !k.until.IsZero() && !now.Before(k.until)
	if k.state == "" || forgotten && !held {
		return idempotency.Fresh, false
	}
	expired = k.state == idempotency.Done && !now.Before(k.answers)
	same := k.body == body || expired && r.Policy.Retention.Tombstone != nil && k.body < 2 && body < 2
	switch {
	case !same:
		return idempotency.Conflicting, false
	case k.state == idempotency.Done:
		return idempotency.Repeated, expired
	case held:
		return idempotency.Busy, false
	default:
		return idempotency.Fresh, false
	}
}

// begin notes that the key has a new owner.
func (m *model) begin(r *idempotency.Request, k *modelKey, body int, o idempotency.Owner) {
	now := m.f.clock.now()
	forgotten := !k.until.IsZero() && !now.Before(k.until)
	if k.state != idempotency.Claimed || forgotten {
		k.made = idempotency.Resource{}
	}
	k.state, k.body, k.owner, k.answer, k.until = idempotency.Claimed, body, o, "", time.Time{}
	k.wasOwner = append(k.wasOwner, o)
	if r.Policy.Retention.Key > 0 {
		k.until = now.Add(r.Policy.Retention.Key)
	}
}

func (m *model) finish(r *idempotency.Request, k *modelKey, a idempotency.Answer) {
	now := m.f.clock.now()
	k.state, k.answer, k.answers, k.until = idempotency.Done, string(a.Body), now.Add(r.Policy.Retention.Answer), time.Time{}
	if a.Resource.ID != "" {
		k.made = a.Resource
	}
	if r.Policy.Retention.Key > 0 {
		k.until = now.Add(r.Policy.Retention.Key)
	}
}

// newAnswer makes an answer that no other request gets.
func (m *model) newAnswer() idempotency.Answer {
	m.count++
	return ok(fmt.Sprint(m.count))
}

// heard compares what a request heard with the verdict.
func (m *model) heard(t *rapid.T, k *modelKey, v idempotency.Verdict, expired bool, result idempotency.Result, err error) {
	e, _ := errors.AsType[*idempotency.Error](err)
	switch {
	case v == idempotency.Conflicting:
		if e == nil || e.Problem != idempotency.Mismatch {
			t.Fatalf("heard %+v, %v, want a conflict", result, err)
		}
	case v == idempotency.Busy:
		if e == nil || e.Problem != idempotency.StillRunning {
			t.Fatalf("heard %+v, %v, want busy", result, err)
		}
	case err != nil || !result.Replayed || result.AnswerExpired != expired || result.Record.Resource != k.made:
		t.Fatalf("heard %+v, %v, want a replay of %+v", result, err, k)
	case !expired && string(result.Answer.Body) != k.answer || expired && result.Answer != nil:
		t.Fatalf("replayed %+v, want %+v", result.Answer, k)
	}
}

// run is a request in the atomic form, whose work succeeds or refuses.
func (m *model) run(t *rapid.T) {
	r, k, body := m.pick(t)
	v, expired := m.verdict(&r, k, body)
	a := m.newAnswer()
	end := rapid.SampledFrom([]string{"ok", "ok", "error", "status"}).Draw(t, "end")
	if end == "status" {
		a.Status = 402
	}
	work := unit(m.ctx, m.unit(&r), a)
	if end == "error" {
		work = failing(work)
	}
	result, err := m.f.Run(m.ctx, r, work)
	if v != idempotency.Fresh {
		m.heard(t, k, v, expired, result, err)
		return
	}
	if end == "error" != errors.Is(err, errRefused) || end != "error" && (err != nil || result.Replayed || result.Answer.Status != a.Status) {
		t.Fatalf("heard %+v, %v, want the work to %s", result, err, end)
	}
	if end == "ok" {
		m.begin(&r, k, body, result.Record.Owner)
		m.finish(&r, k, a)
		k.units++
	}
}

// failing is work that is done and then refused.
func failing(work sqlstore.Work) sqlstore.Work {
	return func(tx *sql.Tx) (idempotency.Answer, error) {
		a, err := work(tx)
		return a, errors.Join(errRefused, err)
	}
}

func (m *model) unit(r *idempotency.Request) string { return fmt.Sprintf("%v", r.Ref()) }

// claim is the first half of a request in the leased form.
func (m *model) claim(t *rapid.T) {
	r, k, body := m.pick(t)
	v, expired := m.verdict(&r, k, body)
	c, err := m.f.Claim(m.ctx, r, lease)
	if err != nil || c.Judgement.Verdict != v || c.Judgement.AnswerExpired != expired {
		t.Fatalf("claimed %+v, %v, want %d", c, err, v)
	}
	if v == idempotency.Fresh {
		m.begin(&r, k, body, c.Owner)
		k.expires = m.f.clock.now().Add(lease)
		if c.Record.Resource != k.made || !c.Owner.ExpiresAt.Equal(k.expires) {
			t.Fatalf("claimed %+v, want %+v", c, k)
		}
	}
}

// own is what an owner does to a key, be it the last one or one before.
func (m *model) own(t *rapid.T) {
	r, k, _ := m.pick(t)
	if len(k.wasOwner) == 0 {
		return
	}
	o := k.wasOwner[rapid.IntRange(max(0, len(k.wasOwner)-2), len(k.wasOwner)-1).Draw(t, "owner")]
	last := o == k.owner
	holds := last && k.state == idempotency.Claimed
	a := m.newAnswer()
	var err error
	switch rapid.SampledFrom([]string{"renew", "made", "complete", "complete", "release"}).Draw(t, "what") {
	case "renew":
		if err = m.f.Renew(m.ctx, r.Ref(), o, lease); err == nil {
			k.expires = m.f.clock.now().Add(lease)
		}
	case "made":
		if err = m.f.Made(m.ctx, r.Ref(), o, a.Resource); err == nil {
			k.made = a.Resource
		}
	case "complete":
		a.Resource = rapid.SampledFrom([]idempotency.Resource{{}, a.Resource}).Draw(t, "resource")
		err = m.f.Complete(m.ctx, r, o, a)
		if holds && err == nil {
			m.finish(&r, k, a)
		}
		holds = holds || last && k.state == idempotency.Done // a repeat of its own end
	case "release":
		err = m.f.Release(m.ctx, r.Ref(), o)
		if holds && err == nil {
			k.state, k.made = "", idempotency.Resource{}
		}
		holds = holds || last && k.state == ""
	}
	if holds && err != nil || !holds && !errors.Is(err, idempotency.ErrLeaseLost) {
		t.Fatalf("the owner %+v of %+v heard %v", o, k, err)
	}
}

// sweep runs now, or by a clock that is ahead by as much as the grace allows.
func (m *model) sweep(t *rapid.T) {
	ahead := time.Duration(0)
	if rapid.Bool().Draw(t, "ahead") {
		ahead = sqlstore.SweepGrace
	}
	m.f.clock.advance(ahead)
	_, err := m.f.Sweep(m.ctx)
	m.f.clock.advance(-ahead)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range m.keys { // an owner whose forgotten key has gone holds nothing
		now := m.f.clock.now()
		gone := ahead > 0 && !k.until.IsZero() && !now.Before(k.until) && (k.state == idempotency.Done || !now.Before(k.expires))
		if ahead > 0 && k.state == "" || gone {
			k.state, k.owner = "", idempotency.Owner{}
		}
	}
}

// look is Judge, Find and the count of the work that was done.
func (m *model) look(t *rapid.T) {
	r, k, body := m.pick(t)
	v, expired := m.verdict(&r, k, body)
	result, fresh, err := m.f.Judge(m.ctx, r)
	if v != idempotency.Fresh {
		m.heard(t, k, v, expired, result, err)
	}
	rec, found, findErr := m.f.Find(m.ctx, r.Ref())
	now := m.f.clock.now()
	held := k.state == idempotency.Claimed && now.Before(k.expires)
	want := k.state != "" && (held || k.until.IsZero() || now.Before(k.until))
	if fresh != (v == idempotency.Fresh) || found != want || findErr != nil {
		t.Fatalf("fresh %v, found %v, %v, want %+v", fresh, found, findErr, k)
	}
	if found && (rec.State != k.state || rec.Resource != k.made || (rec.Answer != nil) != (k.state == idempotency.Done && now.Before(k.answers))) {
		t.Fatalf("found %+v, want %+v", rec, k)
	}
	var n int
	err = m.f.db.QueryRowContext(m.ctx, `SELECT COUNT(*) FROM work WHERE unit = $1`, m.unit(&r)).Scan(&n)
	if err != nil || n != k.units {
		t.Fatalf("%d units of work, %v, want %d", n, err, k.units)
	}
}

// Any order of requests, ends of owners, sweeps and passing of time: every
// answer is the contract's, and no unit of work is done twice.
func TestModel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		var n atomic.Int64
		rapid.Check(t, func(rt *rapid.T) {
			if n.Add(1) > 25 && d == sqlstore.PostgreSQL && !t.Failed() {
				return // it takes longer
			}
			m := &model{f: f, ctx: t.Context(), scope: fmt.Sprint(n.Load()), keys: map[idempotency.Ref]*modelKey{}}
			rt.Repeat(map[string]func(*rapid.T){
				"run": m.run, "claim": m.claim, "own": m.own, "sweep": m.sweep, "": m.look,
				"pass": func(t *rapid.T) {
					f.clock.advance(rapid.SampledFrom([]time.Duration{
						time.Microsecond, lease - time.Microsecond, lease, modelKeep - lease, modelKeep,
					}).Draw(t, "time"))
				},
			})
		})
	})
}
