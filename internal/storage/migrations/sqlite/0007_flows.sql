-- Flows and their executions. A version of a flow never changes; an execution
-- is a row of the queue while it is queued, and its journal says how far it
-- has come.
CREATE TABLE flows (
  id             INTEGER PRIMARY KEY,
  project_id     TEXT   NOT NULL REFERENCES projects (id),
  slug           TEXT NOT NULL CHECK (length(slug) BETWEEN 1 AND 64),
  latest_version INTEGER NOT NULL CHECK (latest_version >= 1),
  -- What is executed when no version is asked for; null: the latest.
  pinned_version INTEGER CHECK (pinned_version BETWEEN 1 AND latest_version),
  archived_at    INTEGER,
  created_at     INTEGER NOT NULL,
  UNIQUE (project_id, slug)
) STRICT;

CREATE TABLE flow_versions (
  flow_id    INTEGER NOT NULL REFERENCES flows (id),
  version    INTEGER NOT NULL CHECK (version >= 1),
  -- The definition as canonical JSON.
  definition TEXT   NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (flow_id, version)
) STRICT;
CREATE TRIGGER flow_versions_unchanged BEFORE UPDATE ON flow_versions
BEGIN SELECT RAISE(ABORT, 'versions of flows are only added'); END;
CREATE TRIGGER flow_versions_kept BEFORE DELETE ON flow_versions
BEGIN SELECT RAISE(ABORT, 'versions of flows are only added'); END;

-- queued → running → succeeded | failed | cancelled; running → queued when its
-- owner has stopped; queued → cancelled | failed.
CREATE TABLE executions (
  number           INTEGER PRIMARY KEY,
  id               TEXT   NOT NULL UNIQUE CHECK (length(id) = 36),
  project_id       TEXT   NOT NULL REFERENCES projects (id),
  flow_id          INTEGER NOT NULL,
  version          INTEGER NOT NULL,
  customer_id      INTEGER REFERENCES customers (id),
  work_key         TEXT NOT NULL,
  mode             TEXT   NOT NULL CHECK (mode IN ('sync', 'async')),
  status           TEXT   NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  -- JSON.
  input            TEXT   NOT NULL,
  context          TEXT,
  output           TEXT,
  error_code       TEXT,
  error_message    TEXT,
  charged          INTEGER NOT NULL CHECK (charged >= 0),
  -- What was used beyond what was held.
  unbilled         INTEGER NOT NULL CHECK (unbilled >= 0),
  input_tokens     INTEGER NOT NULL CHECK (input_tokens >= 0),
  output_tokens    INTEGER NOT NULL CHECK (output_tokens >= 0),
  cached_tokens    INTEGER NOT NULL CHECK (cached_tokens >= 0),
  reasoning_tokens INTEGER NOT NULL CHECK (reasoning_tokens >= 0),
  -- The process that runs it; every write of a run names owner and epoch.
  owner            BLOB  CHECK (length(owner) = 16),
  -- Moves on with each claim: only the latest owner may write.
  epoch            INTEGER NOT NULL CHECK (epoch >= 0),
  -- The end of the lease by the database's clock; null on SQLite, where a
  -- lease ends with its process.
  lease_until      INTEGER,
  cancel_asked_at  INTEGER,
  created_at       INTEGER NOT NULL,
  started_at       INTEGER,
  finished_at      INTEGER,
  FOREIGN KEY (flow_id, version) REFERENCES flow_versions (flow_id, version),
  CHECK ((status = 'running') = (owner IS NOT NULL)),
  CHECK (status = 'running' OR lease_until IS NULL),
  CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CHECK ((status = 'succeeded') = (output IS NOT NULL)),
  CHECK ((status = 'failed') = (error_code IS NOT NULL)),
  CHECK (status IN ('queued', 'failed', 'cancelled') OR started_at IS NOT NULL)
) STRICT;
-- At most one execution a key, whatever the table of keys says.
CREATE UNIQUE INDEX executions_key ON executions (project_id, work_key);
CREATE INDEX executions_queue ON executions (number) WHERE status = 'queued';
CREATE INDEX executions_running ON executions (owner, number) WHERE status = 'running';
CREATE INDEX executions_project ON executions (project_id, id);
CREATE INDEX executions_finished ON executions (project_id, finished_at) WHERE finished_at IS NOT NULL;

