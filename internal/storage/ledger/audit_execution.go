package ledger

// executionChecks are what must hold between executions, their holds and their
// keys. That a step has one result is the schema's to see to.
var executionChecks = []check{
	{
		"the hold %s of execution %s is open, and the execution is %s", `
SELECT h.hold_id, h.execution_id, COALESCE(x.status, 'not there') FROM holds h LEFT JOIN executions x ON x.id = h.execution_id
WHERE h.execution_id IS NOT NULL AND h.state = 'open' AND (x.id IS NULL OR x.finished_at IS NOT NULL)`,
	},
	{
		"the execution %s is %s, and its hold is %s", `
SELECT x.id, x.status, h.state FROM executions x JOIN holds h ON h.execution_id = x.id
WHERE x.finished_at IS NULL AND h.state <> 'open'`,
	},
	{
		"the execution %s was charged %s, and of its hold %s was captured", `
SELECT x.id, CAST(x.charged AS text), COALESCE(CAST(h.captured AS text), 'nothing')
FROM executions x LEFT JOIN holds h ON h.execution_id = x.id
WHERE x.charged <> COALESCE(h.captured, 0)`,
	},
	{
		"the execution %s of project %s has the hold %s, which is another's", `
SELECT x.id, x.project_id, h.hold_id FROM executions x JOIN holds h ON h.execution_id = x.id
WHERE h.hold_id <> x.id OR x.customer_id IS NULL OR h.customer_id <> x.customer_id`,
	},
	{
		"the key %s of project %s names execution %s, which is another's or does not exist", `
SELECT k.idempotency_key, k.scope, k.resource_id FROM idempotency_keys k
LEFT JOIN executions x ON x.id = k.resource_id
WHERE k.namespace = 'work' AND k.resource_kind = 'execution'
  AND (x.id IS NULL OR x.project_id <> k.scope OR x.work_key <> k.idempotency_key)`,
	},
	{
		"the execution %s has the key %s, which is %s", `
SELECT x.id, x.work_key, COALESCE(k.state || ' ' || k.resource_kind || ' ' || k.resource_id, 'free')
FROM executions x LEFT JOIN idempotency_keys k ON k.scope = x.project_id AND k.namespace = 'work' AND k.idempotency_key = x.work_key
WHERE k.state IS NULL OR k.state <> 'done' OR k.resource_kind <> 'execution' OR k.resource_id <> x.id`,
	},
	{
		"the call %s of execution %s is still running, and the execution is %s", `
SELECT c.id, x.id, x.status FROM execution_calls c JOIN executions x ON x.number = c.execution
WHERE c.status = 'running' AND x.finished_at IS NOT NULL`,
	},
}
