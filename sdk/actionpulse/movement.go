package actionpulse

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Movements are the entries of the project's ledger.
type Movements struct{ link *link }

const movementPath = "/v1/movements/{movement_id}"

// MovementFilter says which movements are asked for; what is empty does not
// narrow.
type MovementFilter struct {
	Customer   string
	CreditType string
	// Kind is topup, charge, adjust, capture, reversal or expiry.
	Kind string
	// From and To bound when they were made; To is not included.
	From, To time.Time
}

func (f *MovementFilter) add(q url.Values) {
	setText(q, "customer", f.Customer)
	setText(q, "credit_type", f.CreditType)
	setText(q, "kind", f.Kind)
	setTime(q, "from", f.From)
	setTime(q, "to", f.To)
}

// ListMovements says which movements are asked for.
type ListMovements struct {
	Page
	MovementFilter
}

// NewReversal asks for a movement to be undone.
type NewReversal struct {
	// Amount is how much of it; empty means all.
	Amount string
	Reason string
}

// List returns a page of movements, latest first.
func (m *Movements) List(ctx context.Context, p ListMovements) (*api.List[api.Movement], error) {
	q := p.Page.query()
	p.MovementFilter.add(q)
	return list[api.Movement](ctx, m.link, reads("listMovements", "/v1/movements").ask(q))
}

// All yields every movement from p on, latest first.
func (m *Movements) All(ctx context.Context, p ListMovements) iter.Seq2[api.Movement, error] {
	return all(p.Page, func(page Page) (*api.List[api.Movement], error) {
		p := p
		p.Page = page
		return m.List(ctx, p)
	})
}

// Get returns a movement and what has undone it; not_found if there is none.
func (m *Movements) Get(ctx context.Context, id string) (*api.MovementDetails, error) {
	return fetch[api.MovementDetails](ctx, m.link, reads("getMovement", movementPath, id))
}

// Reverse undoes a movement, once. It is repeated like work under a key: the
// movement names the work, a repeat returns its reversal, and one with another
// amount is refused with conflict.
func (m *Movements) Reverse(ctx context.Context, id string, n NewReversal) (*api.CreditMoved, error) {
	c := changes("reverseMovement", http.MethodPost, movementPath+"/reversal", id).byIdentity()
	return fetch[api.CreditMoved](ctx, m.link, c.with(api.NewReversal{Amount: optionalAmount(n.Amount), Reason: api.OptionalText(n.Reason)}))
}

// ExportCSV returns all movements that f asks for, oldest first, as CSV with a
// line of names first. The caller closes it. An export that fails on the way
// ends with an error of Read, never with io.EOF.
func (m *Movements) ExportCSV(ctx context.Context, f MovementFilter) (io.ReadCloser, error) {
	return m.export(ctx, f, "csv")
}

// Export yields all movements that f asks for, oldest first, from one answer
// that is read while it comes. An error is yielded once and is the last; what
// came before it is right, but not all.
func (m *Movements) Export(ctx context.Context, f MovementFilter) iter.Seq2[api.Movement, error] {
	return func(yield func(api.Movement, error) bool) {
		body, err := m.export(ctx, f, "jsonl")
		if err != nil {
			yield(api.Movement{}, err)
			return
		}
		// What was yielded is whole, whether the connection closes well or not.
		defer func() { _ = body.Close() }()
		lines := json.NewDecoder(bufio.NewReader(body))
		for {
			var one api.Movement
			err := lines.Decode(&one)
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && one.ID == "" {
				err = errSaysNothing
			}
			if err != nil {
				e := exportCall.failure("the export was cut short")
				e.Err, e.Retryable, e.Attempts = err, true, 1
				yield(api.Movement{}, e)
				return
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

var exportCall = reads("exportMovements", "/v1/movements/export")

func (m *Movements) export(ctx context.Context, f MovementFilter, format string) (io.ReadCloser, error) {
	q := url.Values{"format": {format}}
	f.add(q)
	c := exportCall.ask(q)
	c.stream = true
	r, err := m.link.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.stream, nil
}
