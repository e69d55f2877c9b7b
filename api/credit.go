package api

import "encoding/json"

// CreditMove is what a charge or an adjustment asks for.
type CreditMove struct {
	CreditType string `json:"credit_type" minLength:"1" maxLength:"64" doc:"Which credits, such as main."`
	// Amount is a decimal, as a string or as a number.
	Amount   json.RawMessage            `json:"amount"             doc:"A decimal of at most 12 digits before the point and 6 after, without an exponent; a string keeps it exact in every client. An adjustment may be negative."`
	Reason   *string                    `json:"reason,omitempty"   maxLength:"500"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty" doc:"An object of at most 16 KiB."`
}

// CreditTopup is what a topup asks for.
type CreditTopup struct {
	CreditMove
	ExpiresAt *string `json:"expires_at,omitempty" format:"date-time" doc:"When what is left of these credits expires; never if absent."`
	Priority  *int    `json:"priority,omitempty"   minimum:"0"        maximum:"100" default:"50"                                         doc:"Credits of a lower priority are used first; among equals those that expire sooner, then the older ones."`
}

// Balance is what there is of a credit type.
type Balance struct {
	Posted    string `json:"posted"    doc:"The sum of all movements."`
	Held      string `json:"held"      doc:"What open holds have set aside."`
	Available string `json:"available" doc:"posted less held: what can be used."`
}

// Movement is an entry of the ledger.
type Movement struct {
	ID             string                     `json:"id"                    format:"uuid"`
	Kind           string                     `json:"kind"                  enum:"topup,charge,adjust,capture,reversal,expiry"`
	Customer       string                     `json:"customer"`
	CreditType     string                     `json:"credit_type"`
	Amount         string                     `json:"amount"                doc:"As it was asked for."`
	Delta          string                     `json:"delta"                 doc:"The effect on what is posted."`
	BalanceAfter   string                     `json:"balance_after"         doc:"What was posted after it."`
	Reason         *string                    `json:"reason"`
	Metadata       map[string]json.RawMessage `json:"metadata" nullable:"true"`
	IdempotencyKey *string                    `json:"idempotency_key"       doc:"The key of a topup, charge or adjustment."`
	ExpiresAt      *string                    `json:"expires_at,omitempty"  format:"date-time"                                  doc:"When what is left of a topup expires."`
	Priority       *int                       `json:"priority,omitempty"    doc:"In which order a topup is used."`
	Hold           *string                    `json:"hold,omitempty"        doc:"The hold that a capture has used."`
	ExecutionID    *string                    `json:"execution_id,omitempty" format:"uuid" doc:"The execution that a capture has paid for; its trace says what it was used for."`
	ReversalOf     *string                    `json:"reversal_of,omitempty" format:"uuid"                                       doc:"The movement that a reversal undoes."`
	CreatedAt      string                     `json:"created_at"            format:"date-time"`
}

// CreditMoved is a movement and what there is.
type CreditMoved struct {
	Movement Movement `json:"movement"`
	Balance  Balance  `json:"balance"`
	// ResponseExpired says that the first answer is not kept any more.
	ResponseExpired bool `json:"response_expired,omitempty" doc:"true in the answer to a repeat whose first answer is not kept any more: the balance is then the present one."`
}

// MovementDetails is a movement and what has undone it.
type MovementDetails struct {
	Movement Movement  `json:"movement"`
	Reversal *Movement `json:"reversal,omitempty" doc:"Absent if it was not reversed."`
}

// NewReversal asks for a movement to be undone.
type NewReversal struct {
	Amount json.RawMessage `json:"amount,omitempty" doc:"How much of it, more than zero; all of it if absent."`
	Reason *string         `json:"reason,omitempty" maxLength:"500"`
}

// Customer is somebody whom credits are kept for.
type Customer struct {
	Customer  string                     `json:"customer"   doc:"Your own id of the customer."`
	Metadata  map[string]json.RawMessage `json:"metadata" nullable:"true"`
	Balances  map[string]Balance         `json:"balances"   doc:"By credit type."`
	CreatedAt string                     `json:"created_at" format:"date-time"`
}

