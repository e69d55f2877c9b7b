-- Providers of language models, by project.
CREATE TABLE model_providers (
  project_id          text   NOT NULL REFERENCES projects (id),
  name                text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 64 AND name <> 'echo'),
  base_url            text   NOT NULL CHECK (length(base_url) BETWEEN 1 AND 2000),
  -- The secret, encrypted for this project and name, and with which key of the
  -- server; null if there is none.
  secret              bytea,
  secret_key_id       bytea,
  -- What it is told by; empty if there is none.
  secret_prefix       text   NOT NULL,
  secret_last_four    text   NOT NULL,
  -- Microseconds.
  timeout             bigint NOT NULL CHECK (timeout > 0),
  -- 0: as many as there are.
  requests_per_minute bigint NOT NULL CHECK (requests_per_minute >= 0),
  max_concurrent      bigint NOT NULL CHECK (max_concurrent >= 0),
  created_at          bigint NOT NULL,
  updated_at          bigint NOT NULL,
  PRIMARY KEY (project_id, name),
  CHECK ((secret IS NULL) = (secret_key_id IS NULL)),
  CHECK (secret IS NOT NULL OR secret_prefix = '' AND secret_last_four = '')
);
