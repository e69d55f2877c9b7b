package sqldb

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestScrubWaitsForNobody: while an old reader is there it fails at once, so
// that writers are not kept, and the writer waits for locks afterwards as it did.
func TestScrubWaitsForNobody(t *testing.T) {
	t.Parallel()
	o := Options{Path: filepath.Join(t.TempDir(), "actionpulse.db")}
	d := newStore(t, o)
	count(t, d)
	s, err := OpenSnapshot(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	count(t, d)
	began := time.Now()
	if err := d.Scrub(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("%v, want %v", err, errBusy)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("writers were kept for %s", took)
	}
	var timeout string
	if err := d.writer.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&timeout); err != nil || timeout != busyTimeout {
		t.Errorf("the writer waits for %s ms, %v", timeout, err)
	}
	if err := errors.Join(s.Close(), d.Scrub(t.Context())); err != nil {
		t.Error(err)
	}
}
