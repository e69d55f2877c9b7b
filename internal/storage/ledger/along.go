package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Along is what another store keeps in the transaction of an op: its Along. Of
// the rows that an op reads only that op's kind may be locked while balances
// are not, or groups could wait for each other.
type Along interface {
	// Order is in which order rows are locked: by whoever runs groups, at the
	// same time, too.
	Order() int64
	// Read returns statements that lock and read what the op is decided by,
	// with rows that are read anew each time. They run after all balances of
	// the group are locked.
	Read(b *sqldb.Batch) []sqldb.Statement
	// Write returns statements that write what was decided. They run before
	// those that write the op's holds and movements.
	Write(o *credit.Outcome) ([]sqldb.Statement, error)
}

// aboutNothing says that the op is about no credits.
func (m *member) aboutNothing() bool { return m.Subject == credit.Subject{} }

// readAlong reads what others keep along.
func (w *work) readAlong(ctx context.Context) error {
	var alongs []Along
	for _, m := range w.open() {
		if m.Along == nil {
			continue
		}
		var ok bool
		if m.along, ok = m.Along.(Along); !ok {
			return fmt.Errorf("an op keeps a %T along", m.Along)
		}
		alongs = append(alongs, m.along)
	}
	slices.SortStableFunc(alongs, func(a, b Along) int { return cmp.Compare(a.Order(), b.Order()) })
	var finds []sqldb.Statement
	for _, along := range alongs {
		finds = append(finds, along.Read(w.batch)...)
	}
	if err := w.batch.Run(ctx, finds); err != nil {
		return fmt.Errorf("read what ops keep along: %w", err)
	}
	return nil
}

// writeAlong writes what others keep along with ops that were not refused, and
// not done before.
func (w *work) writeAlong() error {
	for _, m := range w.members {
		if m.along == nil || m.Outcome.Err != nil || !m.Outcome.Created {
			continue
		}
		writes, err := m.along.Write(&m.Outcome)
		if err != nil {
			return fmt.Errorf("write what an op keeps along: %w", err)
		}
		w.writes = append(w.writes, writes...)
	}
	return nil
}