-- The journal: what a run has done, so that another one goes on from there.
CREATE TABLE execution_steps (
  execution     INTEGER NOT NULL REFERENCES executions (number),
  step          TEXT NOT NULL CHECK (length(step) BETWEEN 1 AND 64),
  -- Empty, or the numbers of the iterations it is in: 3 or 3.0.
  iteration     TEXT NOT NULL,
  type          TEXT   NOT NULL,
  -- started is written before a call is sent.
  state         TEXT   NOT NULL CHECK (state IN ('started', 'finished', 'skipped', 'failed')),
  attempt       INTEGER NOT NULL CHECK (attempt >= 1),
  -- JSON.
  output        TEXT,
  price         INTEGER NOT NULL CHECK (price >= 0),
  error_code    TEXT,
  error_message TEXT,
  started_at    INTEGER NOT NULL,
  finished_at   INTEGER,
  PRIMARY KEY (execution, step, iteration),
  CHECK ((state = 'started') = (finished_at IS NULL)),
  CHECK ((state = 'finished') = (output IS NOT NULL)),
  CHECK ((state = 'failed') = (error_code IS NOT NULL))
) STRICT;
-- What is kept of outputs; null stands where one was.
CREATE INDEX execution_steps_kept ON execution_steps (finished_at) WHERE output IS NOT NULL AND output <> 'null';

-- Calls to models and services, each attempt a row.
CREATE TABLE execution_calls (
  id                  TEXT   NOT NULL PRIMARY KEY CHECK (length(id) = 36),
  execution           INTEGER NOT NULL REFERENCES executions (number),
  project_id          TEXT   NOT NULL,
  step                TEXT NOT NULL,
  iteration           TEXT NOT NULL,
  attempt             INTEGER NOT NULL CHECK (attempt >= 1),
  kind                TEXT   NOT NULL CHECK (kind IN ('model', 'http')),
  status              TEXT   NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'unknown')),
  provider            TEXT,
  model               TEXT,
  http_status         INTEGER,
  input_tokens        INTEGER NOT NULL CHECK (input_tokens >= 0),
  output_tokens       INTEGER NOT NULL CHECK (output_tokens >= 0),
  cached_tokens       INTEGER NOT NULL CHECK (cached_tokens >= 0),
  reasoning_tokens    INTEGER NOT NULL CHECK (reasoning_tokens >= 0),
  price               INTEGER NOT NULL CHECK (price >= 0),
  derived_key         TEXT   NOT NULL,
  provider_request_id TEXT,
  -- What was said, as JSON, while it is kept.
  request             TEXT,
  response            TEXT,
  error_message       TEXT,
  started_at          INTEGER NOT NULL,
  finished_at         INTEGER,
  FOREIGN KEY (execution, step, iteration) REFERENCES execution_steps (execution, step, iteration),
  UNIQUE (execution, step, iteration, attempt),
  CHECK (status = 'running' OR finished_at IS NOT NULL)
) STRICT;
CREATE INDEX execution_calls_project ON execution_calls (project_id, id);
CREATE INDEX execution_calls_kept ON execution_calls (finished_at) WHERE request IS NOT NULL OR response IS NOT NULL;

-- The execution that a hold is for: only that may end it.
ALTER TABLE holds ADD COLUMN execution_id TEXT REFERENCES executions (id);
CREATE UNIQUE INDEX holds_execution ON holds (execution_id) WHERE execution_id IS NOT NULL;
