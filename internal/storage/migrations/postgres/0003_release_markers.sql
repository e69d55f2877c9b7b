-- Release markers. Their idempotency keys are rows of idempotency_keys.
CREATE TABLE release_markers (
  id          text   PRIMARY KEY CHECK (length(id) = 36),
  project_id  text   NOT NULL REFERENCES projects (id),
  version     text   NOT NULL CHECK (version <> ''),
  environment text   NOT NULL CHECK (environment <> ''),
  ts          bigint NOT NULL,
  commit_id   text,
  url         text,
  title       text,
  -- A JSON object.
  metadata    text,
  source      text   NOT NULL CHECK (source IN ('deploy', 'manual')),
  created_at  bigint NOT NULL,
  deleted_at  bigint
);
CREATE INDEX release_markers_project ON release_markers (project_id, ts, id);
