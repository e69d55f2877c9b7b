package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// account is a balance as it was read and as the group leaves it.
type account struct {
	credit.Account
	news

	place place
	// missing says that there is no row, and none is to be made: the balance
	// is empty and stays so.
	missing bool
	// make says that the row is to be made if it is not there.
	make bool
	// before is what was read.
	before    credit.Account
	hasGrants bool
	// lots are what was read of them, by the movement that granted them.
	lots map[string]credit.Lot
	// holds are those that somebody asks for or that are due, by the caller's
	// id; opened are those that are in the store and open.
	holds  map[string]*credit.StoredHold
	opened map[string]bool
	// movements are those that somebody wants to reverse, reversals what has
	// reversed them.
	movements, reversals map[string]*credit.Movement
	// movementsMade and holdsMade are what the group adds and changes.
	movementsMade []credit.Movement
	holdsMade     []*credit.StoredHold
	customer      string
	typeName      string
	projectID     string
}

// take notes a hold that is new or has changed.
func (a *account) take(h *credit.StoredHold) {
	a.holds[h.ID] = h
	if !slices.Contains(a.holdsMade, h) {
		a.holdsMade = append(a.holdsMade, h)
	}
}

// findCustomers finds or makes the customers, and finds where movements are.
func (w *work) findCustomers(ctx context.Context) error {
	if err := w.lookForCustomers(ctx); err != nil {
		return err
	}
	if err := w.makeCustomers(ctx); err != nil {
		return err
	}
	for _, m := range w.open() {
		switch {
		case m.customerID != 0, m.aboutNothing():
		case m.Subject.MovementID != "":
			m.refuse(fault.New(api.CodeNotFound, "there is no such movement"))
		default:
			m.refuse(fault.New(api.CodeCustomerNotFound, "there is no such customer"))
		}
	}
	return nil
}

// lookForCustomers finds the customers that are there.
func (w *work) lookForCustomers(ctx context.Context) error {
	var finds []sqldb.Statement
	for _, m := range w.open() {
		switch {
		case m.customerID != 0, m.aboutNothing():
		case m.Subject.MovementID != "":
			finds = append(finds, sqldb.Statement{
				Text: placeOfMovementText, Args: []any{m.ProjectID, m.Subject.MovementID},
				Row: func(scan func(...any) error) error {
					return scan(&m.customerID, &m.customer, &m.typeID, &m.typeName, boolean(&m.negative))
				},
			})
		default:
			finds = append(finds, sqldb.Statement{
				Text: findCustomerText, Args: []any{m.ProjectID, m.customer},
				Row: func(scan func(...any) error) error { return scan(&m.customerID) },
			})
		}
	}
	if err := w.batch.Run(ctx, finds); err != nil {
		return fmt.Errorf("find customers: %w", err)
	}
	return nil
}

// makeCustomers makes the customers that are missing and that ops want made,
// in one order. Those that somebody else has made since are looked for again.
func (w *work) makeCustomers(ctx context.Context) error {
	missing := slices.DeleteFunc(w.open(), func(m *member) bool { return m.customerID != 0 || !m.Subject.CreateCustomer })
	if len(missing) == 0 {
		return nil
	}
	slices.SortStableFunc(missing, func(a, b *member) int {
		return compareTexts(a.ProjectID, b.ProjectID, a.customer, b.customer)
	})
	makes := sqldb.Rows{Text: createCustomersText, Each: `(?, ?, ?)`}
	for i, m := range missing {
		if i == 0 || m.ProjectID != missing[i-1].ProjectID || m.customer != missing[i-1].customer {
			makes.Args = append(makes.Args, []any{m.ProjectID, m.customer, w.now.UnixMicro()})
		}
	}
	makes.Row = func(scan func(...any) error) error {
		var projectID, customer string
		var id int64
		err := scan(&projectID, &customer, &id)
		for _, m := range w.members {
			if m.ProjectID == projectID && m.customer == customer && m.Subject.MovementID == "" {
				m.customerID = id
			}
		}
		return err
	}
	if err := w.batch.Run(ctx, w.batch.Rows(makes)); err != nil {
		return fmt.Errorf("make customers: %w", err)
	}
	return w.lookForCustomers(ctx)
}

// alike puts neighbours together that are alike.
func alike(members []*member, by func(*member) name) [][]*member {
	var groups [][]*member
	for i, m := range members {
		if i == 0 || by(m) != by(members[i-1]) {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], m)
	}
	return groups
}

func compareTexts(a, b, thenA, thenB string) int {
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(thenA, thenB))
}

// findTypes finds or makes the credit types.
func (w *work) findTypes(ctx context.Context) error {
	if err := w.findHoldTypes(ctx); err != nil {
		return err
	}
	open := slices.DeleteFunc(w.open(), func(m *member) bool { return m.typeID != 0 || m.typeName == "" })
	slices.SortStableFunc(open, func(a, b *member) int {
		return compareTexts(a.ProjectID, b.ProjectID, a.typeName, b.typeName)
	})
	var makes, finds []sqldb.Statement
	for _, same := range alike(open, func(m *member) name { return name{projectID: m.ProjectID, creditType: m.typeName} }) {
		m := same[0]
		if slices.ContainsFunc(same, func(m *member) bool { return m.Subject.CreateAccount }) {
			makes = append(makes, sqldb.Statement{Text: createCreditTypeText, Args: []any{m.ProjectID, m.typeName, w.now.UnixMicro()}})
		}
		finds = append(finds, sqldb.Statement{
			Text: findCreditTypeText, Args: []any{m.ProjectID, m.typeName},
			Row: func(scan func(...any) error) error {
				err := scan(&m.typeID, boolean(&m.negative))
				for _, other := range same {
					other.typeID, other.negative = m.typeID, m.negative
				}
				return err
			},
		})
	}
	if err := w.batch.Run(ctx, append(makes, finds...)); err != nil {
		return fmt.Errorf("find credit types: %w", err)
	}
	return nil
}

