package eventstore

import (
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

// The ways Apply and Open refuse. After any of them nothing of the batch is
// visible.
var (
	// ErrGap is returned by Apply when the records do not follow the mark or
	// one another: read the mark again and start there.
	ErrGap = errors.New("records do not follow the event store's position")
	// ErrForeign is returned by Apply when a record belongs to another store.
	ErrForeign = errors.New("record belongs to another store")
	// ErrInvalidated is returned when DuckDB has given the database up: the
	// process must end, and the next start recovers from the log.
	ErrInvalidated = errors.New("event store is no longer usable by this process")
	// ErrUnwritable is returned when nothing could be written at that moment,
	// whatever it was: no space, no memory, a commit that failed. It says
	// nothing about the items; the same batch may be stored later.
	ErrUnwritable = errors.New("event store cannot be written at present")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("event store is closed")
	// ErrSchema is returned by Open for a file that this version cannot read: it
	// was written by a newer one.
	ErrSchema = errors.New("event store has an unknown schema version")
	// ErrNoPerson is returned where a person is asked for and not exactly one
	// id is given.
	ErrNoPerson = errors.New("exactly one id of a person is needed")
)

// ItemError is returned by Apply when one item is known to be what cannot be
// stored. Other data errors are returned without a position.
type ItemError struct {
	Position uint64
	Err      error
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Position, e.Err) }

// Unwrap returns the cause.
func (e *ItemError) Unwrap() error { return e.Err }

// classify adds ErrInvalidated or ErrUnwritable to an error that means it.
func classify(err error) error {
	switch {
	case duck.Invalidated(err):
		return errors.Join(ErrInvalidated, err)
	case duck.OutOfResources(err):
		return errors.Join(ErrUnwritable, err)
	}
	return err
}
