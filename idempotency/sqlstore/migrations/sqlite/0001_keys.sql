-- One row for each unit of work that a key names. Times are microseconds since
-- 1970.
CREATE TABLE idempotency_keys (
  scope             TEXT    NOT NULL CHECK (length(scope) BETWEEN 1 AND 200),
  namespace         TEXT    NOT NULL CHECK (length(namespace) BETWEEN 1 AND 64),
  idempotency_key   TEXT    NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 1024),
  state             TEXT    NOT NULL CHECK (state IN ('claimed', 'done', 'free')),
  -- Who works or worked on it last.
  owner             BLOB    NOT NULL CHECK (length(owner) = 16),
  epoch             INTEGER NOT NULL CHECK (epoch > 0),
  lease_expires_at  INTEGER,
  -- What a repeat is compared by, while the answer is kept and afterwards.
  print             BLOB    NOT NULL,
  tombstone         BLOB    NOT NULL,
  -- The answer. The body goes when it has expired; the row stays.
  status            INTEGER CHECK (status BETWEEN 100 AND 999),
  content_type      TEXT,
  header            TEXT,
  body              BLOB,
  resource_kind     TEXT    NOT NULL DEFAULT '',
  resource_id       TEXT    NOT NULL DEFAULT '',
  created_at        INTEGER NOT NULL,
  answer_expires_at INTEGER,
  key_expires_at    INTEGER,
  repeats           INTEGER NOT NULL DEFAULT 0 CHECK (repeats >= 0),
  conflicts         INTEGER NOT NULL DEFAULT 0 CHECK (conflicts >= 0),
  PRIMARY KEY (scope, namespace, idempotency_key),
  CHECK ((state = 'claimed') = (lease_expires_at IS NOT NULL)),
  CHECK (state = 'done' OR status IS NULL),
  CHECK (status IS NOT NULL OR body IS NULL),
  CHECK ((resource_kind = '') = (resource_id = ''))
) STRICT;
CREATE INDEX idempotency_keys_answers ON idempotency_keys (answer_expires_at) WHERE body IS NOT NULL;
CREATE INDEX idempotency_keys_forgotten ON idempotency_keys (key_expires_at) WHERE key_expires_at IS NOT NULL;
