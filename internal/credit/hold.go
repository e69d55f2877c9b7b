package credit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// holdContent is what of a hold's body is compared: everything, by value.
var holdContent = idempotency.NormalJSON(
	idempotency.Field{Name: "amount", Kind: idempotency.Decimal},
	idempotency.Field{Name: "expires_at", Kind: idempotency.Timestamp},
)

// PlaceParams is a request to set an amount aside.
type PlaceParams struct {
	ProjectID  string
	Customer   string
	HoldID     string
	CreditType string
	Amount     Amount
	// ExpiresAt is zero for a hold that does not expire.
	ExpiresAt time.Time
	Note      Note
	// Body is the JSON that said so; repeats are compared by it.
	Body []byte
}

// HoldResult is a hold, the movement that has used it, nil if there is none,
// and what there is now.
type HoldResult struct {
	Hold     StoredHold
	Movement *Movement
	Balance  Balance
	// Created says that this request has made the hold.
	Created bool
}

func validateHoldID(holdID string) error {
	if !validText(holdID, customerLimit) || holdID == "." || holdID == ".." {
		return invalid("hold", "a hold's id has 1 to %d characters and no control characters, and is not . or ..", customerLimit)
	}
	return nil
}

func (p *PlaceParams) validate() error {
	if err := errors.Join(ValidateCustomer(p.Customer), validateHoldID(p.HoldID)); err != nil {
		return err
	}
	if p.Amount <= 0 {
		return invalid("amount", "amount must be more than zero")
	}
	if err := validateCreditType(p.CreditType); err != nil {
		return err
	}
	return validateNote(p.Note.Reason, p.Note.Metadata)
}

// PlaceHold sets an amount aside, or returns the hold as it is now if it was
// placed with the same content. Faults: conflict if it was placed with other
// content; customer_not_found; insufficient_credits; invalid_request;
// unavailable.
func (s *Service) PlaceHold(ctx context.Context, p PlaceParams) (HoldResult, error) {
	if err := p.validate(); err != nil {
		return HoldResult{}, err
	}
	if err := s.writable(); err != nil {
		return HoldResult{}, err
	}
	content, err := printOf(p.Body)
	if err != nil {
		return HoldResult{}, err
	}
	op := func() *Op {
		return &Op{
			ProjectID: p.ProjectID,
			Subject:   Subject{Customer: p.Customer, CreditType: p.CreditType, HoldID: p.HoldID},
			Decide:    func(st *State) (Effect, error) { return place(st, &p, content) },
		}
	}
	outcome, err := s.run(ctx, op())
	if _, ok := errors.AsType[*fault.Error](err); err != nil && !ok {
		// Another server may have placed one of this name at the same moment,
		// of another credit type. Then it is there now.
		outcome, err = s.run(ctx, op())
	}
	if err != nil {
		return HoldResult{}, fmt.Errorf("place a hold: %w", err)
	}
	return s.holdResult(ctx, p.ProjectID, outcome)
}

// place decides about a hold that is to be placed.
func place(st *State, p *PlaceParams, content string) (Effect, error) {
	if st.Hold != nil {
		if st.Hold.Print == content {
			return Effect{Hold: st.Hold, Repeat: true}, nil
		}
		return Effect{}, fault.New(api.CodeConflict, "there is a hold of this name with other content").
			With("state", st.Hold.State).With("differs", differs(content, st.Hold.Print))
	}
	if past(p.ExpiresAt, st.Now) {
		return Effect{}, invalid("expires_at", "expires_at must be in the future")
	}
	h := &StoredHold{
		Hold:     Hold{ID: p.HoldID, Amount: p.Amount, ExpiresAt: p.ExpiresAt},
		Customer: st.Customer, CreditType: st.CreditType, Print: content, Note: p.Note,
	}
	if err := st.Account.Place(&h.Hold, st.Now); err != nil {
		return Effect{}, refusal(err, st)
	}
	return Effect{Hold: h}, nil
}

// printOf is what a repeat of a body is compared by.
func printOf(body []byte) (string, error) {
	content, err := holdContent.Print(&idempotency.Request{Body: body}).MarshalBinary()
	if err != nil {
		return "", fmt.Errorf("make the print of a hold: %w", err)
	}
	return base64.StdEncoding.EncodeToString(content), nil
}

// differs names the members in which two prints differ.
func differs(one, other string) []string {
	var a, b idempotency.Print
	for text, to := range map[string]*idempotency.Print{one: &a, other: &b} {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || to.UnmarshalBinary(raw) != nil {
			return []string{}
		}
	}
	return a.Differs(b)
}

// CloseParams is a request to end a hold.
type CloseParams struct {
	ProjectID string
	Customer  string
	HoldID    string
	// Amount is what is captured; nil is the whole hold.
	Amount *Amount
	Note   Note
}

func (p *CloseParams) validate() error {
	if ValidateCustomer(p.Customer) != nil || validateHoldID(p.HoldID) != nil {
		return noHold()
	}
	if p.Amount != nil && *p.Amount < 0 {
		return invalid("amount", "amount must not be less than zero")
	}
	return validateNote(p.Note.Reason, p.Note.Metadata)
}

