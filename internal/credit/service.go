package credit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// Store keeps customers, credits and the ledger.
type Store interface {
	Ledger
	DueStore
	// Judge says what a request's key means; see release.Store.
	Judge(ctx context.Context, r idempotency.Request) (result idempotency.Result, fresh bool, err error)
	// FindMovement returns a project's movement and whether there is one.
	FindMovement(ctx context.Context, projectID, movementID string) (Movement, bool, error)
	// FindBalance returns a customer's balance of a credit type, and whether
	// the customer exists.
	FindBalance(ctx context.Context, projectID, customer, creditType string) (Balance, bool, error)
}

// Params configures a [Service].
type Params struct {
	Store Store
	// Workers is how many groups are committed at once.
	Workers int
	// KeepAnswers is how long first answers are kept.
	KeepAnswers time.Duration
	// Guard returns nil, or why nothing may be written now.
	Guard func() error
	// Tally counts repeats and conflicts.
	Tally *idempotency.Tally
	Clock func() time.Time
	// Random is where ids come from: crypto/rand.Reader.
	Random io.Reader
	Log    *slog.Logger
}

// Service moves credits.
type Service struct {
	params Params
	policy idempotency.Policy
	queue  *queue
	// answers are those that were given lately.
	answers *answers
}

// keyPolicy has the rules for keys, which are the same however long answers are
// kept.
var keyPolicy = idempotency.CreditMovement(0)

// KeyPolicy says which keys topups, charges and adjustments may have.
func KeyPolicy() *idempotency.Policy { return &keyPolicy }

// NewService returns a Service, which must be closed.
func NewService(p Params) *Service {
	return &Service{
		params: p, policy: idempotency.CreditMovement(p.KeepAnswers),
		queue: newQueue(&p), answers: newAnswers(p.KeepAnswers),
	}
}

// Close refuses what comes later and returns when what is under way is done.
func (s *Service) Close() { s.queue.close() }

// MoveParams is a request to move credits.
type MoveParams struct {
	ProjectID string
	Customer  string
	Kind      Kind // Topup, Charge or Adjust
	// Key has the form that the policy of credit movements demands.
	Key string
	// Body is the body, decoded in transit but not yet read as JSON.
	Body []byte
	// Decode reads Body. It is called before it is known whether the key is
	// free, and its faults are only heard if it is.
	Decode func() (Move, error)
	// Free, if set, is called before an error is returned that leaves a key
	// free that was found so.
	Free func()
	// Render makes the answer to a movement that was made.
	Render func(m *Movement, b Balance) ([]byte, error)
}

func (p *MoveParams) free() {
	if p.Free != nil {
		p.Free()
	}
}

// Moved is what a request to move credits came to.
type Moved struct {
	Replayed bool
	// Answer is the first answer; nil if it is not kept any more. Then
	// Movement is what was made, and Balance what is there now.
	Answer   *idempotency.Answer
	Movement Movement
	Balance  Balance
}

// Move moves credits once for each key. Errors: *idempotency.Error for a key
// that names other work; the faults of Decode; invalid_request;
// customer_not_found (of charges and adjustments); insufficient_credits;
// unavailable (with applied false or "unknown"). Every error but the first and
// "unknown" leaves the key free.
//
// Most keys are new, and whether one is, its claim decides: nothing is read
// before. Only a request that cannot be run looks at its key first, since a key
// that is taken says so whatever else is wrong.
func (s *Service) Move(ctx context.Context, p MoveParams) (Moved, error) {
	r, began := request(&s.policy, &p), s.env().now()
	if first := s.answers.find(&r, began); first != nil {
		s.params.Tally.Repeat(r.Ref())
		return Moved{Replayed: true, Answer: first}, nil
	}
	op, refused := s.op(&p, r)
	for {
		if refused == nil {
			refused = s.queue.do(ctx, op)
		}
		switch {
		case refused == nil:
			return s.moved(ctx, &p, op, began)
		case op != nil && !NotRun(refused):
			return Moved{}, fmt.Errorf("move credits: %w", refused)
		}
		result, fresh, err := s.params.Store.Judge(ctx, r)
		switch {
		case err != nil:
			return Moved{}, s.refused(r, err)
		case !fresh:
			return s.replay(ctx, r, result)
		case errors.Is(refused, ErrTaken):
			refused = nil
		default:
			p.free()
			return Moved{}, refused
		}
	}
}

// moved is what an op came to that was run.
func (s *Service) moved(ctx context.Context, p *MoveParams, op *Op, began time.Time) (Moved, error) {
	r, o := *op.Key, &op.Outcome
	_, judged := errors.AsType[*idempotency.Error](o.Err)
	switch {
	case judged:
		return Moved{}, s.refused(r, o.Err)
	case o.Err != nil:
		p.free()
		return Moved{}, o.Err
	case o.Key.Replayed:
		return s.replay(ctx, r, o.Key)
	case o.Key.Answer == nil: // its own work, whose COMMIT took longer than answers are kept
		return s.read(ctx, r, o.Key)
	default:
		s.answers.keep(&r, o.Key.Answer, began)
		return Moved{Answer: o.Key.Answer}, nil
	}
}

