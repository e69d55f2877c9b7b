-- Flows and their executions. A version of a flow never changes; an execution
-- is a row of the queue while it is queued, and its journal says how far it
-- has come.
CREATE TABLE flows (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id     text   NOT NULL REFERENCES projects (id),
  slug           text COLLATE "C" NOT NULL CHECK (length(slug) BETWEEN 1 AND 64),
  latest_version bigint NOT NULL CHECK (latest_version >= 1),
  -- What is executed when no version is asked for; null: the latest.
  pinned_version bigint CHECK (pinned_version BETWEEN 1 AND latest_version),
  archived_at    bigint,
  created_at     bigint NOT NULL,
  UNIQUE (project_id, slug)
);

CREATE TABLE flow_versions (
  flow_id    bigint NOT NULL REFERENCES flows (id),
  version    bigint NOT NULL CHECK (version >= 1),
  -- The definition as canonical JSON.
  definition text   NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (flow_id, version)
);
CREATE FUNCTION flow_versions_stay() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'versions of flows are only added' USING ERRCODE = 'restrict_violation'; END $$;
CREATE TRIGGER flow_versions_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON flow_versions
FOR EACH STATEMENT EXECUTE FUNCTION flow_versions_stay();

-- queued → running → succeeded | failed | cancelled; running → queued when its
-- owner has stopped; queued → cancelled | failed.
CREATE TABLE executions (
  number           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id               text   NOT NULL UNIQUE CHECK (length(id) = 36),
  project_id       text   NOT NULL REFERENCES projects (id),
  flow_id          bigint NOT NULL,
  version          bigint NOT NULL,
  customer_id      bigint REFERENCES customers (id),
  work_key         text COLLATE "C" NOT NULL,
  mode             text   NOT NULL CHECK (mode IN ('sync', 'async')),
  status           text   NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  -- JSON.
  input            text   NOT NULL,
  context          text,
  output           text,
  error_code       text,
  error_message    text,
  charged          bigint NOT NULL CHECK (charged >= 0),
  -- What was used beyond what was held.
  unbilled         bigint NOT NULL CHECK (unbilled >= 0),
  input_tokens     bigint NOT NULL CHECK (input_tokens >= 0),
  output_tokens    bigint NOT NULL CHECK (output_tokens >= 0),
  cached_tokens    bigint NOT NULL CHECK (cached_tokens >= 0),
  reasoning_tokens bigint NOT NULL CHECK (reasoning_tokens >= 0),
  -- The process that runs it; every write of a run names owner and epoch.
  owner            bytea  CHECK (length(owner) = 16),
  -- Moves on with each claim: only the latest owner may write.
  epoch            bigint NOT NULL CHECK (epoch >= 0),
  -- The end of the lease by the database's clock; null on SQLite, where a
  -- lease ends with its process.
  lease_until      bigint,
  cancel_asked_at  bigint,
  created_at       bigint NOT NULL,
  started_at       bigint,
  finished_at      bigint,
  FOREIGN KEY (flow_id, version) REFERENCES flow_versions (flow_id, version),
  CHECK ((status = 'running') = (owner IS NOT NULL)),
  CHECK (status = 'running' OR lease_until IS NULL),
  CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CHECK ((status = 'succeeded') = (output IS NOT NULL)),
  CHECK ((status = 'failed') = (error_code IS NOT NULL)),
  CHECK (status IN ('queued', 'failed', 'cancelled') OR started_at IS NOT NULL)
);
-- At most one execution a key, whatever the table of keys says.
CREATE UNIQUE INDEX executions_key ON executions (project_id, work_key);
CREATE INDEX executions_queue ON executions (number) WHERE status = 'queued';
CREATE INDEX executions_running ON executions (owner, number) WHERE status = 'running';
CREATE INDEX executions_project ON executions (project_id, id);
CREATE INDEX executions_finished ON executions (project_id, finished_at) WHERE finished_at IS NOT NULL;

-- The journal: what a run has done, so that another one goes on from there.
CREATE TABLE execution_steps (
  execution     bigint NOT NULL REFERENCES executions (number),
  step          text COLLATE "C" NOT NULL CHECK (length(step) BETWEEN 1 AND 64),
  -- Empty, or the numbers of the iterations it is in: 3 or 3.0.
  iteration     text COLLATE "C" NOT NULL,
  type          text   NOT NULL,
  -- started is written before a call is sent.
  state         text   NOT NULL CHECK (state IN ('started', 'finished', 'skipped', 'failed')),
  attempt       bigint NOT NULL CHECK (attempt >= 1),
  -- JSON.
  output        text,
  price         bigint NOT NULL CHECK (price >= 0),
  error_code    text,
  error_message text,
  started_at    bigint NOT NULL,
  finished_at   bigint,
  PRIMARY KEY (execution, step, iteration),
  CHECK ((state = 'started') = (finished_at IS NULL)),
  CHECK ((state = 'finished') = (output IS NOT NULL)),
  CHECK ((state = 'failed') = (error_code IS NOT NULL))
);
-- What is kept of outputs; null stands where one was.
CREATE INDEX execution_steps_kept ON execution_steps (finished_at) WHERE output IS NOT NULL AND output <> 'null';

-- Calls to models and services, each attempt a row.
CREATE TABLE execution_calls (
  id                  text   NOT NULL PRIMARY KEY CHECK (length(id) = 36),
  execution           bigint NOT NULL REFERENCES executions (number),
  project_id          text   NOT NULL,
  step                text COLLATE "C" NOT NULL,
  iteration           text COLLATE "C" NOT NULL,
  attempt             bigint NOT NULL CHECK (attempt >= 1),
  kind                text   NOT NULL CHECK (kind IN ('model', 'http')),
  status              text   NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'unknown')),
  provider            text,
  model               text,
  http_status         bigint,
  input_tokens        bigint NOT NULL CHECK (input_tokens >= 0),
  output_tokens       bigint NOT NULL CHECK (output_tokens >= 0),
  cached_tokens       bigint NOT NULL CHECK (cached_tokens >= 0),
  reasoning_tokens    bigint NOT NULL CHECK (reasoning_tokens >= 0),
  price               bigint NOT NULL CHECK (price >= 0),
  derived_key         text   NOT NULL,
  provider_request_id text,
  -- What was said, as JSON, while it is kept.
  request             text,
  response            text,
  error_message       text,
  started_at          bigint NOT NULL,
  finished_at         bigint,
  FOREIGN KEY (execution, step, iteration) REFERENCES execution_steps (execution, step, iteration),
  UNIQUE (execution, step, iteration, attempt),
  CHECK (status = 'running' OR finished_at IS NOT NULL)
);
CREATE INDEX execution_calls_project ON execution_calls (project_id, id);
CREATE INDEX execution_calls_kept ON execution_calls (finished_at) WHERE request IS NOT NULL OR response IS NOT NULL;

-- The execution that a hold is for: only that may end it.
ALTER TABLE holds ADD COLUMN execution_id text REFERENCES executions (id);
CREATE UNIQUE INDEX holds_execution ON holds (execution_id) WHERE execution_id IS NOT NULL;
