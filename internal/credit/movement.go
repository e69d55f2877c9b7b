package credit

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Movement is an entry of the ledger as it is kept.
type Movement struct {
	ID string
	// Number orders the movements of a project; given by the store.
	Number     int64
	ProjectID  string
	Customer   string // the caller's external id
	CreditType string
	Entry

	Reason string
	// Metadata is the members of a JSON object; nil for none.
	Metadata map[string]json.RawMessage
	// Key is the Idempotency-Key of topups, charges and adjustments.
	Key string
	// Of is the movement that a reversal undoes, or the hold (by the caller's
	// id) that a capture uses; empty for others.
	Of string
	// Execution is the id of the execution that a capture pays for, empty for
	// others.
	Execution string
	// Grant is how a topup may be used.
	Grant Grant
}

// Balance is what a customer has of a credit type.
type Balance struct {
	Posted, Held Amount
}

// Available is what can be used.
func (b Balance) Available() Amount { return b.Posted - b.Held }

// Balance is the account's.
func (a *Account) Balance() Balance { return Balance{Posted: a.Posted, Held: a.Held} }

// Move is what a topup, charge or adjustment asks for.
type Move struct {
	CreditType string
	// Amount is positive for topups and charges; an adjustment has any sign
	// but is not zero.
	Amount Amount
	Reason string // at most 500 characters
	// Metadata is of at most 16 KiB.
	Metadata map[string]json.RawMessage
	// Grant is for topups only.
	Grant Grant
}

// The longest of each.
const (
	customerLimit   = 200    // characters
	creditTypeLimit = 64     // characters
	reasonLimit     = 500    // characters
	metadataLimit   = 16_384 // bytes
)

// DefaultCreditType is what credits are called when nothing is said.
const DefaultCreditType = "main"

// invalid is the refusal of what a request of keyed work says.
func invalid(field, format string, args ...any) *fault.Error {
	return fault.New(api.CodeInvalidRequest, format, args...).With("field", field)
}

// validate checks a move. Fault: invalid_request.
func (m *Move) validate(kind Kind, now time.Time) error {
	switch {
	case m.Amount == 0, kind != Adjust && m.Amount < 0:
		return invalid("amount", "amount must be more than zero, and not zero for an adjustment")
	case !m.Amount.inRange():
		return invalid("amount", "%s", ErrAmount)
	case m.Grant.Priority < MinPriority || m.Grant.Priority > MaxPriority:
		return invalid("priority", "priority is from %d to %d", MinPriority, MaxPriority)
	case past(m.Grant.ExpiresAt, now):
		return invalid("expires_at", "expires_at must be in the future")
	}
	if err := validateCreditType(m.CreditType); err != nil {
		return err
	}
	return validateNote(m.Reason, m.Metadata)
}

func validateCreditType(name string) error {
	if !validText(name, creditTypeLimit) || strings.TrimSpace(name) != name {
		return invalid("credit_type", "credit_type is a name of 1 to %d characters", creditTypeLimit)
	}
	return nil
}

// validateNote checks what may be said about a movement or hold.
func validateNote(reason string, metadata map[string]json.RawMessage) error {
	if reason != "" && !validText(reason, reasonLimit) {
		return invalid("reason", "reason has at most %d characters and no control characters", reasonLimit)
	}
	if text, err := json.Marshal(metadata); err != nil || len(text) > metadataLimit {
		return invalid("metadata", "metadata holds at most %d bytes", metadataLimit)
	}
	return nil
}

// ValidateCustomer checks a customer's external id: 1 to 200 characters, no
// control characters, not "." or "..". Fault: invalid_request.
func ValidateCustomer(id string) error {
	if !validText(id, customerLimit) || id == "." || id == ".." {
		return invalid("customer", "a customer's id has 1 to %d characters and no control characters, and is not . or ..", customerLimit)
	}
	return nil
}

func validText(s string, limit int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= limit && !strings.ContainsFunc(s, unicode.IsControl)
}
