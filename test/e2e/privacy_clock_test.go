package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// TestAClockThatIsSetBackAroundADeletion: all of the person that was stored while
// the machine's clock was hours ahead goes, whether the clock was put right before
// the job was made or while it waited; and it does not wait until the clock is
// there again.
func TestAClockThatIsSetBackAroundADeletion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		site  func(*testing.T, ...string) *apptest.Site
		early bool
	}{
		"SQLite, before the job":          {apptest.New, true},
		"PostgreSQL, while the job waits": {apptest.NewOnPostgreSQL, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &leaping{}
			clock.ahead.Store(int64(3 * time.Hour))
			site := c.site(t)
			site.Clock, site.Now = clock, clock.Wall
			r := site.MustServe()
			w := newWorld(t, r)
			blobs := w.blobs(t)
			if c.early {
				clock.ahead.Store(0)
			}
			path, execution := holdPerson(t, r, "ada")
			clock.ahead.Store(0)
			asProject(r).must(t, 200, "POST", "/v1/executions/"+execution+"/cancel", "")
			balances := asProject(r).must(t, 200, "GET", "/v1/customers/ada", "").body["balances"]
			awaitJob(t, r, path)
			w.onlyTheirs(t)
			w.repeats(t)
			w.onlyHisRecordings(t, blobs)
			w.customers(t, fmt.Sprint(balances))
			again := len(w.hers)
			w.send(t, w.event(&w.hers, `"user_id":"ada"`))
			// By the clock that is right everything is stored, long since.
			eventually(t, func() bool { return slices.Equal(stored(t, r), sorted(w.theirs, w.hers[again:])) })
		})
	}
}
