package eventstore_test

import (
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
)

const window = 48 * 3600 * 1000

var storeID = [16]byte{0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// open returns a new store that closes with the test.
func open(tb testing.TB, opts eventstore.Options) *eventstore.Store {
	tb.Helper()
	if opts.Path == "" {
		opts.Path = filepath.Join(tb.TempDir(), "events.duckdb")
		if err := eventstore.Create(tb.Context(), opts.Path, storeID); err != nil {
			tb.Fatal(err)
		}
	}
	s, err := eventstore.Open(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}