// NewCustomer is what is said of a customer that is to be there.
type NewCustomer struct {
	Metadata map[string]json.RawMessage `json:"metadata,omitempty" doc:"An object of at most 16 KiB, which replaces what there is; nothing changes if it is absent."`
}

// CustomerChange changes a customer.
type CustomerChange struct {
	Metadata map[string]json.RawMessage `json:"metadata" doc:"An object of at most 16 KiB, which replaces what there is."`
}

// Balances are those of a customer at a time.
type Balances struct {
	Customer string             `json:"customer"`
	At       string             `json:"at"       format:"date-time"`
	Balances map[string]Balance `json:"balances" doc:"By credit type."`
}

// Grant is what is left of a topup that expires or has a priority of its own.
type Grant struct {
	Movement   string  `json:"movement"    format:"uuid"      doc:"The topup."`
	CreditType string  `json:"credit_type"`
	Priority   int     `json:"priority"`
	Amount     string  `json:"amount"      doc:"What it began with: the topup, less what was owed."`
	Remaining  string  `json:"remaining"   doc:"What has not been used."`
	Held       string  `json:"held"        doc:"The part of what remains that holds have set aside."`
	ExpiresAt  *string `json:"expires_at"  format:"date-time"`
	CreatedAt  string  `json:"created_at"  format:"date-time"`
}

// NewHold asks for an amount to be set aside.
type NewHold struct {
	CreditType string                     `json:"credit_type"          minLength:"1"                                           maxLength:"64"`
	Amount     json.RawMessage            `json:"amount"               doc:"More than zero."`
	ExpiresAt  *string                    `json:"expires_at,omitempty" format:"date-time"                                      doc:"When it lets go by itself; never if absent."`
	Reason     *string                    `json:"reason,omitempty"     maxLength:"500"`
	Metadata   map[string]json.RawMessage `json:"metadata,omitempty"   doc:"An object of at most 16 KiB."`
}

// Hold is an amount that is or was set aside.
type Hold struct {
	ID         string                     `json:"id"          doc:"Your own id of the hold."`
	Customer   string                     `json:"customer"`
	CreditType string                     `json:"credit_type"`
	Amount     string                     `json:"amount"`
	State      string                     `json:"state"       enum:"open,captured,released,expired"`
	Captured   string                     `json:"captured"    doc:"How much of it was used."`
	Movement   *string                    `json:"movement"    format:"uuid"                                   doc:"The capture; null if there was none."`
	Reason     *string                    `json:"reason"`
	Metadata   map[string]json.RawMessage `json:"metadata" nullable:"true"`
	ExpiresAt  *string                    `json:"expires_at"  format:"date-time"`
	CreatedAt  string                     `json:"created_at"  format:"date-time"`
	ClosedAt   *string                    `json:"closed_at"   format:"date-time"`
}

// HoldAnswer is a hold and what there is.
type HoldAnswer struct {
	Hold     Hold      `json:"hold"`
	Movement *Movement `json:"movement,omitempty" doc:"The capture; absent if there was none."`
	Balance  Balance   `json:"balance"`
}

// HoldDetails is a hold.
type HoldDetails struct {
	Hold Hold `json:"hold"`
}

// HoldCapture asks for a hold to be used.
type HoldCapture struct {
	Amount   json.RawMessage            `json:"amount,omitempty"   doc:"How much of it, from 0; all of it if absent. The rest is let go."`
	Reason   *string                    `json:"reason,omitempty"   maxLength:"500"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty" doc:"An object of at most 16 KiB."`
}

// NewCreditType declares a credit type.
type NewCreditType struct {
	AllowNegative bool `json:"allow_negative,omitempty" default:"false" doc:"Whether available may go below zero."`
}

// CreditType is a kind of credits.
type CreditType struct {
	Name          string `json:"name"`
	AllowNegative bool   `json:"allow_negative"`
	CreatedAt     string `json:"created_at"     format:"date-time"`
}
