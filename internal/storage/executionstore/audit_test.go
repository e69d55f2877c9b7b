package executionstore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// damages are what no code of ours does, each to an execution of its own, whose
// key is the number of the damage, and what the audit says of it.
var damages = []struct{ statement, says string }{
	{`UPDATE holds SET state = 'open', captured = 0, closed_at = NULL WHERE execution_id = '%s'`, "is open, and the execution is succeeded"},
	{`UPDATE holds SET state = 'open', captured = 0, closed_at = NULL, execution_id = 'none' WHERE execution_id = '%s'`, "is open, and the execution is not there"},
	{`UPDATE executions SET charged = charged + 1 WHERE id = '%s'`, "was charged 1000001, and of its hold 1000000 was captured"},
	{`UPDATE executions SET charged = 7, customer_id = NULL WHERE id = '%s'`, "which is another's"},
	{`UPDATE idempotency_keys SET resource_id = 'none' WHERE resource_id = '%s'`, "names execution none, which is another's"},
	{`DELETE FROM idempotency_keys WHERE resource_id = '%s'`, "which is free"},
	{`UPDATE executions SET status = 'queued', output = NULL, finished_at = NULL WHERE id = '%s'`, "is queued, and its hold is captured"},
	{`UPDATE execution_calls SET status = 'running' WHERE derived_key = '%s:a'`, "is still running, and the execution is succeeded"},
}

func TestAuditFindsDamage(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "steps: [{id: a, type: http}]\nprice: {per_run: \"1\"}\n", nil)
		s := b.serve(t, 1)
		ids := make([]string, len(damages))
		for i := range damages {
			ids[i] = s.must(t, b, order{key: fmt.Sprint(i), flow: slug, customer: slug}).ID
		}
		b.settled(t)
		s.stop()
		raw := unguarded(t, b.options)
		for i, one := range damages {
			if _, err := raw.ExecContext(t.Context(), fmt.Sprintf(one.statement, ids[i])); err != nil {
				t.Fatal(err)
			}
			a, err := ledger.New(b.db).Audit(t.Context(), ledger.AuditParams{})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, text := range a.Differences {
				found = found || strings.Contains(text, one.says) && (i == 4 || strings.Contains(text, ids[i]))
			}
			if !found {
				t.Errorf("%q does not say %q of %s", a.Differences, one.says, ids[i])
			}
		}
	})
}

// A step has one row, whatever anybody writes.
func TestStepHasOneRow(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "steps: [{id: a, type: http}]\n", nil)
		b.serve(t, 1).must(t, b, order{key: "k", flow: slug})
		_, err := unguarded(t, b.options).ExecContext(t.Context(), `INSERT INTO execution_steps
			(execution, step, iteration, type, state, attempt, output, price, started_at, finished_at)
			SELECT execution, step, iteration, type, state, attempt + 1, output, price, started_at, finished_at FROM execution_steps`)
		if err == nil {
			t.Error("a step has two results")
		}
	})
}

// unguarded opens a store with what guards its tables switched off.
func unguarded(t *testing.T, o sqldb.Options) *sql.DB {
	t.Helper()
	driver, source, before := "pgx", o.URL, []string{`SET session_replication_role = 'replica'`}
	if o.Path != "" {
		driver, source = "sqlite", "file:"+filepath.ToSlash(o.Path)
		before = []string{`PRAGMA ignore_check_constraints = 1`, `PRAGMA foreign_keys = 0`, `PRAGMA busy_timeout = 10000`}
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1)
	for _, text := range before {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return db
}

// Old traces are emptied, in groups; executions, prices and usage stay, and
// nothing that has not ended is touched.
func TestSweep(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, `
steps:
  - {id: each, type: parallel, over: "${input.list}", max_items: 1000, steps: [{id: x, type: transform, value: "${item}"}]}
  - {id: a, type: model, name: m}
  - {id: nap, type: wait, for: "${input.nap}"}
output: "${steps.a.name}"
limits: {timeout: 24h}
`, echoes)
		s := b.serve(t, 2)
		list := `{"nap":"%s","list":[1` + strings.Repeat(",1", 449) + `]}`
		x := s.must(t, b, order{key: "ended", flow: slug, input: fmt.Sprintf(list, "0s")})
		running := s.must(t, b, order{key: "runs", flow: slug, input: fmt.Sprintf(list, "3h"), mode: execution.Async})
		eventually(t, "it waits", func() bool {
			return b.count(t, `execution_steps WHERE step = 'nap' AND state = 'started' AND execution = $1`, running.Number) > 0
		})
		later := b.serve(t, 0, func(p *execution.Params) { p.Clock = func() time.Time { return time.Now().Add(2 * time.Hour) } })
		if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		if n, err := later.Sweep(t.Context()); n != 454 || err != nil { // 450 and three steps, and a call
			t.Errorf("%d %v", n, err)
		}
		if n, err := later.Sweep(t.Context()); n != 0 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		tr, err := later.Trace(t.Context(), b.project, x.ID)
		if err != nil || string(tr.Execution.Output) != `"m"` || len(tr.Steps) != 453 || len(tr.Calls) != 1 || tr.Calls[0].DerivedKey == "" {
			t.Fatalf("%d steps, %+v %v", len(tr.Steps), tr.Execution, err)
		}
		if tr.Calls[0].Request != nil || tr.Calls[0].Response != nil || string(tr.Steps[0].Output) != "null" {
			t.Error("something is kept")
		}
		if n := b.count(t, `execution_steps WHERE output = 'null' AND execution = $1`, running.Number); n != 0 {
			t.Error("a journal was emptied that is needed")
		}
	})
}
