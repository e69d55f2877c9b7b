package actionpulse

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Holds set credits of a customer aside until they are captured or released.
//
// Place, Capture and Release are repeated like work under a key. The id of the
// hold, which is yours, names the work: one hold, one capture and one release
// of it. A repeat returns what was done, or is refused with conflict when
// something else was, and never does it a second time, whatever has happened
// in between.
type Holds struct{ link *link }

const holdPath = customerPath + "/holds/{hold_id}"

// NewHold asks for an amount to be set aside.
type NewHold struct {
	CreditType string
	// Amount is a decimal above zero, as in [TopUp].
	Amount string
	// ExpiresAt is when it lets go by itself; the zero time means never.
	ExpiresAt time.Time
	Reason    string
	Metadata  map[string]any
}

// Capture asks for a hold to be used.
type Capture struct {
	// Amount is how much of it, from "0"; empty means all. The rest is let go.
	Amount   string
	Reason   string
	Metadata map[string]any
}

// ListHolds says which holds are asked for.
type ListHolds struct {
	Page
	// State is open, captured, released or expired; empty means any.
	State string
}

// List returns a page of a customer's holds, latest first.
func (h *Holds) List(ctx context.Context, customer string, p ListHolds) (*api.List[api.Hold], error) {
	q := p.Page.query()
	setText(q, "state", p.State)
	return list[api.Hold](ctx, h.link, reads("listHolds", customerPath+"/holds", customer).ask(q))
}

// All yields every hold from p on.
func (h *Holds) All(ctx context.Context, customer string, p ListHolds) iter.Seq2[api.Hold, error] {
	return all(p.Page, func(page Page) (*api.List[api.Hold], error) {
		p := p
		p.Page = page
		return h.List(ctx, customer, p)
	})
}

// Get returns a hold; not_found if there is none.
func (h *Holds) Get(ctx context.Context, customer, id string) (*api.HoldDetails, error) {
	return fetch[api.HoldDetails](ctx, h.link, reads("getHold", holdPath, customer, id))
}

// Place sets an amount aside under an id of yours. It is refused with
// customer_not_found, insufficient_credits, and conflict if the id names a
// hold of other content.
func (h *Holds) Place(ctx context.Context, customer, id string, n NewHold) (*api.HoldAnswer, error) {
	c := changes("placeHold", http.MethodPut, holdPath, customer, id).byIdentity()
	metadata, err := members("metadata", n.Metadata)
	if err != nil {
		return nil, c.refusedHere(err)
	}
	return fetch[api.HoldAnswer](ctx, h.link, c.with(api.NewHold{
		CreditType: n.CreditType, Amount: amountText(n.Amount), ExpiresAt: optionalTime(n.ExpiresAt),
		Reason: api.OptionalText(n.Reason), Metadata: metadata,
	}))
}

// Capture uses a hold, once. It is refused with conflict if the hold was
// released, has expired, or was captured with another amount.
func (h *Holds) Capture(ctx context.Context, customer, id string, n Capture) (*api.HoldAnswer, error) {
	c := changes("captureHold", http.MethodPost, holdPath+"/capture", customer, id).byIdentity()
	metadata, err := members("metadata", n.Metadata)
	if err != nil {
		return nil, c.refusedHere(err)
	}
	return fetch[api.HoldAnswer](ctx, h.link, c.with(api.HoldCapture{
		Amount: optionalAmount(n.Amount), Reason: api.OptionalText(n.Reason), Metadata: metadata,
	}))
}

// Release lets a hold go. It is refused with conflict if the hold was captured
// or has expired.
func (h *Holds) Release(ctx context.Context, customer, id string) (*api.HoldAnswer, error) {
	return fetch[api.HoldAnswer](ctx, h.link, changes("releaseHold", http.MethodPost, holdPath+"/release", customer, id).byIdentity())
}
