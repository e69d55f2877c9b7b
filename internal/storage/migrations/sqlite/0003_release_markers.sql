-- Release markers. Their idempotency keys are rows of idempotency_keys.
CREATE TABLE release_markers (
  id          TEXT    PRIMARY KEY CHECK (length(id) = 36),
  project_id  TEXT    NOT NULL REFERENCES projects (id),
  version     TEXT    NOT NULL CHECK (version <> ''),
  environment TEXT    NOT NULL CHECK (environment <> ''),
  ts          INTEGER NOT NULL,
  commit_id   TEXT,
  url         TEXT,
  title       TEXT,
  -- A JSON object.
  metadata    TEXT,
  source      TEXT    NOT NULL CHECK (source IN ('deploy', 'manual')),
  created_at  INTEGER NOT NULL,
  deleted_at  INTEGER
) STRICT;
CREATE INDEX release_markers_project ON release_markers (project_id, ts, id);
