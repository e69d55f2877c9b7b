package privacy_test

import (
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/privacy"
)

// TestAJobIsNotPutOffByAClockThatIsSetBack: no wait is longer than a minute. What
// was put off while the clock was months ahead is not done months later.
func TestAJobIsNotPutOffByAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, b *bench) {
		b.ahead.Store(int64(5000 * time.Hour))
		b.running = "ada"
		b.work(t)
		waits := b.create(t, privacy.Delete, "ada")
		eventually(t, "a wait for executions", func() bool {
			j := b.get(t, waits.ID)
			return j.Phase == privacy.PhaseCustomers && j.Status == privacy.Queued
		})
		b.mu.Lock()
		b.running = ""
		b.mu.Unlock()
		b.ahead.Store(0)
		b.wake()
		b.await(t, waits.ID)
	}
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); onSQLite(t, test) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); onPostgreSQL(t, test) })
}