// request is what the key layer knows of p.
func request(policy *idempotency.Policy, p *MoveParams) idempotency.Request {
	return idempotency.Request{
		Policy: policy, Scope: p.ProjectID, Key: p.Key, Body: p.Body,
		Facts: []idempotency.Fact{{Name: "method", Value: string(p.Kind)}, {Name: "customer", Value: p.Customer}},
	}
}

// refused counts conflicts.
func (s *Service) refused(r idempotency.Request, err error) error {
	if errors.Is(err, &idempotency.Error{Problem: idempotency.Mismatch}) {
		s.params.Tally.Conflict(r.Ref())
	}
	return err
}

// replay answers a repeat.
func (s *Service) replay(ctx context.Context, r idempotency.Request, result idempotency.Result) (Moved, error) {
	s.params.Tally.Repeat(r.Ref())
	if result.Answer != nil {
		return Moved{Replayed: true, Answer: result.Answer}, nil
	}
	m, err := s.read(ctx, r, result)
	m.Replayed = true
	return m, err
}

// read reads the movement that a key names, and the balance as it is now.
func (s *Service) read(ctx context.Context, r idempotency.Request, result idempotency.Result) (Moved, error) {
	m, found, err := s.params.Store.FindMovement(ctx, r.Scope, result.Record.Resource.ID)
	if err == nil && !found {
		err = errors.New("a key names a movement that does not exist")
	}
	if err != nil {
		return Moved{}, fmt.Errorf("read the movement of a key: %w", err)
	}
	balance, _, err := s.params.Store.FindBalance(ctx, r.Scope, m.Customer, m.CreditType)
	if err != nil {
		return Moved{}, fmt.Errorf("read a balance: %w", err)
	}
	return Moved{Movement: m, Balance: balance}, nil
}

// op reads and checks a request whose key is free.
func (s *Service) op(p *MoveParams, r idempotency.Request) (*Op, error) {
	move, err := p.Decode()
	if err != nil {
		return nil, err
	}
	now := s.env().now()
	if err := errors.Join(ValidateCustomer(p.Customer), move.validate(p.Kind, now)); err != nil {
		return nil, err
	}
	if err := s.writable(); err != nil {
		return nil, err
	}
	movementID, err := s.env().newID()
	if err != nil {
		return nil, err
	}
	op := &Op{
		ProjectID: p.ProjectID, Key: &r,
		Subject: Subject{
			Customer: p.Customer, CreditType: move.CreditType,
			CreateCustomer: p.Kind == Topup, CreateAccount: p.Kind == Topup || p.Kind == Adjust && move.Amount > 0,
		},
		Answer: func(o *Outcome) (idempotency.Answer, error) {
			body, err := p.Render(o.Movement, o.Balance)
			return idempotency.Answer{
				Status: 200, ContentType: "application/json", Body: body,
				Resource: idempotency.Resource{Kind: string(p.Kind), ID: movementID},
			}, err
		},
	}
	if _, err := io.ReadFull(s.params.Random, op.Token[:]); err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	op.Decide = func(st *State) (Effect, error) {
		entry, err := st.Account.apply(p.Kind, move, movementID, st.Now)
		if err != nil {
			return Effect{}, refusal(err, st)
		}
		return Effect{Movements: []Movement{{
			ID: movementID, ProjectID: p.ProjectID, Customer: st.Customer, CreditType: st.CreditType, Entry: entry,
			Reason: move.Reason, Metadata: move.Metadata, Key: p.Key, Grant: move.Grant,
		}}}, nil
	}
	return op, nil
}

// apply does a move to the account.
func (a *Account) apply(kind Kind, m Move, movementID string, now time.Time) (Entry, error) {
	switch {
	case kind == Topup:
		m.Grant.Movement = movementID
		return a.Topup(m.Amount, m.Grant, now)
	case kind == Charge:
		return a.Spend(Charge, m.Amount, m.Amount, now)
	case m.Amount < 0:
		return a.Spend(Adjust, -m.Amount, m.Amount, now)
	default:
		return a.Add(Adjust, m.Amount, m.Amount, now)
	}
}

// refusal is the fault for what an account refuses.
func refusal(err error, st *State) error {
	b := st.Account.Balance()
	switch {
	case errors.Is(err, ErrInsufficient):
		return fault.Wrap(api.CodeInsufficientCredits, err, "not enough credits are available").
			With("credit_type", st.CreditType).With("balance", map[string]string{
			"posted": b.Posted.String(), "held": b.Held.String(), "available": b.Available().String(),
		})
	case errors.Is(err, ErrRange):
		return fault.Wrap(api.CodeInvalidRequest, err, "%s", ErrRange).With("field", "amount")
	default:
		return err
	}
}

// writable returns unavailable when nothing may be written.
func (s *Service) writable() error { return writable(s.params.Guard) }

func (s *Service) env() env { return env{s.params.Clock, s.params.Random} }

// env is where times and ids come from.
type env struct {
	clock  func() time.Time
	random io.Reader
}

func (e env) now() time.Time { return e.clock().UTC().Truncate(time.Microsecond) }

func (e env) newID() (string, error) { return id.New(e.clock(), e.random) }

// Note is what may be said about a movement or hold.
type Note struct {
	Reason   string
	Metadata map[string]json.RawMessage
}
