-- Providers of language models, by project.
CREATE TABLE model_providers (
  project_id          TEXT   NOT NULL REFERENCES projects (id),
  name                TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64 AND name <> 'echo'),
  base_url            TEXT   NOT NULL CHECK (length(base_url) BETWEEN 1 AND 2000),
  -- The secret, encrypted for this project and name, and with which key of the
  -- server; null if there is none.
  secret              BLOB,
  secret_key_id       BLOB,
  -- What it is told by; empty if there is none.
  secret_prefix       TEXT   NOT NULL,
  secret_last_four    TEXT   NOT NULL,
  -- Microseconds.
  timeout             INTEGER NOT NULL CHECK (timeout > 0),
  -- 0: as many as there are.
  requests_per_minute INTEGER NOT NULL CHECK (requests_per_minute >= 0),
  max_concurrent      INTEGER NOT NULL CHECK (max_concurrent >= 0),
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL,
  PRIMARY KEY (project_id, name),
  CHECK ((secret IS NULL) = (secret_key_id IS NULL)),
  CHECK (secret IS NOT NULL OR secret_prefix = '' AND secret_last_four = '')
) STRICT;
