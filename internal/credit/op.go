package credit

import (
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// Group is several ops that share a transaction.
type Group struct {
	// Ops are done in this order. No two have one key.
	Ops []*Op
	Now time.Time
	// NewID makes the ids of movements that time makes.
	NewID func() (string, error)
}

// Op is one thing to do to a customer's credits. Several are done in one
// transaction; each has its own outcome.
type Op struct {
	ProjectID string
	// Subject says which account it is about.
	Subject Subject
	// Key is set for keyed operations: the claim on it is the first thing that
	// is done for the op.
	Key *idempotency.Request
	// Token names the op as the owner of its key, however often its
	// transaction is run.
	Token [16]byte
	// Decide changes the account and says what is to be written. A fault
	// refuses the op: it must have changed nothing, nothing of it is written,
	// and its key stays free. Any other error undoes the whole group. It may be
	// called several times, each time with a state that was read anew.
	Decide func(s *State) (Effect, error)
	// Answer makes what is kept for repeats. It is set for keyed operations.
	Answer func(o *Outcome) (idempotency.Answer, error)
	// Along is what somebody else keeps in the op's transaction: it is read,
	// and locked, before Decide is called, and written with the op's effect;
	// of a refused op nothing of it is written. It is made by that one's store,
	// and known to the store of the ledger only; nil if there is nothing.
	Along any

	// Outcome is filled in by the store. Nobody may read it before the
	// transaction is committed.
	Outcome Outcome
}

// Subject names an account in one of three ways. The zero Subject is none: the
// op is about no credits, and its account is empty.
type Subject struct {
	// Customer and CreditType name it directly.
	Customer   string
	CreditType string
	// CreateCustomer makes a customer that is not there, CreateAccount the
	// credit type and the balance. Without them what is not there is empty.
	CreateCustomer, CreateAccount bool
	// HoldID names a hold of the customer: the account is the hold's, unless
	// there is none and CreditType is set.
	HoldID string
	// MovementID names a movement of the project: the account is that one's.
	MovementID string
}

// State is what an op is decided by.
type State struct {
	// Account is what is there now; time has done what it does.
	Account    *Account
	Customer   string
	CreditType string
	// Hold is the hold that Subject names, nil if there is none.
	Hold *StoredHold
	// Original is the movement that Subject names, and Undo its reversal; nil
	// if there is none.
	Original, Undo *Movement
	Now            time.Time
}

// StoredHold is a hold and what was said when it was placed.
type StoredHold struct {
	Hold

	Customer   string
	CreditType string
	// Print is what a repeat is compared by.
	Print string
	Note  Note
	// Movement is the id of the capture, empty if there was none.
	Movement string
	// Execution is the id of the execution that the hold is for, and that alone
	// may end it; empty if the caller placed it.
	Execution string
}

// Effect is what an op does.
type Effect struct {
	// Movements are to be added to the ledger, in this order; the first is
	// what the op is about.
	Movements []Movement
	// Hold is to be stored: a new one, or one that has changed.
	Hold *StoredHold
	// Repeat says that the op has been done before: Movements and Hold are
	// what there is, and nothing is written.
	Repeat bool
}

// Outcome is what became of an op.
type Outcome struct {
	// Err is why it was refused: a fault, or an *idempotency.Error.
	Err error
	// Movement and Hold are what the op is about.
	Movement *Movement
	Hold     *StoredHold
	Balance  Balance
	// Created says that the op has made its resource, and not found it.
	Created bool
	// Key is what became of a keyed op's key. Its Answer is what to say, nil
	// if the first answer is not kept any more.
	Key idempotency.Result
}
