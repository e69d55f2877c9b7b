package sqlstore_test

import "testing"

// waitBlocked returns when n sessions of this database wait for a lock.
func (f *fixture) waitBlocked(t testing.TB, n int) {
	t.Helper()
	for {
		var waiting int
		must(t, f.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
		if waiting >= n {
			return
		}
	}
}
