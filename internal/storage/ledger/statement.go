package ledger

// The statements of a group of movements. They are written here and not
// generated, because they run in batches; like those of package sqldb they are
// one text for both engines. {lock} locks rows where a transaction does not
// already have the store for itself.
const (
	findCustomerText = `SELECT id FROM customers WHERE project_id = $1 AND external_id = $2`

	createCustomerText = `INSERT INTO customers (project_id, external_id, created_at) VALUES ($1, $2, $3)` + unlessThere

	unlessThere = `
ON CONFLICT (project_id, external_id) DO NOTHING`

	createCustomersText = `INSERT INTO customers (project_id, external_id, created_at) VALUES {rows}` + unlessThere + `
RETURNING project_id, external_id, id`

	findCreditTypeText = `SELECT id, allow_negative FROM credit_types WHERE project_id = $1 AND name = $2` //nolint:gosec // credits are no credentials

	createCreditTypeText = `INSERT INTO credit_types (project_id, name, allow_negative, created_at) VALUES ($1, $2, 0, $3)
ON CONFLICT (project_id, name) DO NOTHING`

	createBalancesText = `INSERT INTO balances (customer_id, credit_type_id, allow_negative, posted, held, has_grants, updated_at)
VALUES {rows} ON CONFLICT (customer_id, credit_type_id) DO NOTHING`

	lockBalanceText = `SELECT posted, held, has_grants, next_due, updated_at
FROM balances WHERE customer_id = $1 AND credit_type_id = $2`

	// Every one of these rows is there: it was locked.
	updateBalancesText = `INSERT INTO balances (
  customer_id, credit_type_id, allow_negative, posted, held, has_grants, next_due, updated_at
) VALUES {rows} ON CONFLICT (customer_id, credit_type_id) DO UPDATE SET
  posted = excluded.posted, held = excluded.held, has_grants = excluded.has_grants, next_due = excluded.next_due,
  updated_at = excluded.updated_at`

	updateBalancesEach = `(?, ?, ?, ?, ?, ?, ?, ?)`

	// Where a hold or a movement is, to know which balance to lock.
	placeOfHoldText = `SELECT t.id, t.name, t.allow_negative FROM holds h JOIN credit_types t ON t.id = h.credit_type_id
WHERE h.customer_id = $1 AND h.hold_id = $2`

	placeOfMovementText = `SELECT c.id, c.external_id, t.id, t.name, t.allow_negative
FROM movements m JOIN customers c ON c.id = m.customer_id JOIN credit_types t ON t.id = m.credit_type_id
WHERE m.project_id = $1 AND m.id = $2`

	findLotsText = `SELECT id, movement_id, priority, expires_at, created_at, remaining, pinned
FROM grants WHERE customer_id = $1 AND credit_type_id = $2 AND remaining > 0`

	createLotText = `INSERT INTO grants (
  customer_id, credit_type_id, movement_id, priority, expires_at, created_at, amount, remaining, pinned
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	updateLotText = `UPDATE grants SET remaining = $2, pinned = $3 WHERE movement_id = $1`

	holdColumns = `h.id, h.hold_id, h.amount, h.captured, h.state, h.expires_at, h.created_at, h.closed_at, h.print, h.reason, h.metadata,
  h.execution_id, (SELECT m.id FROM movements m WHERE m.hold = h.id)`

	findHoldText = `SELECT ` + holdColumns + ` FROM holds h WHERE h.customer_id = $1 AND h.hold_id = $2`

	dueHoldsText = `SELECT ` + holdColumns + ` FROM holds h
WHERE h.customer_id = $1 AND h.credit_type_id = $2 AND h.state = 'open' AND h.expires_at <= $3`

	nextHoldText = `SELECT MIN(expires_at) FROM holds
WHERE customer_id = $1 AND credit_type_id = $2 AND state = 'open' AND expires_at > $3`

	findPinsText = `SELECT g.movement_id, p.amount FROM hold_pins p JOIN grants g ON g.id = p.grant_id WHERE p.hold = $1`

	createHoldText = `INSERT INTO holds (
  customer_id, credit_type_id, hold_id, amount, captured, state, expires_at, created_at, closed_at, print, reason, metadata, execution_id
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

	createPinText = `INSERT INTO hold_pins (hold, grant_id, amount)
SELECT h.id, g.id, CAST($4 AS bigint) FROM holds h, grants g
WHERE h.customer_id = $1 AND h.hold_id = $2 AND g.movement_id = $3`

	closeHoldText = `UPDATE holds SET captured = $3, state = $4, closed_at = $5
WHERE customer_id = $1 AND hold_id = $2 AND state = 'open'`

	createMovementsText = `INSERT INTO movements (
  id, project_id, customer_id, credit_type_id, kind, amount, delta, balance_after, reason, metadata, work_key,
  reversal_of, hold, priority, expires_at, created_at
) VALUES {rows}`

	createMovementsEach = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	createCaptureEach = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT id FROM holds WHERE customer_id = ? AND hold_id = ?), ?, ?, ?)`

	movementColumns = `m.id, m.number, m.project_id, c.external_id, t.name, m.kind, m.amount, m.delta, m.balance_after, m.reason, m.metadata,
  m.work_key, m.reversal_of, h.hold_id, h.execution_id, m.priority, m.expires_at, m.created_at`

	movementTables = ` FROM movements m JOIN customers c ON c.id = m.customer_id
JOIN credit_types t ON t.id = m.credit_type_id LEFT JOIN holds h ON h.id = m.hold`

	findMovementText = `SELECT ` + movementColumns + movementTables + ` WHERE m.project_id = $1 AND m.id = $2`

	findReversalText = `SELECT ` + movementColumns + movementTables + ` WHERE m.reversal_of = $1`
)
