-- One row for each unit of work that a key names. Times are microseconds since
-- 1970. Text is compared by its bytes, whatever the database's collation.
CREATE TABLE idempotency_keys (
  scope             text COLLATE "C" NOT NULL CHECK (length(scope) BETWEEN 1 AND 200),
  namespace         text COLLATE "C" NOT NULL CHECK (length(namespace) BETWEEN 1 AND 64),
  idempotency_key   text COLLATE "C" NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 1024),
  state             text   NOT NULL CHECK (state IN ('claimed', 'done', 'free')),
  -- Who works or worked on it last.
  owner             bytea  NOT NULL CHECK (length(owner) = 16),
  epoch             bigint NOT NULL CHECK (epoch > 0),
  lease_expires_at  bigint,
  -- What a repeat is compared by, while the answer is kept and afterwards.
  print             bytea  NOT NULL,
  tombstone         bytea  NOT NULL,
  -- The answer. The body goes when it has expired; the row stays.
  status            bigint CHECK (status BETWEEN 100 AND 999),
  content_type      text,
  header            text,
  body              bytea,
  resource_kind     text   NOT NULL DEFAULT '',
  resource_id       text   NOT NULL DEFAULT '',
  created_at        bigint NOT NULL,
  answer_expires_at bigint,
  key_expires_at    bigint,
  repeats           bigint NOT NULL DEFAULT 0 CHECK (repeats >= 0),
  conflicts         bigint NOT NULL DEFAULT 0 CHECK (conflicts >= 0),
  PRIMARY KEY (scope, namespace, idempotency_key),
  CHECK ((state = 'claimed') = (lease_expires_at IS NOT NULL)),
  CHECK (state = 'done' OR status IS NULL),
  CHECK (status IS NOT NULL OR body IS NULL),
  CHECK ((resource_kind = '') = (resource_id = ''))
);
CREATE INDEX idempotency_keys_answers ON idempotency_keys (answer_expires_at) WHERE body IS NOT NULL;
CREATE INDEX idempotency_keys_forgotten ON idempotency_keys (key_expires_at) WHERE key_expires_at IS NOT NULL;
