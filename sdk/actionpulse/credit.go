package actionpulse

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// TopUp adds credits to a customer.
type TopUp struct {
	// CreditType says which credits, such as main.
	CreditType string
	// Amount is a decimal above zero with at most 12 digits before the point
	// and 6 after, like "10.50".
	Amount string
	Reason string
	// Metadata is an object of at most 16 KiB.
	Metadata map[string]any
	// ExpiresAt is when what is left of the credits expires; the zero time
	// means never.
	ExpiresAt time.Time
	// Priority orders their use, from 0, used first, to 100; nil means 50.
	Priority *int
}

// Move takes credits from a customer, or corrects a balance.
type Move struct {
	CreditType string
	// Amount is a decimal as in [TopUp]; that of an adjustment may be
	// negative.
	Amount   string
	Reason   string
	Metadata map[string]any
}

// Moved is a movement that was made, by this call or before it.
type Moved struct {
	api.CreditMoved
	// IdempotencyKey is the key that was sent.
	IdempotencyKey string `json:"-"`
	// Replayed says that the answer is that to an earlier request with the
	// key, perhaps to an earlier attempt of this call: the movement was made
	// once.
	Replayed bool `json:"-"`
}

// TopUp adds credits; the customer is made if there is none. The movement is
// made once for each key, see [WithKey].
func (c *Customers) TopUp(ctx context.Context, customer string, t TopUp, options ...KeyOption) (*Moved, error) {
	return c.move(ctx, movement{"topupCustomer", "/topup", customer, t}, options)
}

// Charge takes credits. It is refused with customer_not_found, and with
// insufficient_credits, which has the balance ([Error.Balance]) and leaves the
// key free. The movement is made once for each key, see [WithKey].
func (c *Customers) Charge(ctx context.Context, customer string, m Move, options ...KeyOption) (*Moved, error) {
	return c.move(ctx, movement{"chargeCustomer", "/charge", customer, m}, options)
}

// Adjust corrects a balance by an amount that may be negative. It is refused
// as Charge is. The movement is made once for each key, see [WithKey].
func (c *Customers) Adjust(ctx context.Context, customer string, m Move, options ...KeyOption) (*Moved, error) {
	return c.move(ctx, movement{"adjustCustomer", "/adjust", customer, m}, options)
}

// movement is a movement that is asked for.
type movement struct {
	operation, under string
	customer         string
	body             wired
}

// wired is a body that has another form on the wire.
type wired interface{ wire() (any, error) }

func (c *Customers) move(ctx context.Context, m movement, options []KeyOption) (*Moved, error) {
	key, err := c.link.keyOf(options, CheckKey)
	request := keyed(m.operation, customerPath+m.under, key, m.customer)
	if err != nil {
		return nil, request.refusedHere(err)
	}
	if request.body, err = m.body.wire(); err != nil {
		return nil, request.refusedHere(err)
	}
	moved, r, err := exchange[Moved](ctx, c.link, request)
	if err != nil {
		return nil, err
	}
	moved.IdempotencyKey, moved.Replayed = key, r.replayed()
	return moved, nil
}

func (t TopUp) wire() (any, error) {
	move, err := creditMove(Move{CreditType: t.CreditType, Amount: t.Amount, Reason: t.Reason, Metadata: t.Metadata})
	return api.CreditTopup{CreditMove: move, ExpiresAt: optionalTime(t.ExpiresAt), Priority: t.Priority}, err
}

func (m Move) wire() (any, error) { return creditMove(m) }

func creditMove(m Move) (api.CreditMove, error) {
	metadata, err := members("metadata", m.Metadata)
	return api.CreditMove{
		CreditType: m.CreditType, Amount: amountText(m.Amount), Reason: api.OptionalText(m.Reason), Metadata: metadata,
	}, err
}

// amountText writes an amount as a JSON string, which is exact everywhere.
func amountText(amount string) json.RawMessage {
	text, err := json.Marshal(amount)
	if err != nil { // no string fails
		return json.RawMessage(`""`)
	}
	return text
}

// optionalAmount is absent for the empty text.
func optionalAmount(amount string) json.RawMessage {
	if amount == "" {
		return nil
	}
	return amountText(amount)
}

// members encodes an object that may be absent; name is its own.
func members(name string, object map[string]any) (map[string]json.RawMessage, error) {
	if object == nil {
		return nil, nil
	}
	out := make(map[string]json.RawMessage, len(object))
	for member, value := range object {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be encoded: %w", name, err)
		}
		out[member] = text
	}
	return out, nil
}