// findHoldTypes finds of which credit type holds are that are there already.
func (w *work) findHoldTypes(ctx context.Context) error {
	var finds []sqldb.Statement
	for _, m := range w.open() {
		if m.Subject.HoldID != "" {
			finds = append(finds, sqldb.Statement{
				Text: placeOfHoldText, Args: []any{m.customerID, m.Subject.HoldID},
				Row: func(scan func(...any) error) error { return scan(&m.typeID, &m.typeName, boolean(&m.negative)) },
			})
		}
	}
	if err := w.batch.Run(ctx, finds); err != nil {
		return fmt.Errorf("find where holds are: %w", err)
	}
	for _, m := range w.open() {
		if m.Subject.HoldID != "" && m.typeID == 0 && m.Subject.CreditType == "" {
			m.refuse(fault.New(api.CodeNotFound, "there is no such hold"))
		}
	}
	return nil
}

// lock reads the balances and keeps others from changing them, in one order.
// Those that may be missing are made before, in the same order.
func (w *work) lock(ctx context.Context) error {
	w.attach()
	makes := sqldb.Rows{Text: createBalancesText, Each: `(?, ?, ?, 0, 0, 0, ?)`}
	var locks []sqldb.Statement
	for _, a := range w.sorted() {
		if a.make {
			makes.Args = append(makes.Args, []any{a.place.customerID, a.place.typeID, number(a.AllowNegative), w.now.UnixMicro()})
		}
		locks = append(locks, sqldb.Statement{
			Text: w.batch.Locking(lockBalanceText), Args: []any{a.place.customerID, a.place.typeID}, Row: a.scan,
		})
	}
	if err := w.batch.Run(ctx, slices.Concat(w.batch.Rows(makes), locks, w.findSubscribers())); err != nil {
		return fmt.Errorf("lock balances: %w", err)
	}
	return nil
}

// attach gives each member its account.
func (w *work) attach() {
	for _, m := range w.open() {
		at := place{m.customerID, m.typeID}
		if m.typeID == 0 { // nobody has credits of a type that does not exist
			m.account = newAccount(at)
			continue
		}
		if w.accounts[at] == nil {
			w.accounts[at] = newAccount(at)
		}
		a := w.accounts[at]
		m.account = a
		a.AllowNegative, a.customer, a.typeName, a.projectID = m.negative, m.customer, m.typeName, m.ProjectID
		a.make = a.make || !m.there && (m.negative || m.Subject.CreateAccount)
	}
}

// sorted are the accounts in the order in which they are locked.
func (w *work) sorted() []*account {
	return slices.SortedFunc(maps.Values(w.accounts), func(a, b *account) int { return a.place.compare(b.place) })
}

func newAccount(at place) *account {
	return &account{
		place: at, missing: true, lots: map[string]credit.Lot{}, holds: map[string]*credit.StoredHold{}, opened: map[string]bool{},
		movements: map[string]*credit.Movement{}, reversals: map[string]*credit.Movement{},
	}
}

// scan reads a balance.
func (a *account) scan(scan func(dest ...any) error) error {
	var due sql.NullInt64
	var updated int64
	a.missing = false
	if err := scan(&a.Posted, &a.Held, boolean(&a.hasGrants), &due, &updated); err != nil {
		return err
	}
	a.NextDue, a.UpdatedAt = sqldb.TimeOf(due), time.UnixMicro(updated).UTC()
	a.before, a.told = a.Account, a.Balance()
	return nil
}

// loadLots reads what is left of grants.
func (w *work) loadLots(ctx context.Context) error {
	var finds []sqldb.Statement
	for _, a := range w.sorted() {
		if !a.hasGrants {
			continue
		}
		finds = append(finds, sqldb.Statement{
			Text: findLotsText, Args: []any{a.place.customerID, a.place.typeID}, Row: func(scan func(...any) error) error {
				var l credit.Lot
				var expires sql.NullInt64
				var created int64
				if err := scan(&l.Number, &l.Movement, &l.Priority, &expires, &created, &l.Remaining, &l.Pinned); err != nil {
					return err
				}
				l.ExpiresAt, l.CreatedAt = sqldb.TimeOf(expires), time.UnixMicro(created).UTC()
				a.lots[l.Movement] = l
				a.Lots = append(a.Lots, &l)
				return nil
			},
		})
	}
	if err := w.batch.Run(ctx, finds); err != nil {
		return fmt.Errorf("read grants: %w", err)
	}
	return nil
}

// boolean scans 0 and 1.
func boolean(b *bool) sql.Scanner { return scanBool{b} }

type scanBool struct{ to *bool }

// Scan implements sql.Scanner.
func (s scanBool) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%T is no truth value", value)
	}
	*s.to = n != 0
	return nil
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// metadataOf reads a JSON object that may be absent.
func metadataOf(text sql.NullString) (map[string]json.RawMessage, error) {
	if !text.Valid {
		return nil, nil //nolint:nilnil // no object is an object without members
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text.String), &m); err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	return m, nil
}

// metadataText writes a JSON object that may be absent.
func metadataText(m map[string]json.RawMessage) (sql.NullString, error) {
	if m == nil {
		return sql.NullString{}, nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return sql.NullString{}, fmt.Errorf("encode metadata: %w", err)
	}
	return sql.NullString{String: string(text), Valid: true}, nil
}
