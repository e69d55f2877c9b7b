-- Providers of language models, by project.
CREATE TABLE model_providers (
  project_id          text   NOT NULL REFERENCES projects (id),
  name                text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 64 AND name <> 'echo'),
  base_url            text   NOT NULL CHECK (length(base_url) BETWEEN 1 AND 2000),
  -- The secret, encrypted for this project and name; null if there is none.
  secret              bytea,
  -- With which key of the server it is encrypted.
  secret_key_id       bytea,
  -- Its last characters, to tell it by.
  secret_hint         text,
  timeout_ms          bigint NOT NULL CHECK (timeout_ms > 0),
  -- null: as many as there are.
  requests_per_minute bigint CHECK (requests_per_minute > 0),
  max_concurrent      bigint CHECK (max_concurrent > 0),
  created_at          bigint NOT NULL,
  updated_at          bigint NOT NULL,
  PRIMARY KEY (project_id, name),
  CHECK ((secret IS NULL) = (secret_key_id IS NULL)),
  CHECK ((secret IS NULL) = (secret_hint IS NULL))
);
