package credit

import (
	"encoding/json"
	"fmt"

	"github.com/actionpulse/actionpulse/idempotency"
)

// maxDifferences is how many differences an audit spells out.
const maxDifferences = 20

// Audit says whether the ledger agrees with itself.
type Audit struct {
	// Movements, Balances and OpenHolds count what was looked at.
	Movements, Balances, OpenHolds int64
	// Differences are the first ones found, in words.
	Differences []string
}

// Differ notes a difference.
func (a *Audit) Differ(format string, args ...any) {
	if len(a.Differences) < maxDifferences {
		a.Differences = append(a.Differences, fmt.Sprintf(format, args...))
	}
}

// CheckKey compares a movement with what its key remembers for ever, and
// returns the names of what differs.
func CheckKey(m *Movement, tombstone idempotency.Print) ([]string, error) {
	body, err := json.Marshal(map[string]string{"credit_type": m.CreditType, "amount": m.Amount.String()})
	if err != nil {
		return nil, fmt.Errorf("write a movement as its request: %w", err)
	}
	r := request(&movementPolicy, &MoveParams{ProjectID: m.ProjectID, Customer: m.Customer, Kind: m.Kind, Key: m.Key, Body: body})
	return tombstone.Differs(movementPolicy.Retention.Tombstone.Print(&r)), nil
}

// movementPolicy is the policy of movements, for what does not depend on how
// long answers are kept.
var movementPolicy = idempotency.CreditMovement(0)
