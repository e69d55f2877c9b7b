package credit

import "github.com/actionpulse/actionpulse/api"

// Wire is a movement as it is sent: in answers, and in webhooks.
func (m *Movement) Wire() api.Movement {
	out := api.Movement{
		ID: m.ID, Kind: string(m.Kind), Customer: m.Customer, CreditType: m.CreditType,
		Amount: m.Amount.String(), Delta: m.Delta.String(), BalanceAfter: m.BalanceAfter.String(),
		Reason: api.OptionalText(m.Reason), Metadata: m.Metadata, IdempotencyKey: api.OptionalText(m.Key),
		CreatedAt: api.TimeText(m.At),
	}
	switch m.Kind {
	case Topup:
		out.ExpiresAt, out.Priority = api.OptionalTime(m.Grant.ExpiresAt), new(m.Grant.Priority)
	case Capture:
		out.Hold, out.ExecutionID = api.OptionalText(m.Of), api.OptionalText(m.Execution)
	case Reversal:
		out.ReversalOf = api.OptionalText(m.Of)
	}
	return out
}
