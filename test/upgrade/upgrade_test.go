package upgrade_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/test/upgrade"
	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

// clock runs from a time in the past: what a fixture was recorded with is as
// young as it was then, however old the fixture is.
type clock struct {
	intake.SystemClock

	from, began time.Time
}

func (c clock) Wall() time.Time { return c.from.Add(time.Since(c.began)) }

// flags are those that the fixture was recorded with: claims and answers are
// kept for as long as they can be.
var flags = []string{"--intake.window", "720h", "--credits.response_retention", "87600h"}

// TestUpgrade opens the folder of each earlier release that is kept: what it
// had acknowledged is there, what it had done is not done again.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	releases, err := os.ReadDir("testdata")
	if err != nil || len(releases) == 0 {
		t.Fatalf("no releases: %v", err)
	}
	for _, release := range releases {
		t.Run(release.Name(), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			f, err := upgrade.Load(filepath.Join("testdata", release.Name()), dir)
			if err != nil {
				t.Fatal(err)
			}
			open(t, f, dir)
		})
	}
}

func open(t *testing.T, f *upgrade.Fixture, dir string) {
	t.Helper()
	site := apptest.At(t, dir, flags...)
	site.Clock = clock{from: f.RecordedAt, began: time.Now()}
	before := site.Verify()
	if !before.OK || before.Backlog != f.Waiting || before.Quarantined != int64(f.Quarantined) {
		t.Fatalf("before anything was done: %+v, want %d waiting and %d set aside", before, f.Waiting, f.Quarantined)
	}
	for range 2 {
		r := site.MustServe()
		repeat(t, login(t, r, f), f.Said)
		r.MustStop()
		after := site.Verify()
		if !after.OK || after.Rows != before.Rows+int64(f.Waiting) || after.Claims != before.Claims ||
			after.Movements != before.Movements || after.OpenHolds != before.OpenHolds {
			t.Fatalf("repeats have done something: %+v, before %+v", after, before)
		}
	}
	c := login(t, site.MustServe(), f)
	repeat(t, c, f.Seen)
	said, err := c.Late(t.Context(), 99, 1)
	if err != nil || !strings.Contains(said[0].Answer, `"accepted":2,"duplicates":0`) {
		t.Errorf("after the upgrade new events are not new: %v %v", said, err)
	}
}

func login(t *testing.T, r *apptest.Running, f *upgrade.Fixture) *conversation.Client {
	t.Helper()
	c := &conversation.Client{URL: r.URL, Credentials: f.Credentials, HTTP: http.DefaultClient}
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// repeat makes every recorded request again.
func repeat(t *testing.T, c *conversation.Client, said []conversation.Exchange) {
	t.Helper()
	faults, err := c.Again(t.Context(), said)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}
