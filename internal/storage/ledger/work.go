package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	keystore "github.com/actionpulse/actionpulse/idempotency/sqlstore"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// Apply implements credit.Ledger. The order in which it locks is the same for
// every group: keys, customers, credit types, balances, each in their own
// order; what a balance has is only touched by who has locked it.
func (s *Store) Apply(ctx context.Context, g credit.Group) error {
	var w *work
	err := s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		w = &work{store: s, batch: b, now: g.Now, newID: g.NewID, accounts: map[place]*account{}}
		for _, op := range g.Ops {
			op.Outcome = credit.Outcome{}
			w.members = append(w.members, &member{Op: op})
		}
		return w.run(ctx)
	})
	crash.Point("movements.committed")
	if err == nil {
		w.remember()
	}
	if w.noticed && s.noticed != nil {
		s.noticed()
	}
	return err
}

// work is one group being done.
type work struct {
	store   *Store
	batch   *sqldb.Batch
	now     time.Time
	newID   func() (string, error)
	members []*member
	// accounts are those that the group is about.
	accounts map[place]*account
	// subscribers are those of webhooks, by project.
	subscribers map[string][]webhook.Subscriber
	// writes are what is to be written when all is decided; movements and
	// balances are rows of such statements.
	writes              []sqldb.Statement
	movements, balances [][]any
	// noticed says that there are messages among them.
	noticed bool
}

// member is one op of the group.
type member struct {
	*credit.Op

	key        keystore.Member
	customerID int64
	typeID     int64
	typeName   string
	negative   bool
	// there says that the balance was there before the group.
	there bool
	// customer is the external id.
	customer string
	account  *account
	// along is what another store keeps with the op, nil if nothing.
	along Along
	// settled says that the op has its outcome.
	settled bool
}

// place names a balance.
type place struct{ customerID, typeID int64 }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.customerID, o.customerID), cmp.Compare(p.typeID, o.typeID))
}

// run does the group, step by step.
func (w *work) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		w.claim, w.recall, w.findCustomers, w.findTypes, w.lock, w.loadLots, w.loadDue, w.readAlong, w.decide, w.write,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open are the members that have no outcome yet.
func (w *work) open() []*member {
	return slices.DeleteFunc(slices.Clone(w.members), func(m *member) bool { return m.settled })
}

// refuse gives a member its outcome.
func (m *member) refuse(err error) {
	m.Outcome.Err, m.settled = err, true
}

// statements runs statements of the key store in the group's transaction.
func (w *work) statements(ctx context.Context, list []keystore.Statement) error {
	out := make([]sqldb.Statement, len(list))
	for i, one := range list {
		out[i] = sqldb.Statement(one)
	}
	return w.batch.Run(ctx, out)
}

// claim claims the keys: the first thing that the transaction does.
func (w *work) claim(ctx context.Context) error {
	var claims []*keystore.Member
	var owners []*member
	for _, m := range w.members {
		if m.Key != nil {
			m.key = keystore.Member{Request: m.Key, Token: m.Token}
			claims, owners = append(claims, &m.key), append(owners, m)
		}
	}
	if err := w.store.db.Keys().ClaimGroup(ctx, w.statements, claims); err != nil {
		return err
	}
	crash.Point("movements.claimed")
	for _, m := range owners {
		if m.key.Claim.Judgement.Verdict == idempotency.Fresh {
			continue
		}
		result, err := m.key.Claim.Judgement.Resolve(m.Key, m.key.Claim.Record)
		if m.key.Mine {
			result.Replayed = false
		}
		m.Outcome.Key = result
		m.refuse(err)
	}
	return nil
}

// decide lets every op decide on its account, in the order of their arrival.
func (w *work) decide(context.Context) error {
	for _, m := range w.open() {
		state := &credit.State{
			Account: &m.account.Account, Customer: m.customer, CreditType: m.typeName, Now: w.now,
			Hold: m.account.holds[m.Subject.HoldID],
		}
		if m.Subject.MovementID != "" {
			state.Original, state.Undo = m.account.movements[m.Subject.MovementID], m.account.reversals[m.Subject.MovementID]
		}
		effect, err := m.Decide(state)
		if _, ok := errors.AsType[*fault.Error](err); ok {
			m.refuse(err)
			continue
		}
		if err != nil { // no refusal: the account may be half changed
			return fmt.Errorf("decide about a movement: %w", err)
		}
		if err := w.take(m, effect); err != nil {
			return err
		}
	}
	return nil
}

// take notes what an op does.
func (w *work) take(m *member, e credit.Effect) error {
	o := &m.Outcome
	if len(e.Movements) > 0 {
		o.Movement = &e.Movements[0]
	}
	o.Hold, o.Created, o.Balance = e.Hold, !e.Repeat, m.account.Balance()
	m.settled = true
	if e.Repeat {
		return nil
	}
	if m.account.missing && (len(e.Movements) > 0 || e.Hold != nil) {
		return fmt.Errorf("an op has changed a balance that does not exist: %s of %s", m.typeName, m.customer)
	}
	m.account.movementsMade = append(m.account.movementsMade, e.Movements...)
	m.account.tell(e.Movements, w.now)
	if e.Hold != nil {
		m.account.take(e.Hold)
	}
	for i := range e.Movements {
		if of := e.Movements[i].Of; e.Movements[i].Kind == credit.Reversal {
			m.account.reversals[of] = &e.Movements[i]
		}
	}
	if m.Key == nil {
		return nil
	}
	answer, err := m.Answer(o)
	if err != nil {
		return fmt.Errorf("answer a movement: %w", err)
	}
	o.Key = idempotency.Result{Answer: &answer}
	return nil
}
