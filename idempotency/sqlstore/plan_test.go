package sqlstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// fill puts 20,000 keys into the table, of which 1 % have expired.
func (f *fixture) fill(t testing.TB) {
	t.Helper()
	now := f.clock.now().UnixMicro()
	_, err := f.db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO idempotency_keys (scope, namespace, idempotency_key, state, owner, epoch, print, tombstone, status, body,
  created_at, answer_expires_at, key_expires_at)
SELECT 'p1', 'work', CAST(i AS text), 'done', CAST('0123456789abcdef' AS `+f.bytes()+`), 1, CAST('' AS `+f.bytes()+`),
  CAST('' AS `+f.bytes()+`), 200, CAST('x' AS `+f.bytes()+`), CAST($1 AS bigint),
  CAST($1 AS bigint) + (i - 200) * CAST(1000000 AS bigint), CAST($1 AS bigint) + (i - 200) * CAST(1000000 AS bigint) FROM n`, now-int64(4e9))
	must(t, err)
	_, err = f.db.ExecContext(t.Context(), `ANALYZE`)
	must(t, err)
}

func (f *fixture) bytes() string {
	if f.source.Dialect == sqlstore.SQLite {
		return "blob"
	}
	return "bytea"
}

// Every statement finds its rows in an index, by a condition of the index: no
// sweep reads what it does not remove.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		f.fill(t)
		for name, args := range map[string][]any{
			"find":  {nil, "p1", "work", "7"},
			"count": {"p1", "work", "7", 1, 1}, "strip": {nil, 3_600_000_000, 500}, "forget": {nil, 3_600_000_000, 500},
		} {
			if d == sqlstore.SQLite && args[0] == nil {
				args[0] = f.clock.now().UnixMicro()
			}
			plan := f.plan(t, f.Texts()[name], args)
			for _, bad := range []string{"Seq Scan", "SCAN idempotency_keys"} {
				if strings.Contains(plan, bad) {
					t.Errorf("%s reads the whole table:\n%s", name, plan)
				}
			}
			want := map[string]string{
				"strip":  "Index Cond: (answer_expires_at <= ;idempotency_keys_answers (answer_expires_at<?)",
				"forget": "Index Cond: (key_expires_at <= ;idempotency_keys_forgotten (key_expires_at<?)",
				"find":   "Index Cond: ((scope = ;(scope=? AND namespace=? AND idempotency_key=?)",
				"count":  "Index Cond: ((scope = ;(scope=? AND namespace=? AND idempotency_key=?)",
			}[name]
			postgres, sqlite, _ := strings.Cut(want, ";")
			if !strings.Contains(plan, postgres) && !strings.Contains(plan, sqlite) {
				t.Errorf("%s does not look its limit up:\n%s", name, plan)
			}
		}
	})
}

func (f *fixture) plan(t testing.TB, text string, args []any) string {
	t.Helper()
	explain := "EXPLAIN "
	if f.source.Dialect == sqlstore.SQLite {
		explain = "EXPLAIN QUERY PLAN "
	}
	rows, err := f.db.QueryContext(t.Context(), explain+text, args...)
	must(t, err)
	defer rows.Close() //nolint:errcheck // rows.Err says it
	var plan strings.Builder
	columns, err := rows.Columns()
	must(t, err)
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		must(t, rows.Scan(values...))
		fmt.Fprintln(&plan, *values[len(values)-1].(*any))
	}
	must(t, rows.Err())
	return plan.String()
}
