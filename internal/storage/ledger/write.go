package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/actionpulse/actionpulse/idempotency"
	keystore "github.com/actionpulse/actionpulse/idempotency/sqlstore"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// write writes what was decided, in one batch: what is kept along, holds,
// grants, movements, balances, and last what becomes of the keys.
func (w *work) write(ctx context.Context) error {
	if err := w.writeAlong(); err != nil {
		return err
	}
	for _, a := range w.sorted() {
		if err := w.writeAccount(a); err != nil {
			return err
		}
	}
	w.addRows(createMovementsText, createMovementsEach, w.movements)
	w.addRows(updateBalancesText, updateBalancesEach, w.balances)
	for _, a := range w.sorted() {
		if err := w.writeMessages(a); err != nil {
			return err
		}
	}
	ends, err := w.endKeys()
	if err != nil {
		return err
	}
	for _, one := range ends {
		w.writes = append(w.writes, sqldb.Statement(one))
	}
	if err := w.batch.Run(ctx, w.writes); err != nil {
		return fmt.Errorf("write movements: %w", err)
	}
	crash.Point("movements.written")
	return nil
}

func (w *work) add(text string, args ...any) {
	w.writes = append(w.writes, sqldb.Statement{Text: text, Args: args})
}

func (w *work) addRows(text, each string, args [][]any) {
	w.writes = append(w.writes, w.batch.Rows(sqldb.Rows{Text: text, Each: each, Args: args})...)
}

func (w *work) writeAccount(a *account) error {
	for _, l := range a.Lots {
		before, ok := a.lots[l.Movement]
		switch {
		case !ok:
			w.add(createLotText, a.place.customerID, a.place.typeID, l.Movement, int64(l.Priority), sqldb.NullTime(l.ExpiresAt),
				l.CreatedAt.UnixMicro(), int64(l.Granted), int64(l.Remaining), int64(l.Pinned))
		case before.Remaining != l.Remaining || before.Pinned != l.Pinned:
			w.add(updateLotText, l.Movement, int64(l.Remaining), int64(l.Pinned))
		}
	}
	for _, h := range a.holdsMade {
		if err := w.writeHold(a, h); err != nil {
			return err
		}
	}
	for i := range a.movementsMade {
		if err := w.writeMovement(a, &a.movementsMade[i]); err != nil {
			return err
		}
	}
	w.writeBalance(a)
	return nil
}

// writeBalance writes what has changed of a balance.
func (w *work) writeBalance(a *account) {
	hasGrants := false
	for _, l := range a.Lots {
		hasGrants = hasGrants || l.Remaining > 0
	}
	b := &a.before
	if a.missing || b.Posted == a.Posted && b.Held == a.Held && b.NextDue.Equal(a.NextDue) &&
		b.UpdatedAt.Equal(a.UpdatedAt) && hasGrants == a.hasGrants {
		return
	}
	w.balances = append(w.balances, []any{
		a.place.customerID, a.place.typeID, number(a.AllowNegative), int64(a.Posted), int64(a.Held), number(hasGrants),
		sqldb.NullTime(a.NextDue), a.UpdatedAt.UnixMicro(),
	})
}

// writeHold writes a hold that is new, or closes one.
func (w *work) writeHold(a *account, h *credit.StoredHold) error {
	if a.opened[h.ID] {
		w.add(closeHoldText, a.place.customerID, h.ID, int64(h.Captured), string(h.State), h.ClosedAt.UnixMicro())
		return nil
	}
	metadata, err := metadataText(h.Note.Metadata)
	if err != nil {
		return err
	}
	w.add(createHoldText, a.place.customerID, a.place.typeID, h.ID, int64(h.Amount), int64(h.Captured), string(h.State),
		sqldb.NullTime(h.ExpiresAt), h.CreatedAt.UnixMicro(), sqldb.NullTime(h.ClosedAt), h.Print, sqldb.NullString(h.Note.Reason), metadata,
		sqldb.NullString(h.Execution))
	for _, p := range h.Pins {
		w.add(createPinText, a.place.customerID, h.ID, p.Lot.Movement, int64(p.Amount))
	}
	return nil
}

// writeMovement writes a movement. They are numbered in the order in which they
// are written.
func (w *work) writeMovement(a *account, m *credit.Movement) error {
	metadata, err := metadataText(m.Metadata)
	if err != nil {
		return err
	}
	var reversalOf, priority, expires any
	switch m.Kind {
	case credit.Reversal:
		reversalOf = m.Of
	case credit.Topup:
		priority, expires = int64(m.Grant.Priority), sqldb.NullTime(m.Grant.ExpiresAt)
	}
	row := []any{
		m.ID, m.ProjectID, a.place.customerID, a.place.typeID, string(m.Kind), int64(m.Amount), int64(m.Delta), int64(m.BalanceAfter),
		sqldb.NullString(m.Reason), metadata, sqldb.NullString(m.Key), reversalOf, nil, priority, expires, m.At.UnixMicro(),
	}
	if m.Kind != credit.Capture {
		w.movements = append(w.movements, row)
		return nil
	}
	w.addRows(createMovementsText, createMovementsEach, w.movements) // what comes before it
	w.movements = nil
	const hold = 12
	row = slices.Replace(row, hold, hold+1, any(a.place.customerID), any(m.Of))
	w.addRows(createMovementsText, createCaptureEach, [][]any{row})
	return nil
}

// endKeys takes the keys of what was done and frees those of what was refused.
func (w *work) endKeys() ([]keystore.Statement, error) {
	var done, refused []*keystore.Member
	var answers []idempotency.Answer
	for _, m := range w.members {
		switch {
		case m.Key == nil, m.key.Claim.Judgement.Verdict != idempotency.Fresh:
		case m.Outcome.Err != nil:
			refused = append(refused, &m.key)
		default:
			done, answers = append(done, &m.key), append(answers, *m.Outcome.Key.Answer)
		}
	}
	statements, err := w.store.db.Keys().CompleteGroup(done, answers)
	if err != nil {
		return nil, err
	}
	return append(statements, w.store.db.Keys().FreeGroup(refused)...), nil
}
