package httpapi

// tag is a group of operations in the API document.
type tag string

// The tags. Release markers are shown beside alerts.
const (
	tagIntake        tag = "Intake"
	tagAuth          tag = "Auth"
	tagOrganizations tag = "Organizations"
	tagProjects      tag = "Projects"
	tagKeys          tag = "Keys and tokens"
	tagQueries       tag = "Queries"
	tagReplays       tag = "Session replay"
	tagAlerts        tag = "Alerts"
	tagKeyedWork     tag = "Keyed work"
	tagCredits       tag = "Customers and credits"
	tagFlows         tag = "Flows"
	tagExecutions    tag = "Executions"
	tagModels        tag = "Model providers"
	tagWebhooks      tag = "Webhooks"
	tagPrivacy       tag = "Privacy jobs"
	tagAudit         tag = "Audit log"
	tagServer        tag = "Server"
)

// tags are all of them, in the order of the document, with what they hold.
var tags = []struct {
	name tag
	doc  string
}{
	{tagIntake, "Product events and the links between ids. An event with an event_id is stored once, however often it is sent."},
	{tagAuth, "Logging in, refreshing an access token, logging out."},
	{tagOrganizations, "Organizations, their members, roles and invitations."},
	{tagProjects, "Projects of an organization."},
	{tagKeys, "Ingest keys, project keys and CI/CD tokens. A secret is shown once."},
	{tagQueries, "Questions about stored events, and what intake saw lately."},
	{tagReplays, "Recordings of sessions, in chunks of rrweb's events."},
	{tagAlerts, "Alerts on metrics, and release markers beside them, made by hand or by a CI/CD pipeline."},
	{tagKeyedWork, "What an Idempotency-Key names."},
	{tagCredits, "Customers, balances and the ledger of movements. Amounts are decimals, and nothing is ever rounded."},
	{tagFlows, "Definitions of paid work, published as numbered versions that never change."},
	{tagExecutions, "Runs of flows: once for each Idempotency-Key, their state, what they have done and what it costs."},
	{tagModels, "Where the model steps of flows send chats to. A key is stored encrypted and never shown."},
	{tagWebhooks, "Where events are sent to, signed as in Standard Webhooks, and what came of it."},
	{tagPrivacy, "What is known of one person, exported or deleted."},
	{tagAudit, "Who changed what."},
	{tagServer, "Health, metrics and this document."},
}
