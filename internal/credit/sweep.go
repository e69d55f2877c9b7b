package credit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Due names a balance that time does something to.
type Due struct{ ProjectID, Customer, CreditType string }

// dueGroup is how many balances are swept at a time.
const dueGroup = maxGroup

// Sweep does what time has done to balances that nobody touches: holds and
// grants expire. It returns how many balances it has seen to. Whoever changes a
// balance does the same for it first, so that nothing depends on when this
// runs.
func (s *Service) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		if err := s.writable(); err != nil {
			return total, err
		}
		due, err := s.params.Store.ListDue(ctx, s.env().now(), dueGroup)
		if err != nil {
			return total, fmt.Errorf("find balances that are due: %w", err)
		}
		if err := s.settle(ctx, due); err != nil {
			return total, fmt.Errorf("let credits and holds expire: %w", err)
		}
		total += len(due)
		if len(due) < dueGroup {
			return total, nil
		}
	}
}

// settle runs ops that do nothing but let time do what it does.
func (s *Service) settle(ctx context.Context, due []Due) error {
	errs := make([]error, len(due))
	var all sync.WaitGroup
	for i, one := range due {
		all.Go(func() {
			op := &Op{
				ProjectID: one.ProjectID, Subject: Subject{Customer: one.Customer, CreditType: one.CreditType},
				Decide: func(*State) (Effect, error) { return Effect{Repeat: true}, nil },
			}
			_, errs[i] = s.run(ctx, op)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// run does an op without a key and returns what became of it. The error is the
// op's own refusal, or unavailable.
func (s *Service) run(ctx context.Context, op *Op) (*Outcome, error) {
	if err := s.queue.do(ctx, op); err != nil {
		return nil, err
	}
	if err := op.Outcome.Err; err != nil {
		return nil, err
	}
	return &op.Outcome, nil
}

// DueStore finds balances that time does something to.
type DueStore interface {
	// ListDue returns up to limit balances whose time has come by now, the
	// longest due first.
	ListDue(ctx context.Context, now time.Time, limit int) ([]Due, error)
}
