package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
)

// Books reads the ledger. The errors are described where credit.Books has these
// methods.
type Books interface {
	Movement(ctx context.Context, projectID, movementID string) (m credit.Movement, reversal *credit.Movement, err error)
	Movements(ctx context.Context, q credit.MovementQuery) ([]credit.Movement, error)
	Export(ctx context.Context, q credit.MovementQuery) (next func(context.Context) ([]credit.Movement, error), err error)
	BalancesAt(ctx context.Context, projectID, customer string, at time.Time) (map[string]credit.Balance, error)
	Grants(ctx context.Context, p credit.ListParams) ([]credit.StoredGrant, error)
	Hold(ctx context.Context, projectID, customer, holdID string) (credit.StoredHold, error)
	Holds(ctx context.Context, p credit.ListParams, state credit.HoldState) ([]credit.StoredHold, error)
}

// movementFilters are the parameters that say which movements are asked for.
func movementFilters() []param {
	return []param{
		textParam("customer", "Only those of this customer."),
		textParam("credit_type", "Only those of this credit type."),
		textParam("kind", "Only those of this kind: topup, charge, adjust, capture, reversal or expiry."),
		textParam("from", "Only those made from this time on, as in RFC 3339."),
		textParam("to", "Only those made before this time, as in RFC 3339."),
	}
}

// movementQuery reads them.
func (x *exchange) movementQuery() (credit.MovementQuery, error) {
	q := credit.MovementQuery{ProjectID: x.caller.ProjectID}
	var kind string
	for name, to := range map[string]*string{"customer": &q.Customer, "credit_type": &q.CreditType, "kind": &kind} {
		text, err := x.text(name)
		if err != nil {
			return q, err
		}
		*to = text
	}
	q.Kind = credit.Kind(kind)
	for name, to := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		at, err := x.time(name)
		if err != nil {
			return q, err
		}
		*to = at
	}
	return q, nil
}

var listMovementsOperation = operation{
	id: "listMovements", tag: tagCredits, summary: "List movements, latest first",
	params:  pageParams(movementFilters()...),
	replies: replyOK("A page of movements.", api.List[api.Movement]{}),
}

func (s *service) listMovements(x *exchange) (answer, error) {
	p, before, err := x.numberPage()
	if err != nil {
		return answer{}, err
	}
	q, err := x.movementQuery()
	if err != nil {
		return answer{}, err
	}
	q.Before, q.Limit = before, p.limit+1
	all, err := s.Books.Movements(x.r.Context(), q)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, (*credit.Movement).Wire, func(m *credit.Movement) string { return strconv.FormatInt(m.Number, 10) })
}

var getMovementOperation = operation{
	id: "getMovement", tag: tagCredits, summary: "Get a movement and what has reversed it",
	params:  []param{idParam("movement_id", "The movement.")},
	replies: replyOK("The movement.", api.MovementDetails{}),
}

func (s *service) getMovement(x *exchange) (answer, error) {
	m, reversal, err := s.Books.Movement(x.r.Context(), x.caller.ProjectID, x.r.PathValue("movement_id"))
	if err != nil {
		return answer{}, err
	}
	out := api.MovementDetails{Movement: m.Wire()}
	if reversal != nil {
		out.Reversal = new(reversal.Wire())
	}
	return jsonAnswer(http.StatusOK, out)
}

var reverseMovementOperation = operation{
	id: "reverseMovement", tag: tagCredits, summary: "Undo a movement, in part or whole, once",
	description: "A topup, a charge, an adjustment or a capture can be undone. A repeat with the same amount and reason returns the reversal; " +
		"with others it is a conflict. A reversal that takes credits needs them to be available.",
	params: []param{idParam("movement_id", "The movement.")}, request: api.NewReversal{},
	replies: append(replyCreated("The reversal.", api.CreditMoved{}), replyOK("It was reversed before.", api.CreditMoved{})...),
	errors:  codes(api.CodeInsufficientCredits, api.CodeConflict),
}

func (s *service) reverseMovement(x *exchange) (answer, error) {
	in, err := decodeOptional[api.NewReversal](x)
	if err != nil {
		return answer{}, err
	}
	p := credit.ReverseParams{
		ProjectID: x.caller.ProjectID, MovementID: x.r.PathValue("movement_id"), Reason: textOf(in.Reason),
	}
	if p.Amount, err = optionalAmount(in.Amount); err != nil {
		return answer{}, err
	}
	reversed, err := s.Credits.Reverse(x.r.Context(), p)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(createdOr(reversed.Created), api.CreditMoved{
		Movement: reversed.Movement.Wire(), Balance: balanceOf(reversed.Balance),
	})
}

var getBalancesOperation = operation{
	id: "getBalances", tag: tagCredits, summary: "Get the balances of a customer as they were",
	description: "What time takes, by expiry, may be missing for a second: it is dated when it is written.",
	params:      []param{customerParam(), textParam("at", "The time, as in RFC 3339; now if absent. What is dated at it has happened.")},
	replies:     replyOK("The balances.", api.Balances{}),
	errors:      codes(api.CodeCustomerNotFound),
}

func (s *service) getBalances(x *exchange) (answer, error) {
	at, err := x.time("at")
	if err != nil {
		return answer{}, err
	}
	if at.IsZero() {
		at = s.Now()
	}
	customer := x.r.PathValue("external_user_id")
	all, err := s.Books.BalancesAt(x.r.Context(), x.caller.ProjectID, customer, at)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, api.Balances{Customer: customer, At: api.TimeText(at), Balances: balancesOf(all)})
}

var listGrantsOperation = operation{
	id: "listGrants", tag: tagCredits, summary: "List what is left of a customer's grants, oldest first",
	description: "A grant is a topup that expires or has a priority of its own. Those with nothing left are not listed; what is posted beyond them has the default priority and does not expire.",
	params:      pageParams(customerParam()),
	replies:     replyOK("A page of grants.", api.List[api.Grant]{}),
	errors:      codes(api.CodeCustomerNotFound),
}

func (s *service) listGrants(x *exchange) (answer, error) {
	p, err := x.listOfCustomer()
	if err != nil {
		return answer{}, err
	}
	all, err := s.Books.Grants(x.r.Context(), p)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.Limit-1, grantOf, func(g *credit.StoredGrant) string { return strconv.FormatInt(g.Number, 10) })
}

func grantOf(g *credit.StoredGrant) api.Grant {
	return api.Grant{
		Movement: g.Movement, CreditType: g.CreditType, Priority: g.Priority, Amount: g.Granted.String(), Remaining: g.Remaining.String(),
		Held: g.Pinned.String(), ExpiresAt: api.OptionalTime(g.ExpiresAt), CreatedAt: api.TimeText(g.CreatedAt),
	}
}