// CaptureHold uses an amount of a hold and lets the rest go. A repeat with the
// same amount returns the hold and its movement. Faults: conflict if the hold
// was captured with another amount, released or has expired (details.state);
// invalid_request if the amount is more than is held; not_found;
// customer_not_found; unavailable.
func (s *Service) CaptureHold(ctx context.Context, p CloseParams) (HoldResult, error) {
	movementID, err := s.env().newID()
	if err != nil {
		return HoldResult{}, err
	}
	return s.closeHold(ctx, p, func(st *State) (Effect, error) {
		if err := callers(st.Hold); err != nil {
			return Effect{}, err
		}
		effect, expired, err := capture(st, &p, movementID)
		if err != nil {
			return Effect{}, err
		}
		more, err := expiries(st, p.ProjectID, expired, s.env().newID)
		effect.Movements = append(effect.Movements, more...)
		return effect, err
	})
}

// capture decides about a hold that is to be captured. What has expired with it
// is the second result.
func capture(st *State, p *CloseParams, movementID string) (Effect, []Entry, error) {
	h := st.Hold
	amount := h.Amount
	if p.Amount != nil {
		amount = *p.Amount
	}
	if h.State == HoldCaptured && h.Captured == amount {
		return Effect{Hold: h, Repeat: true}, nil, nil
	}
	entry, expired, err := st.Account.Capture(&h.Hold, amount, st.Now)
	switch {
	case errors.Is(err, ErrClosed):
		return Effect{}, nil, closed(err, h)
	case errors.Is(err, ErrHoldAmount):
		return Effect{}, nil, fault.Wrap(api.CodeInvalidRequest, err, "amount is more than what is held").
			With("field", "amount").With("held", h.Amount.String())
	case err != nil:
		return Effect{}, nil, refusal(err, st)
	}
	h.Movement = movementID
	return Effect{Hold: h, Movements: []Movement{{
		ID: movementID, ProjectID: p.ProjectID, Customer: st.Customer, CreditType: st.CreditType, Entry: entry,
		Reason: p.Note.Reason, Metadata: p.Note.Metadata, Of: h.ID, Execution: h.Execution,
	}}}, expired, nil
}

// callers refuses to end a hold that is not the caller's.
func callers(h *StoredHold) error {
	if h.Execution == "" {
		return nil
	}
	return fault.New(api.CodeConflict, "the hold belongs to an execution, which ends it").
		With("state", h.State).With("execution_id", h.Execution)
}

// closed is the refusal to do something to a hold that has ended.
func closed(err error, h *StoredHold) error {
	f := fault.Wrap(api.CodeConflict, err, "the hold is not open any more: it was %s", h.State).With("state", h.State)
	if h.State == HoldCaptured {
		f = f.With("captured", h.Captured.String())
	}
	return f
}

// ReleaseHold lets a hold go. A repeat returns it. Faults: conflict if it was
// captured or has expired (details.state); not_found; customer_not_found;
// unavailable.
func (s *Service) ReleaseHold(ctx context.Context, p CloseParams) (HoldResult, error) {
	return s.closeHold(ctx, p, func(st *State) (Effect, error) {
		if err := callers(st.Hold); err != nil {
			return Effect{}, err
		}
		if st.Hold.State == HoldReleased {
			return Effect{Hold: st.Hold, Repeat: true}, nil
		}
		expired, err := st.Account.Release(&st.Hold.Hold, st.Now)
		if err != nil {
			return Effect{}, closed(err, st.Hold)
		}
		movements, err := expiries(st, p.ProjectID, expired, s.env().newID)
		return Effect{Hold: st.Hold, Movements: movements}, err
	})
}

// expiries are the movements of what has expired when a hold was let go.
func expiries(st *State, projectID string, entries []Entry, newID func() (string, error)) ([]Movement, error) {
	var list []Movement
	for _, e := range entries {
		movementID, err := newID()
		if err != nil {
			return nil, err
		}
		list = append(list, Movement{
			ID: movementID, ProjectID: projectID, Customer: st.Customer, CreditType: st.CreditType, Entry: e,
		})
	}
	return list, nil
}

// closeHold runs an op on a hold that must be there.
func (s *Service) closeHold(ctx context.Context, p CloseParams, decide func(*State) (Effect, error)) (HoldResult, error) {
	if err := p.validate(); err != nil {
		return HoldResult{}, err
	}
	if err := s.writable(); err != nil {
		return HoldResult{}, err
	}
	outcome, err := s.run(ctx, &Op{
		ProjectID: p.ProjectID, Subject: Subject{Customer: p.Customer, HoldID: p.HoldID}, Decide: decide,
	})
	if err != nil {
		return HoldResult{}, fmt.Errorf("end a hold: %w", err)
	}
	return s.holdResult(ctx, p.ProjectID, outcome)
}

// holdResult completes what became of a hold with the movement that has used
// it.
func (s *Service) holdResult(ctx context.Context, projectID string, o *Outcome) (HoldResult, error) {
	r := HoldResult{Hold: *o.Hold, Balance: o.Balance, Created: o.Created}
	if r.Hold.Movement == "" {
		return r, nil
	}
	if o.Movement != nil && o.Movement.ID == r.Hold.Movement {
		r.Movement = o.Movement
		return r, nil
	}
	m, found, err := s.params.Store.FindMovement(ctx, projectID, r.Hold.Movement)
	if err == nil && !found {
		err = errors.New("a hold names a movement that does not exist")
	}
	if err != nil {
		return HoldResult{}, fmt.Errorf("read the movement of a hold: %w", err)
	}
	r.Movement = &m
	return r, nil
}
