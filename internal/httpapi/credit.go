package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Credits moves credits. The errors are described where credit.Service has
// these methods.
type Credits interface {
	Move(ctx context.Context, p credit.MoveParams) (credit.Moved, error)
	PlaceHold(ctx context.Context, p credit.PlaceParams) (credit.HoldResult, error)
	CaptureHold(ctx context.Context, p credit.CloseParams) (credit.HoldResult, error)
	ReleaseHold(ctx context.Context, p credit.CloseParams) (credit.HoldResult, error)
	Reverse(ctx context.Context, p credit.ReverseParams) (credit.Reversed, error)
}

// moveRules is what all three operations say.
const moveRules = " The Idempotency-Key names the movement, for ever and within the project: only a success takes it. " +
	"While the first answer is kept, the same bytes get it again, byte for byte, and anything else is a conflict; " +
	"later customer, method, credit type and amount are compared, by value."

func moveOperation(id, summary, description string, request any, others ...api.Code) operation {
	return operation{
		id: id, tag: tagCredits, summary: summary, description: description + moveRules,
		params: []param{customerParam()}, request: request,
		replies: []reply{{status: http.StatusOK, doc: "The movement and the balance after it.", body: api.CreditMoved{}, replayed: true}},
		errors:  codes(append(others, api.CodeIdempotencyKeyRequired, api.CodeIdempotencyConflict, api.CodeInvalidRequest)...),
	}
}

var topupOperation = moveOperation("topupCustomer", "Give credits to a customer, once for each Idempotency-Key",
	"Makes the customer and the credit type if they are not there.", api.CreditTopup{})

var chargeOperation = moveOperation("chargeCustomer", "Take credits from a customer, once for each Idempotency-Key",
	"", api.CreditMove{}, api.CodeCustomerNotFound, api.CodeInsufficientCredits)

var adjustOperation = moveOperation("adjustCustomer", "Correct a customer's credits, once for each Idempotency-Key",
	"The amount may be negative.", api.CreditMove{}, api.CodeCustomerNotFound, api.CodeInsufficientCredits)

// customerParam is the customer in the path.
func customerParam() param {
	return pathText("external_user_id", "Your own id of the customer, path-escaped: 1 to 200 characters, no control characters, not . or .. .")
}

func (s *service) topup(x *exchange) (answer, error)  { return s.move(x, credit.Topup, topupMove) }
func (s *service) charge(x *exchange) (answer, error) { return s.move(x, credit.Charge, plainMove) }
func (s *service) adjust(x *exchange) (answer, error) { return s.move(x, credit.Adjust, plainMove) }

// move moves credits, or answers as the first request with this key was
// answered. The body may be read until the movement is committed: a handler
// that returns before, because the client has left, leaves the buffer to it.
func (s *service) move(x *exchange, kind credit.Kind, read func(*exchange) (credit.Move, error)) (answer, error) {
	moved, err := s.Credits.Move(x.r.Context(), credit.MoveParams{
		ProjectID: x.caller.ProjectID, Customer: x.r.PathValue("external_user_id"), Kind: kind, Key: x.key, Body: x.body.data,
		Decode: func() (credit.Move, error) { return read(x) }, Free: x.free,
		Render: func(m *credit.Movement, b credit.Balance) ([]byte, error) {
			return marshal(api.CreditMoved{Movement: m.Wire(), Balance: balanceOf(b)})
		},
	})
	if err != nil {
		return answer{}, s.settleWork(x, err)
	}
	if moved.Replayed {
		x.w.Header()[idempotency.Replayed] = []string{"true"}
	}
	if first := moved.Answer; first != nil {
		return answer{status: first.Status, contentType: first.ContentType, body: first.Body}, nil
	}
	return jsonAnswer(http.StatusOK, api.CreditMoved{
		Movement: moved.Movement.Wire(), Balance: balanceOf(moved.Balance), ResponseExpired: true,
	})
}

// settleWork is settle for keyed work: a conflict says in which state the work
// is that the key names. That it cannot be read does not change the conflict.
func (s *service) settleWork(x *exchange, err error) error {
	err = x.settle(err)
	if f, ok := errors.AsType[*fault.Error](err); ok && x.keyState == api.KeyTaken {
		unit, failed := s.Work.Find(x.r.Context(), x.caller.ProjectID, x.key)
		if failed != nil {
			s.Log.Warn("the work that a key names cannot be read", "request_id", x.requestID, "err", failed)
			return err
		}
		return f.With("unit", keyOf(&unit.Record, unit.Status).Unit)
	}
	return err
}

// plainMove reads the body of a charge or an adjustment.
func plainMove(x *exchange) (credit.Move, error) {
	in, err := decode[api.CreditMove](x)
	if err != nil {
		return credit.Move{}, err
	}
	return moveOf(&in)
}

// topupMove reads the body of a topup.
func topupMove(x *exchange) (credit.Move, error) {
	in, err := decode[api.CreditTopup](x)
	if err != nil {
		return credit.Move{}, err
	}
	m, err := moveOf(&in.CreditMove)
	if err != nil {
		return credit.Move{}, err
	}
	if in.Priority != nil {
		m.Grant.Priority = *in.Priority
	}
	m.Grant.ExpiresAt, err = expiryOf(in.ExpiresAt)
	return m, err
}

func moveOf(in *api.CreditMove) (credit.Move, error) {
	amount, err := amountOf(in.Amount)
	return credit.Move{
		CreditType: in.CreditType, Amount: amount, Reason: textOf(in.Reason), Metadata: in.Metadata,
		Grant: credit.Grant{Priority: credit.DefaultPriority},
	}, err
}

// amountOf reads an amount, which is a string or a number. Nothing is rounded:
// the digits are read as they were sent.
func amountOf(raw json.RawMessage) (credit.Amount, error) {
	text := string(raw)
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return 0, invalidAmount(err)
		}
	}
	amount, err := credit.ParseAmount(text)
	if err != nil {
		return 0, invalidAmount(err)
	}
	return amount, nil
}

func invalidAmount(err error) error {
	return fault.Wrap(api.CodeInvalidRequest, err, "amount must be %s", credit.ErrAmount).With("field", "amount")
}

// optionalAmount reads an amount that may be absent.
func optionalAmount(raw json.RawMessage) (*credit.Amount, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // absent is no error
	}
	amount, err := amountOf(raw)
	return &amount, err
}

// expiryOf reads a time that may be absent, to the microsecond.
func expiryOf(text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, *text)
	if err != nil {
		return time.Time{}, fault.Wrap(api.CodeInvalidRequest, err, "expires_at must be a time as in RFC 3339, like 2024-01-01T00:00:00Z").
			With("field", "expires_at")
	}
	return at.UTC().Truncate(time.Microsecond), nil
}

// balanceOf is a balance as it is sent.
func balanceOf(b credit.Balance) api.Balance {
	return api.Balance{Posted: b.Posted.String(), Held: b.Held.String(), Available: b.Available().String()}
}

func balancesOf(all map[string]credit.Balance) map[string]api.Balance {
	out := make(map[string]api.Balance, len(all))
	for name, b := range all {
		out[name] = balanceOf(b)
	}
	return out
}
