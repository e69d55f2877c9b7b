-- The tables of schema version 1, as the first release made them.
CREATE TABLE mark (
	schema_version UINTEGER NOT NULL,
	store UUID NOT NULL,
	position BIGINT NOT NULL,
	received BIGINT NOT NULL,
	window_ms BIGINT NOT NULL,
	max_project UINTEGER NOT NULL,
	row_count BIGINT NOT NULL,
	quarantined BIGINT NOT NULL
);
CREATE TABLE windows (
	from_position BIGINT NOT NULL,
	window_ms BIGINT NOT NULL
);
CREATE TABLE events (
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
);
CREATE TABLE links (
	project UINTEGER NOT NULL,
	person_anon BIGINT NOT NULL,
	anon_id VARCHAR NOT NULL,
	user_id VARCHAR NOT NULL,
	ts BIGINT NOT NULL,
	seq BIGINT NOT NULL
);
CREATE TABLE link_spans (
	project UINTEGER NOT NULL,
	person_anon BIGINT NOT NULL,
	from_ts BIGINT NOT NULL,
	to_ts BIGINT NOT NULL,
	person_user BIGINT NOT NULL,
	user_id VARCHAR NOT NULL
);
CREATE TABLE traits (
	project UINTEGER NOT NULL,
	person BIGINT NOT NULL,
	name VARCHAR NOT NULL,
	value VARCHAR NOT NULL,
	ts BIGINT NOT NULL,
	seq BIGINT NOT NULL
);
CREATE TABLE quarantine (
	position BIGINT NOT NULL,
	record BLOB NOT NULL,
	reason VARCHAR NOT NULL
);
