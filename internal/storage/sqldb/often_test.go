package sqldb_test

import (
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// TestOften: many who ask the same at once are answered, each with their own,
// and what is wrong with a text is said each time.
func TestOften(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			askOften(t, storagetest.New(t, open))
		})
	}
}

func askOften(t *testing.T, db *sqldb.DB) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for range 20 {
				var got int
				if err := db.Often().QueryRowContext(t.Context(), "SELECT CAST($1 AS bigint)", i).Scan(&got); err != nil || got != i {
					t.Errorf("%d: %d, %v", i, got, err)
				}
			}
		})
	}
	all.Wait()
	for range 2 {
		if db.Often().QueryRowContext(t.Context(), "SELECT x FROM nowhere").Scan(new(int)) == nil {
			t.Error("there is no such table")
		}
	}
}
