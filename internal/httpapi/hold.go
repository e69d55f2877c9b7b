package httpapi

import (
	"net/http"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
)

func holdParams() []param {
	return []param{customerParam(), pathText("hold_id", "Your own id of the hold, path-escaped: 1 to 200 characters; unique within the customer.")}
}

var placeHoldOperation = operation{
	id: "placeHold", tag: tagCredits, summary: "Set an amount aside, once for each id of a hold",
	description: "A repeat with the same content, by value, returns the hold as it is now.",
	params:      holdParams(), request: api.NewHold{},
	replies: append(replyCreated("The hold was placed.", api.HoldAnswer{}), replyOK("It was placed before.", api.HoldAnswer{})...),
	errors:  codes(api.CodeCustomerNotFound, api.CodeInsufficientCredits, api.CodeConflict),
}

func (s *service) placeHold(x *exchange) (answer, error) {
	in, err := decode[api.NewHold](x)
	if err != nil {
		return answer{}, err
	}
	p := credit.PlaceParams{
		ProjectID: x.caller.ProjectID, Customer: x.r.PathValue("external_user_id"), HoldID: x.r.PathValue("hold_id"),
		CreditType: in.CreditType, Note: credit.Note{Reason: textOf(in.Reason), Metadata: in.Metadata}, Body: x.body.data,
	}
	if p.Amount, err = amountOf(in.Amount); err != nil {
		return answer{}, err
	}
	if p.ExpiresAt, err = expiryOf(in.ExpiresAt); err != nil {
		return answer{}, err
	}
	placed, err := s.Credits.PlaceHold(x.r.Context(), p)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(createdOr(placed.Created), holdAnswerOf(&placed))
}

var captureHoldOperation = operation{
	id: "captureHold", tag: tagCredits, summary: "Use a hold, in part or whole, once",
	description: "What is not used is let go. A repeat with the same amount returns the hold and its movement; with another amount, " +
		"or when the hold was released or has expired, it is a conflict, and details.state says what became of the hold.",
	params: holdParams(), request: api.HoldCapture{},
	replies: replyOK("The hold and the movement.", api.HoldAnswer{}),
	errors:  codes(api.CodeCustomerNotFound, api.CodeConflict),
}

func (s *service) captureHold(x *exchange) (answer, error) {
	in, err := decodeOptional[api.HoldCapture](x)
	if err != nil {
		return answer{}, err
	}
	p := x.aboutHold()
	p.Note = credit.Note{Reason: textOf(in.Reason), Metadata: in.Metadata}
	if p.Amount, err = optionalAmount(in.Amount); err != nil {
		return answer{}, err
	}
	captured, err := s.Credits.CaptureHold(x.r.Context(), p)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, holdAnswerOf(&captured))
}

var releaseHoldOperation = operation{
	id: "releaseHold", tag: tagCredits, summary: "Let a hold go",
	description: "A repeat returns it. When it was captured or has expired it is a conflict, and details.state says so.",
	params:      holdParams(),
	replies:     replyOK("The hold.", api.HoldAnswer{}),
	errors:      codes(api.CodeCustomerNotFound, api.CodeConflict),
}

func (s *service) releaseHold(x *exchange) (answer, error) {
	released, err := s.Credits.ReleaseHold(x.r.Context(), x.aboutHold())
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, holdAnswerOf(&released))
}

func (x *exchange) aboutHold() credit.CloseParams {
	return credit.CloseParams{
		ProjectID: x.caller.ProjectID, Customer: x.r.PathValue("external_user_id"), HoldID: x.r.PathValue("hold_id"),
	}
}

var getHoldOperation = operation{
	id: "getHold", tag: tagCredits, summary: "Get a hold",
	params:  holdParams(),
	replies: replyOK("The hold.", api.HoldDetails{}),
}

func (s *service) getHold(x *exchange) (answer, error) {
	p := x.aboutHold()
	h, err := s.Books.Hold(x.r.Context(), p.ProjectID, p.Customer, p.HoldID)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, api.HoldDetails{Hold: holdOf(&h)})
}

var listHoldsOperation = operation{
	id: "listHolds", tag: tagCredits, summary: "List the holds of a customer, latest first",
	params:  pageParams(customerParam(), textParam("state", "Only holds in this state: open, captured, released or expired.")),
	replies: replyOK("A page of holds.", api.List[api.Hold]{}),
	errors:  codes(api.CodeCustomerNotFound),
}

func (s *service) listHolds(x *exchange) (answer, error) {
	p, err := x.listOfCustomer()
	if err != nil {
		return answer{}, err
	}
	state, err := x.text("state")
	if err != nil {
		return answer{}, err
	}
	all, err := s.Books.Holds(x.r.Context(), p, credit.HoldState(state))
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.Limit-1, holdOf, func(h *credit.StoredHold) string { return strconv.FormatInt(h.Number, 10) })
}

// listOfCustomer reads which page of what a customer has is asked for, and asks
// for one more than it holds.
func (x *exchange) listOfCustomer() (credit.ListParams, error) {
	p, cursor, err := x.numberPage()
	return credit.ListParams{
		ProjectID: x.caller.ProjectID, Customer: x.r.PathValue("external_user_id"), Cursor: cursor, Limit: p.limit + 1,
	}, err
}

// holdOf is a hold as it is sent.
func holdOf(h *credit.StoredHold) api.Hold {
	return api.Hold{
		ID: h.ID, Customer: h.Customer, CreditType: h.CreditType, Amount: h.Amount.String(), State: string(h.State),
		Captured: h.Captured.String(), Movement: api.OptionalText(h.Movement), Reason: api.OptionalText(h.Note.Reason), Metadata: h.Note.Metadata,
		ExpiresAt: api.OptionalTime(h.ExpiresAt), CreatedAt: api.TimeText(h.CreatedAt), ClosedAt: api.OptionalTime(h.ClosedAt),
	}
}

func holdAnswerOf(r *credit.HoldResult) api.HoldAnswer {
	out := api.HoldAnswer{Hold: holdOf(&r.Hold), Balance: balanceOf(r.Balance)}
	if r.Movement != nil {
		out.Movement = new(r.Movement.Wire())
	}
	return out
}
