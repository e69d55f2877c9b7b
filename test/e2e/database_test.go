package e2e_test

import (
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Accounts and credentials in PostgreSQL change nothing about events.
func TestOnPostgreSQL(t *testing.T) {
	url := pgtest.New(t)
	site := apptest.New(t, "--database", url)
	r := site.MustServe()
	ids := r.TrackNew(3)
	r.MustStop()
	r = site.MustServe()
	if a := r.Track(ids...); a["duplicates"] != 3.0 {
		t.Fatalf("got %v", a)
	}
	if stored := rows(t, r); len(stored) != 3 {
		t.Fatalf("stored %v", stored)
	}
	r.MustStop()
	if report := site.Verify(); !report.OK {
		t.Fatalf("got %+v", report)
	}

	other := apptest.New(t)
	other.Flags = []string{"--database", url}
	other.MustRefuse("belong to another data folder")
}

// beside is a further server on the same database: with a copy of a stopped
// server's folder, its credentials and its flags.
func beside(t *testing.T, site *apptest.Site) *apptest.Site {
	t.Helper()
	second := apptest.Bare(t)
	second.Dir, second.Setup, second.Flags = site.Copy(), site.Setup, site.Flags
	return second
}
