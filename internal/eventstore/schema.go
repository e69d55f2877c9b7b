package eventstore

import "github.com/actionpulse/actionpulse/internal/eventstore/duck"

// schemaVersion is written into a new store. Open upgrades an older one and
// refuses a newer one.
const schemaVersion = 2

// storageVersion pins the file format, so that a newer library does not write
// files that this version's successor cannot give back.
const storageVersion = "v1.4.0"

// Times are BIGINT milliseconds since 1970: rows are compared, bucketed and
// paged by them, and no client's time can overflow them. JSON is VARCHAR: it
// was validated at intake, and the JSON type would only add a check per row.
var firstSchema = []string{
	`CREATE TABLE mark (
		schema_version UINTEGER NOT NULL,
		store UUID NOT NULL,
		position BIGINT NOT NULL,
		received BIGINT NOT NULL,
		window_ms BIGINT NOT NULL,
		max_project UINTEGER NOT NULL,
		row_count BIGINT NOT NULL,
		quarantined BIGINT NOT NULL
	)`,
	`CREATE TABLE windows (
		from_position BIGINT NOT NULL,
		window_ms BIGINT NOT NULL
	)`,
	`CREATE TABLE events (
		seq BIGINT NOT NULL,
		project UINTEGER NOT NULL,
		ts BIGINT NOT NULL,
		received BIGINT NOT NULL,
		client_ts BIGINT,
		ts_status UTINYINT NOT NULL,
		event VARCHAR NOT NULL,
		anon_id VARCHAR,
		user_id VARCHAR,
		session_id VARCHAR,
		person BIGINT NOT NULL,
		key_kind UTINYINT NOT NULL,
		key BIGINT NOT NULL,
		event_id UUID NOT NULL,
		claimed BOOLEAN NOT NULL,
		fingerprint UINTEGER NOT NULL,
		properties VARCHAR,
		context VARCHAR
	)`,
	`CREATE TABLE links (
		project UINTEGER NOT NULL,
		person_anon BIGINT NOT NULL,
		anon_id VARCHAR NOT NULL,
		user_id VARCHAR NOT NULL,
		ts BIGINT NOT NULL,
		seq BIGINT NOT NULL
	)`,
	`CREATE TABLE link_spans (
		project UINTEGER NOT NULL,
		person_anon BIGINT NOT NULL,
		from_ts BIGINT NOT NULL,
		to_ts BIGINT NOT NULL,
		person_user BIGINT NOT NULL,
		user_id VARCHAR NOT NULL
	)`,
	`CREATE TABLE traits (
		project UINTEGER NOT NULL,
		person BIGINT NOT NULL,
		name VARCHAR NOT NULL,
		value VARCHAR NOT NULL,
		ts BIGINT NOT NULL,
		seq BIGINT NOT NULL
	)`,
	`CREATE TABLE quarantine (
		position BIGINT NOT NULL,
		record BLOB NOT NULL,
		reason VARCHAR NOT NULL
	)`,
}

// secondSchema is what version 2 adds: what was stored whether or not it is
// still there, the claims of rows that are not, which erasures were applied, and
// whose data they have taken, too, until somebody has asked for it. The rows of usage are additions: a project's usage of a month is
// their sum.
var secondSchema = []string{
	`CREATE TABLE usage (
		project UINTEGER NOT NULL,
		month UINTEGER NOT NULL,
		events BIGINT NOT NULL,
		bytes BIGINT NOT NULL
	)`,
	`CREATE TABLE erased_claims (
		seq BIGINT NOT NULL,
		project UINTEGER NOT NULL,
		key_kind UTINYINT NOT NULL,
		event_id UUID NOT NULL,
		received BIGINT NOT NULL,
		fingerprint UINTEGER NOT NULL
	)`,
	`CREATE TABLE erasures (
		seq BIGINT NOT NULL,
		project UINTEGER NOT NULL,
		person BIGINT NOT NULL,
		received BIGINT NOT NULL
	)`,
	`CREATE TABLE taken_spans (
		seq BIGINT NOT NULL,
		project UINTEGER NOT NULL,
		person BIGINT NOT NULL,
		anon_id VARCHAR,
		user_id VARCHAR,
		from_ts BIGINT NOT NULL,
		to_ts BIGINT NOT NULL,
		received BIGINT NOT NULL
	)`,
}

// The columns of events, as the appender numbers them.
const (
	colSeq = iota
	colProject
	colTS
	colReceived
	colClientTS
	colTSStatus
	colEvent
	colAnonID
	colUserID
	colSessionID
	colPerson
	colKeyKind
	colKey
	colEventID
	colClaimed
	colFingerprint
	colProperties
	colContext
)

func eventAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "events"},
		duck.Int64, duck.Uint32, duck.Int64, duck.Int64, duck.Int64, duck.Uint8,
		duck.Text, duck.Text, duck.Text, duck.Text,
		duck.Int64, duck.Uint8, duck.Int64, duck.UUID, duck.Bool, duck.Uint32,
		duck.Text, duck.Text)
}

func windowAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "windows"}, duck.Int64, duck.Int64)
}

func linkAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "links"},
		duck.Uint32, duck.Int64, duck.Text, duck.Text, duck.Int64, duck.Int64)
}

func spanAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "link_spans"},
		duck.Uint32, duck.Int64, duck.Int64, duck.Int64, duck.Int64, duck.Text)
}

func traitAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "traits"},
		duck.Uint32, duck.Int64, duck.Text, duck.Text, duck.Int64, duck.Int64)
}

func quarantineAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "quarantine"}, duck.Int64, duck.Blob, duck.Text)
}

func usageAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "usage"}, duck.Uint32, duck.Uint32, duck.Int64, duck.Int64)
}

func claimAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Name: "erased_claims"},
		duck.Int64, duck.Uint32, duck.Uint8, duck.UUID, duck.Int64, duck.Uint32)
}

// takenAppender adds to the writer's private table of the spans of time in
// which an anon id's rows are those of the user who is being erased.
func takenAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Catalog: "temp", Name: "taken"}, duck.Int64, duck.Int64, duck.Int64)
}

// touchedAppender adds to the writer's private table of anon ids whose links
// are being looked at.
func touchedAppender(c *duck.Conn) (*duck.Appender, error) {
	return c.NewAppender(duck.Table{Catalog: "temp", Name: "touched"}, duck.Uint32, duck.Int64)
}

const (
	createTouched = `CREATE TEMP TABLE touched (project UINTEGER NOT NULL, person_anon BIGINT NOT NULL)`
	createTaken   = `CREATE TEMP TABLE taken (person_anon BIGINT NOT NULL, from_ts BIGINT NOT NULL, to_ts BIGINT NOT NULL)`
)
