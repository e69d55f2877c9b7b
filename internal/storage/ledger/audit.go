package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
)

// overdue is how long after its time a hold may be open before somebody should
// have seen to it.
const overdue = time.Minute

// AuditParams say how the ledger is looked at.
type AuditParams struct {
	// Now is when holds must have been seen to; zero for a store that nobody
	// serves, where time leaves open what has expired.
	Now time.Time
}

// Audit compares everything in the ledger with everything else, as it is at
// one moment; it may be in use. Differences are in the result; an error means
// that the comparison could not be made.
func (s *Store) Audit(ctx context.Context, p AuditParams) (a credit.Audit, err error) {
	// A transaction of SQLite sees one moment whatever it asks for.
	tx, err := s.db.Reader().BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return a, fmt.Errorf("look at the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // it has written nothing
	for text, n := range map[string]*int64{
		`SELECT COUNT(*) FROM movements`:                  &a.Movements,
		`SELECT COUNT(*) FROM balances`:                   &a.Balances,
		`SELECT COUNT(*) FROM holds WHERE state = 'open'`: &a.OpenHolds,
	} {
		if err := tx.QueryRowContext(ctx, text).Scan(n); err != nil {
			return a, fmt.Errorf("count what is in the ledger: %w", err)
		}
	}
	for _, c := range slices.Concat(checks, executionChecks) {
		if err := c.run(ctx, tx, &a); err != nil {
			return a, err
		}
	}
	if err := auditKeys(ctx, tx, &a); err != nil {
		return a, err
	}
	if !p.Now.IsZero() {
		return a, overdueHolds.run(ctx, tx, &a, p.Now.Add(-overdue).UnixMicro())
	}
	return a, nil
}

// check is a query that finds what must not be: of each, three texts.
type check struct{ says, query string }

// run notes what a check finds.
func (c *check) run(ctx context.Context, tx *sql.Tx, a *credit.Audit, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, c.query+` LIMIT 20`, args...)
	if err != nil {
		return fmt.Errorf("look whether %s: %w", c.says, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var what, one, other string
		if err := rows.Scan(&what, &one, &other); err != nil {
			return fmt.Errorf("look whether %s: %w", c.says, err)
		}
		a.Differ(c.says, what, one, other)
	}
	return rows.Err()
}

// balanceName names a balance b in a query that joins c and t.
const (
	balanceName = `c.project_id || ' ' || c.external_id || ' ' || t.name`
	balanceJoin = ` JOIN customers c ON c.id = b.customer_id JOIN credit_types t ON t.id = b.credit_type_id `
)

// checks are what must hold whatever the time is. A balance is the sum of its
// entries because each entry continues the one before it, and the balance is
// where the last one ends: so nothing needs to be summed, nor can overflow.
var checks = []check{
	{
		"the entry %s says that the balance after it is %s, and it is %s", `
SELECT id, CAST(balance_after AS text), CAST(before + delta AS text) FROM (
  SELECT id, delta, balance_after, LAG(balance_after, 1, CAST(0 AS bigint))
    OVER (PARTITION BY customer_id, credit_type_id ORDER BY number) AS before
  FROM movements) AS chain
WHERE balance_after <> before + delta`,
	},
	{
		"the balance %s has %s posted, and its entries sum to %s", `
SELECT name, CAST(posted AS text), CAST(entries AS text) FROM (
  SELECT ` + balanceName + ` AS name, b.posted, COALESCE((SELECT m.balance_after FROM movements m
    WHERE m.customer_id = b.customer_id AND m.credit_type_id = b.credit_type_id ORDER BY m.number DESC LIMIT 1), 0) AS entries
  FROM balances b` + balanceJoin + `) AS sums
WHERE posted <> entries`,
	},
	{
		"the entry %s of %s moves %s, which is not what its kind does", `
SELECT id, kind || ' ' || CAST(amount AS text), CAST(delta AS text) FROM movements WHERE
  kind IN ('topup', 'adjust') AND delta <> amount OR kind IN ('charge', 'capture', 'expiry') AND delta <> -amount
  OR kind = 'reversal' AND delta <> amount AND delta <> -amount OR kind <> 'adjust' AND amount < 0`,
	},
	{
		"the reversal %s of %s does not undo %s", `
SELECT r.id, CAST(r.delta AS text), m.id || ' of ' || CAST(m.delta AS text) FROM movements r JOIN movements m ON m.id = r.reversal_of
WHERE r.customer_id <> m.customer_id OR r.credit_type_id <> m.credit_type_id OR m.kind IN ('reversal', 'expiry')
  OR (r.delta > 0) = (m.delta > 0) OR r.amount > m.amount AND r.amount > -m.amount`,
	},
	{
		"the balance %s has %s held, and its open holds sum to %s", `
SELECT name, CAST(held AS text), CAST(holds AS text) FROM (
  SELECT ` + balanceName + ` AS name, b.held, COALESCE((SELECT SUM(h.amount) FROM holds h
    WHERE h.customer_id = b.customer_id AND h.credit_type_id = b.credit_type_id AND h.state = 'open'), 0) AS holds
  FROM balances b` + balanceJoin + `) AS sums
WHERE held <> holds`,
	},
	{
		"the grant of %s has %s pinned, and open holds pin %s of it", `
SELECT movement_id, CAST(pinned AS text), CAST(pins AS text) FROM (
  SELECT g.movement_id, g.pinned, COALESCE((SELECT SUM(p.amount) FROM hold_pins p JOIN holds h ON h.id = p.hold
    WHERE p.grant_id = g.id AND h.state = 'open'), 0) AS pins
  FROM grants g) AS sums
WHERE pinned <> pins`,
	},
	{
		"the hold %s is of %s, and pins %s of grants, or grants of another balance", `
SELECT h.hold_id, CAST(h.amount AS text), CAST(SUM(p.amount) AS text)
FROM holds h JOIN hold_pins p ON p.hold = h.id JOIN grants g ON g.id = p.grant_id
GROUP BY h.id, h.hold_id, h.amount, h.customer_id, h.credit_type_id
HAVING SUM(p.amount) > h.amount OR MIN(g.customer_id) <> h.customer_id OR MAX(g.customer_id) <> h.customer_id
  OR MIN(g.credit_type_id) <> h.credit_type_id OR MAX(g.credit_type_id) <> h.credit_type_id`,
	},
	{
		"the balance %s has %s available, and of its grants %s are free", `
SELECT name, CAST(available AS text), CAST(free AS text) FROM (
  SELECT ` + balanceName + ` AS name, b.posted - b.held AS available, COALESCE((SELECT SUM(g.remaining - g.pinned) FROM grants g
    WHERE g.customer_id = b.customer_id AND g.credit_type_id = b.credit_type_id AND g.remaining > 0), 0) AS free
  FROM balances b` + balanceJoin + `) AS sums
WHERE free > available AND free > 0`,
	},
	{
		"the balance %s says %s of grants, and there are %s with something left", `
SELECT name, CAST(has_grants AS text), CAST(n AS text) FROM (
  SELECT ` + balanceName + ` AS name, b.has_grants, (SELECT COUNT(*) FROM grants g
    WHERE g.customer_id = b.customer_id AND g.credit_type_id = b.credit_type_id AND g.remaining > 0) AS n
  FROM balances b` + balanceJoin + `) AS sums
WHERE (has_grants = 1) <> (n > 0)`,
	},
	{
		"the grant of %s has %s, and its topup %s", `
SELECT g.movement_id, CAST(g.amount AS text), COALESCE(m.kind || ' ' || CAST(m.amount AS text), 'does not exist')
FROM grants g LEFT JOIN movements m ON m.id = g.movement_id
WHERE m.id IS NULL OR m.kind <> 'topup' OR m.amount < g.amount OR m.customer_id <> g.customer_id OR m.credit_type_id <> g.credit_type_id`,
	},
	{
		"the hold %s is %s, and its capture is of %s", `
SELECT h.hold_id, h.state || ' ' || CAST(h.captured AS text), COALESCE(CAST(m.amount AS text), 'nothing')
FROM holds h LEFT JOIN movements m ON m.hold = h.id
WHERE (h.state = 'captured') <> (m.id IS NOT NULL) OR m.amount <> h.captured
  OR m.customer_id <> h.customer_id OR m.credit_type_id <> h.credit_type_id`,
	},
	{
		"the key %s of project %s names movement %s, which is another's or does not exist", `
SELECT k.idempotency_key, k.scope, k.resource_id FROM idempotency_keys k
LEFT JOIN movements m ON m.id = k.resource_id
WHERE k.namespace = 'work' AND k.resource_kind IN ('topup', 'charge', 'adjust')
  AND (m.id IS NULL OR m.project_id <> k.scope OR m.work_key IS NULL OR m.work_key <> k.idempotency_key OR m.kind <> k.resource_kind)`,
	},
	{
		"the movement %s has the key %s, which is %s", `
SELECT m.id, m.work_key, COALESCE(k.state || ' ' || k.resource_kind || ' ' || k.resource_id, 'free')
FROM movements m LEFT JOIN idempotency_keys k ON k.scope = m.project_id AND k.namespace = 'work' AND k.idempotency_key = m.work_key
WHERE m.work_key IS NOT NULL AND (k.state IS NULL OR k.state <> 'done' OR k.resource_id <> m.id)`,
	},
}

// overdueHolds finds holds that nobody owns any more.
var overdueHolds = check{
	"the hold %s of %s has expired at %s and is open", `
SELECT b.hold_id, ` + balanceName + `, CAST(b.expires_at AS text) FROM holds b` + balanceJoin + `
WHERE b.state = 'open' AND b.expires_at <= $1`,
}

// auditKeys compares movements with what their keys remember of them.
func auditKeys(ctx context.Context, tx *sql.Tx, a *credit.Audit) (err error) {
	rows, err := tx.QueryContext(ctx, `SELECT k.tombstone, `+movementColumns+movementTables+`
JOIN idempotency_keys k ON k.scope = m.project_id AND k.namespace = 'work' AND k.idempotency_key = m.work_key
WHERE m.work_key IS NOT NULL`)
	if err != nil {
		return fmt.Errorf("compare movements with their keys: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var tombstone []byte
		m, err := scanMovement(func(dest ...any) error { return rows.Scan(append([]any{&tombstone}, dest...)...) })
		if err != nil {
			return fmt.Errorf("read a movement: %w", err)
		}
		var remembered idempotency.Print
		if err := remembered.UnmarshalBinary(tombstone); err != nil {
			a.Differ("what the key %s of movement %s remembers cannot be read: %v", m.Key, m.ID, err)
			continue
		}
		differs, err := credit.CheckKey(&m, remembered)
		if err != nil {
			return err
		}
		if len(differs) > 0 {
			a.Differ("the key %s of movement %s remembers another %s", m.Key, m.ID, differs)
		}
	}
	return rows.Err()
}
