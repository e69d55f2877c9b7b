package executionstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// A project that runs as much as it can for a long time leaves room to another
// one.
func TestOneProjectLeavesRoom(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "nap", "steps: [{id: nap, type: wait, for: 1h}]\nlimits: {timeout: 2h}\n")
		s := b.serve(t, 8)
		for i := range 20 {
			mode := execution.Async
			if i%2 == 0 {
				mode = execution.Sync
			}
			s.must(t, b, order{key: fmt.Sprint("nap", i), flow: "nap", mode: mode, wait: new(time.Duration)})
		}
		eventually(t, "the first project runs what it may", func() bool { return b.count(t, `executions WHERE status = 'running'`) >= 6 })
		other := *b
		other.project = otherProject(t, b)
		other.publish(t, "quick", "steps: [{id: a, type: transform, value: 1}]\n")
		for _, mode := range []execution.Mode{execution.Sync, execution.Async} {
			x := s.must(t, &other, order{key: string(mode), flow: "quick", mode: mode})
			if x = s.ended(t, &other, x.ID); x.Status != execution.Succeeded {
				t.Errorf("%+v", x)
			}
		}
		if n := b.count(t, `executions WHERE status = 'running'`); n > 7 {
			t.Errorf("%d executions of one project run in 8 places", n)
		}
	})
}

// otherProject makes a second project.
func otherProject(t *testing.T, b *bench) string {
	t.Helper()
	store := sqlstore.New(b.db)
	services := account.NewServices(account.ServicesParams{
		Store: store, Clock: time.Now, Random: rand.Reader, AfterChange: func(_ context.Context, err error) error { return err },
	})
	var organization string
	if err := b.db.Reader().QueryRowContext(t.Context(), `SELECT organization_id FROM projects WHERE id = $1`, b.project).Scan(&organization); err != nil {
		t.Fatal(err)
	}
	p, err := services.Projects.Create(t.Context(), auditlog.Actor{}, organization, "other")
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}
