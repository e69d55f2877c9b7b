-- Providers of language models, by project.
CREATE TABLE model_providers (
  project_id          TEXT   NOT NULL REFERENCES projects (id),
  name                TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64 AND name <> 'echo'),
  base_url            TEXT   NOT NULL CHECK (length(base_url) BETWEEN 1 AND 2000),
  -- The secret, encrypted for this project and name; null if there is none.
  secret              BLOB,
  -- With which key of the server it is encrypted.
  secret_key_id       BLOB,
  -- Its last characters, to tell it by.
  secret_hint         TEXT,
  timeout_ms          INTEGER NOT NULL CHECK (timeout_ms > 0),
  -- null: as many as there are.
  requests_per_minute INTEGER CHECK (requests_per_minute > 0),
  max_concurrent      INTEGER CHECK (max_concurrent > 0),
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL,
  PRIMARY KEY (project_id, name),
  CHECK ((secret IS NULL) = (secret_key_id IS NULL)),
  CHECK ((secret IS NULL) = (secret_hint IS NULL))
) STRICT;
