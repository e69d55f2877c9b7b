package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// loadDue reads the holds and movements that ops name, and the holds whose
// time has come; then time does what it does.
func (w *work) loadDue(ctx context.Context) error {
	statements := w.named()
	for _, a := range w.sorted() {
		if a.NextDue.IsZero() || w.now.Before(a.NextDue) {
			continue
		}
		statements = append(statements, sqldb.Statement{
			Text: dueHoldsText, Args: []any{a.place.customerID, a.place.typeID, w.now.UnixMicro()}, Row: a.scanHold,
		}, sqldb.Statement{
			Text: nextHoldText, Args: []any{a.place.customerID, a.place.typeID, w.now.UnixMicro()},
			Row: func(scan func(...any) error) error {
				var at sql.NullInt64
				err := scan(&at)
				a.NextHold = sqldb.TimeOf(at)
				return err
			},
		})
	}
	if err := w.batch.Run(ctx, statements); err != nil {
		return fmt.Errorf("read holds and movements: %w", err)
	}
	if err := w.loadPins(ctx); err != nil {
		return err
	}
	return w.settle()
}

// named are the statements that read what ops name.
func (w *work) named() []sqldb.Statement {
	var statements []sqldb.Statement
	for _, m := range w.open() {
		a := m.account
		if id := m.Subject.HoldID; id != "" {
			statements = append(statements, sqldb.Statement{
				Text: findHoldText, Args: []any{m.customerID, id}, Row: a.scanHold,
			})
		}
		if id := m.Subject.MovementID; id != "" {
			statements = append(statements,
				sqldb.Statement{Text: findMovementText, Args: []any{m.ProjectID, id}, Row: into(a.movements, id)},
				sqldb.Statement{Text: findReversalText, Args: []any{id}, Row: into(a.reversals, id)})
		}
	}
	return statements
}

// into reads a movement.
func into(to map[string]*credit.Movement, id string) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		m, err := scanMovement(scan)
		to[id] = &m
		return err
	}
}

// scanHold reads a hold.
func (a *account) scanHold(scan func(...any) error) error {
	h := &credit.StoredHold{Customer: a.customer, CreditType: a.typeName}
	var expires, closed sql.NullInt64
	var created int64
	var reason, metadata, execution, movement sql.NullString
	err := scan(&h.Number, &h.ID, &h.Amount, &h.Captured, (*string)(&h.State), &expires, &created, &closed, &h.Print, &reason, &metadata, &execution,
		&movement)
	if err != nil {
		return err
	}
	h.ExpiresAt, h.CreatedAt, h.ClosedAt = sqldb.TimeOf(expires), time.UnixMicro(created).UTC(), sqldb.TimeOf(closed)
	h.Note.Reason, h.Execution, h.Movement = reason.String, execution.String, movement.String
	if h.Note.Metadata, err = metadataOf(metadata); err != nil {
		return err
	}
	if a.holds[h.ID] != nil { // named and due, or named twice
		return nil
	}
	a.holds[h.ID], a.opened[h.ID] = h, h.State == credit.HoldOpen
	return nil
}

// loadPins reads from which grants the open holds are taken.
func (w *work) loadPins(ctx context.Context) error {
	var finds []sqldb.Statement
	for _, a := range w.sorted() {
		for _, h := range a.holds {
			if h.State != credit.HoldOpen {
				continue
			}
			finds = append(finds, sqldb.Statement{
				Text: findPinsText, Args: []any{h.Number}, Row: func(scan func(...any) error) error {
					var movement string
					var p credit.Pin
					if err := scan(&movement, &p.Amount); err != nil {
						return err
					}
					if p.Lot = a.lot(movement); p.Lot == nil {
						return fmt.Errorf("hold %d pins a grant that is used up", h.Number)
					}
					h.Pins = append(h.Pins, p)
					return nil
				},
			})
		}
	}
	if err := w.batch.Run(ctx, finds); err != nil {
		return fmt.Errorf("read the pins of holds: %w", err)
	}
	return nil
}

// lot returns what is left of a grant.
func (a *account) lot(movement string) *credit.Lot {
	for _, l := range a.Lots {
		if l.Movement == movement {
			return l
		}
	}
	return nil
}

// settle lets time do what it does to every account.
func (w *work) settle() error {
	for _, a := range w.sorted() {
		for _, h := range a.holds {
			if h.State == credit.HoldOpen && !h.ExpiresAt.IsZero() && !w.now.Before(h.ExpiresAt) {
				a.Due = append(a.Due, &h.Hold)
			}
		}
		entries := a.Settle(w.now)
		for _, h := range a.holds {
			if a.opened[h.ID] && h.State != credit.HoldOpen {
				a.take(h)
			}
		}
		if err := w.expired(a, entries); err != nil {
			return err
		}
		a.tell(slices.Clone(a.movementsMade), w.now)
	}
	return nil
}

// expired adds the movements of what has expired.
func (w *work) expired(a *account, entries []credit.Entry) error {
	for _, e := range entries {
		id, err := w.newID()
		if err != nil {
			return err
		}
		a.movementsMade = append(a.movementsMade, credit.Movement{
			ID: id, ProjectID: a.projectID, Customer: a.customer, CreditType: a.typeName, Entry: e,
		})
	}
	return nil
}

// scanMovement reads a movement.
func scanMovement(scan func(...any) error) (m credit.Movement, err error) {
	var reason, metadata, key, reversalOf, hold, execution sql.NullString
	var priority, expires sql.NullInt64
	var created int64
	err = scan(&m.ID, &m.Number, &m.ProjectID, &m.Customer, &m.CreditType, (*string)(&m.Kind), &m.Amount, &m.Delta, &m.BalanceAfter,
		&reason, &metadata, &key, &reversalOf, &hold, &execution, &priority, &expires, &created)
	if err != nil {
		return m, err
	}
	m.Reason, m.Key, m.Of, m.Execution = reason.String, key.String, reversalOf.String+hold.String, execution.String
	m.Grant = credit.Grant{Priority: credit.DefaultPriority, ExpiresAt: sqldb.TimeOf(expires), Movement: m.ID}
	if priority.Valid {
		m.Grant.Priority = int(priority.Int64)
	}
	m.At = time.UnixMicro(created).UTC()
	m.Metadata, err = metadataOf(metadata)
	return m, err
}
