package ledger

import "context"

// maxPlaces is how many places are remembered at most.
const maxPlaces = 32_768

// name is what callers call a balance.
type name struct{ projectID, customer, creditType string }

// found is where a balance is. It stays true for ever once it was committed:
// customers, credit types and balances keep their numbers, and none is removed.
type found struct {
	place    place
	negative bool
}

// recall finds the balances that are remembered.
func (w *work) recall(context.Context) error {
	for _, m := range w.open() {
		m.customer, m.typeName = m.Subject.Customer, m.Subject.CreditType
		if m.Subject.HoldID != "" || m.Subject.MovementID != "" { // which may name another balance
			continue
		}
		if at, ok := w.store.known.Find(name{m.ProjectID, m.customer, m.typeName}); ok {
			m.customerID, m.typeID, m.negative, m.there = at.place.customerID, at.place.typeID, at.negative, true
		}
	}
	return nil
}

// remember is called when the group is committed.
func (w *work) remember() {
	for _, m := range w.members {
		if m.account != nil && !m.account.missing && !m.there {
			w.store.known.Put(name{m.ProjectID, m.customer, m.typeName}, found{m.account.place, m.negative}, 1)
		}
	}
}
