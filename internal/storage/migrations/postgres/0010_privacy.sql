-- Privacy jobs: the data of one person, exported or deleted.
-- queued → running → succeeded | failed | cancelled; queued → cancelled;
-- running → queued when its owner has stopped, or when a step that has failed
-- is to be done again; queued → failed when the server that has it is lost. Else
-- a deletion whose erase record is written is neither cancelled nor given up.
CREATE TABLE privacy_jobs (
  number             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id                 text   NOT NULL UNIQUE CHECK (length(id) = 36),
  project_id         text   NOT NULL REFERENCES projects (id),
  kind               text   NOT NULL CHECK (kind IN ('export', 'delete')),
  -- Which of the two ids names the person, and the id: bytes, since it is any
  -- text of the caller's, with characters that a column of text cannot hold.
  person_kind        text   NOT NULL CHECK (person_kind IN ('user_id', 'anon_id')),
  person             bytea  NOT NULL CHECK (length(person) BETWEEN 1 AND 800),
  status             text   NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  -- The step that is done next, or done again when nobody knows whether it was.
  phase              text   NOT NULL CHECK (phase IN ('exports', 'record', 'events', 'replays', 'customers', 'files', 'archive', 'done')),
  -- In thousandths.
  progress           bigint NOT NULL CHECK (progress BETWEEN 0 AND 1000),
  -- The server in whose data folder it is done: positions and archives are
  -- those of that folder.
  server             bytea  NOT NULL CHECK (length(server) = 16),
  -- The process that does it; every write of a run names owner and epoch.
  owner              bytea  CHECK (length(owner) = 16),
  epoch              bigint NOT NULL CHECK (epoch >= 0),
  -- The end of the lease by the database's clock; null on SQLite, where a
  -- lease ends with its process.
  lease_until        bigint,
  -- Failures of the step that is next, and when it is tried again.
  failures           bigint NOT NULL CHECK (failures >= 0),
  next_attempt_at    bigint,
  error              text,
  -- Where among the events the erase record is, and when it was written.
  erase_position     bigint CHECK (erase_position > 0),
  recorded_at        bigint,
  erased_from_log_at bigint,
  archive_bytes      bigint CHECK (archive_bytes > 0),
  -- Until when the archive is kept; null once it is gone.
  archive_until      bigint,
  created_at         bigint NOT NULL,
  started_at         bigint,
  finished_at        bigint,
  CHECK ((status = 'running') = (owner IS NOT NULL)),
  CHECK (status = 'running' OR lease_until IS NULL),
  CHECK (status = 'queued' OR next_attempt_at IS NULL),
  CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
  CHECK ((status = 'succeeded') = (phase = 'done')),
  CHECK (phase <> 'done' OR progress = 1000),
  CHECK ((kind = 'export') = (phase = 'archive') OR phase = 'done'),
  CHECK ((erase_position IS NULL) = (recorded_at IS NULL)),
  CHECK (kind = 'delete' OR erase_position IS NULL),
  CHECK (phase IN ('exports', 'record', 'archive', 'done') OR erase_position IS NOT NULL),
  CHECK (phase NOT IN ('exports', 'record', 'archive') OR erase_position IS NULL),
  CHECK (status <> 'cancelled' OR erase_position IS NULL),
  CHECK ((erased_from_log_at IS NOT NULL) = (kind = 'delete' AND status = 'succeeded')),
  CHECK ((archive_bytes IS NOT NULL) = (kind = 'export' AND status = 'succeeded')),
  CHECK (archive_until IS NULL OR archive_bytes IS NOT NULL)
);
-- One job at a time for a person.
CREATE UNIQUE INDEX privacy_jobs_active ON privacy_jobs (project_id, person_kind, person) WHERE status IN ('queued', 'running');
CREATE INDEX privacy_jobs_queue ON privacy_jobs (number) WHERE status IN ('queued', 'running');
CREATE INDEX privacy_jobs_project ON privacy_jobs (project_id, id);
CREATE INDEX privacy_jobs_archives ON privacy_jobs (archive_until) WHERE archive_until IS NOT NULL;

-- What was run for a customer.
CREATE INDEX executions_customer ON executions (customer_id, number) WHERE customer_id IS NOT NULL;
