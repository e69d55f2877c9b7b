package sqlstore

import "strings"

// statements are the texts for one engine. {now} is the time in microseconds,
// given by parameter $1.
type statements struct {
	insert, find, takeOver, complete, renew, made, release, unclaim, count, strip, forget string
	// Those about many rows, and what each row is.
	claimAll, claimEach, finishAll, finishEach string
}

// A double is exact to a quarter of a microsecond, and date_part cheaper than
// extract, which works out a decimal number.
const (
	nowSQLite     = `CAST($1 AS bigint)`
	nowPostgreSQL = `COALESCE(CAST($1 AS bigint), CAST(date_part('epoch', clock_timestamp()) * 1000000 AS bigint))`
)

const (
	// What whoever claims a row hears of it.
	claimed = `
RETURNING epoch, lease_expires_at, resource_kind, resource_id, {now}`

	insertText = `INSERT INTO idempotency_keys (
  scope, namespace, idempotency_key, state, owner, epoch, lease_expires_at, print, tombstone, created_at, key_expires_at
) VALUES (
  $2, $3, $4, 'claimed', $5, 1, {now} + CAST($6 AS bigint), $7, $8, {now}, {now} + CAST($9 AS bigint)
) ON CONFLICT (scope, namespace, idempotency_key) DO NOTHING` + claimed

	findText = `SELECT state, owner, epoch, lease_expires_at, print, tombstone, status, content_type, header, body, body IS NOT NULL,
  resource_kind, resource_id, created_at, answer_expires_at, key_expires_at, repeats, conflicts, {now}
FROM idempotency_keys WHERE scope = $2 AND namespace = $3 AND idempotency_key = $4`

	// Whoever reads a row and finds it abandoned, free or forgotten takes it
	// only if it is still as it was read. An abandoned unit of work goes on
	// ($10 = 0): what its owner has made is kept. Otherwise a new one begins.
	takeOverText = `UPDATE idempotency_keys SET
  state = 'claimed', owner = $5, epoch = epoch + 1, lease_expires_at = {now} + CAST($6 AS bigint),
  print = $7, tombstone = $8, key_expires_at = {now} + CAST($9 AS bigint),
  status = NULL, content_type = NULL, header = NULL, body = NULL, answer_expires_at = NULL,
  resource_kind = CASE WHEN $10 = 1 THEN '' ELSE resource_kind END,
  resource_id = CASE WHEN $10 = 1 THEN '' ELSE resource_id END,
  created_at = CASE WHEN $10 = 1 THEN {now} ELSE created_at END,
  repeats = CASE WHEN $10 = 1 THEN 0 ELSE repeats END,
  conflicts = CASE WHEN $10 = 1 THEN 0 ELSE conflicts END
WHERE scope = $2 AND namespace = $3 AND idempotency_key = $4
  AND epoch = $11 AND state = $12 AND COALESCE(lease_expires_at, 0) = $13 AND owner = $14` + claimed

	owned = ` WHERE scope = $2 AND namespace = $3 AND idempotency_key = $4
  AND owner = $5 AND epoch = $6 AND state = 'claimed'`

	completeText = `UPDATE idempotency_keys SET
  state = 'done', lease_expires_at = NULL, status = $7, content_type = $8, header = $9, body = $10,
  resource_kind = CASE WHEN $11 = '' THEN resource_kind ELSE $11 END,
  resource_id = CASE WHEN $11 = '' THEN resource_id ELSE $12 END,
  answer_expires_at = {now} + CAST($13 AS bigint), key_expires_at = {now} + CAST($14 AS bigint)` + owned

	// The same about the keys of a group.
	claimAllText = `INSERT INTO idempotency_keys (
  scope, namespace, idempotency_key, owner, print, tombstone, key_expires_at, state, epoch, lease_expires_at, created_at
) VALUES {rows} ON CONFLICT (scope, namespace, idempotency_key) DO NOTHING
RETURNING scope, namespace, idempotency_key, epoch, {now}`

	claimEachText = `(?, ?, ?, ?, ?, ?, {now} + CAST(? AS bigint), 'claimed', 1, {now}, {now})`

	// A key that nobody has claimed is written as it is when all is done: see
	// ClaimGroup. One that was claimed is taken by its owner alone.
	finishAllText = `INSERT INTO idempotency_keys (
  scope, namespace, idempotency_key, owner, print, tombstone, key_expires_at, epoch, status, content_type, header, body,
  resource_kind, resource_id, answer_expires_at, state, created_at
) VALUES {rows} ON CONFLICT (scope, namespace, idempotency_key) DO UPDATE SET
  state = 'done', lease_expires_at = NULL, status = excluded.status, content_type = excluded.content_type,
  header = excluded.header, body = excluded.body,
  resource_kind = CASE WHEN excluded.resource_kind = '' THEN idempotency_keys.resource_kind ELSE excluded.resource_kind END,
  resource_id = CASE WHEN excluded.resource_kind = '' THEN idempotency_keys.resource_id ELSE excluded.resource_id END,
  answer_expires_at = excluded.answer_expires_at, key_expires_at = excluded.key_expires_at
WHERE idempotency_keys.owner = excluded.owner AND idempotency_keys.epoch = excluded.epoch AND idempotency_keys.state = 'claimed'`

	finishEachText = `(?, ?, ?, ?, ?, ?, {now} + CAST(? AS bigint), ?, ?, ?, ?, ?, ?, ?, {now} + CAST(? AS bigint), 'done', {now})`

	renewText = `UPDATE idempotency_keys SET lease_expires_at = {now} + CAST($7 AS bigint)` + owned

	madeText = `UPDATE idempotency_keys SET resource_kind = $6, resource_id = $7
WHERE scope = $1 AND namespace = $2 AND idempotency_key = $3 AND owner = $4 AND epoch = $5 AND state = 'claimed'`

	releaseText = `UPDATE idempotency_keys SET state = 'free', lease_expires_at = NULL, print = $7, tombstone = $7,
  resource_kind = '', resource_id = '', key_expires_at = {now}` + owned

	// Within the transaction of a group a claim is undone as if it had never
	// been; nobody has seen it.
	unclaimText = `DELETE FROM idempotency_keys
WHERE scope = $1 AND namespace = $2 AND idempotency_key = $3 AND owner = $4 AND state = 'claimed'`

	countText = `UPDATE idempotency_keys SET repeats = repeats + $4, conflicts = conflicts + $5
WHERE scope = $1 AND namespace = $2 AND idempotency_key = $3`

	// The limit of a sweep is a subquery of its own: PostgreSQL works it out
	// once and can look it up in an index. Rows are named by their place, so
	// that they are found without any search.
	stripText = `UPDATE idempotency_keys SET body = NULL, header = NULL
WHERE {among} SELECT {place} FROM idempotency_keys
  WHERE body IS NOT NULL AND answer_expires_at <= (SELECT {now} - CAST($2 AS bigint))
  ORDER BY answer_expires_at LIMIT $3 {end}`

	forgetText = `DELETE FROM idempotency_keys
WHERE {among} SELECT {place} FROM idempotency_keys
  WHERE key_expires_at <= (SELECT {now} - CAST($2 AS bigint))
    AND (lease_expires_at IS NULL OR lease_expires_at <= (SELECT {now} - CAST($2 AS bigint)))
  ORDER BY key_expires_at LIMIT $3 {end}`
)

func newStatements(d Dialect) statements {
	replacer := strings.NewReplacer("{now}", nowSQLite, "{place}", "rowid", "{among}", "rowid IN (", "{end}", ")")
	if d == PostgreSQL {
		// A row that is changed at the same time has another place then, and
		// is left to the next sweep.
		replacer = strings.NewReplacer("{now}", nowPostgreSQL,
			"{place}", "ctid", "{among}", "ctid = ANY (ARRAY(", "{end}", "FOR UPDATE SKIP LOCKED))")
	}
	return statements{
		insert:     replacer.Replace(insertText),
		find:       replacer.Replace(findText),
		takeOver:   replacer.Replace(takeOverText),
		complete:   replacer.Replace(completeText),
		claimAll:   replacer.Replace(claimAllText),
		claimEach:  replacer.Replace(claimEachText),
		finishAll:  replacer.Replace(finishAllText),
		finishEach: replacer.Replace(finishEachText),
		renew:      replacer.Replace(renewText),
		made:       replacer.Replace(madeText),
		release:    replacer.Replace(releaseText),
		unclaim:    unclaimText,
		count:      countText,
		strip:      replacer.Replace(stripText),
		forget:     replacer.Replace(forgetText),
	}
}
