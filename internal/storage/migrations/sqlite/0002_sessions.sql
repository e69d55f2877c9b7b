-- Who is logged in, who is invited, and what was changed by whom.

-- A session is a family of tokens: what one login made and its refreshes. When
-- it is revoked, none of them works.
CREATE TABLE sessions (
  id              TEXT    PRIMARY KEY CHECK (length(id) = 36),
  user_id         TEXT    NOT NULL REFERENCES users (id),
  -- The organization its next access token is for, unless another is asked for.
  organization_id TEXT    NOT NULL REFERENCES organizations (id),
  created_at      INTEGER NOT NULL,
  revoked_at      INTEGER
) STRICT;
CREATE INDEX sessions_user ON sessions (user_id);

-- Spent ones are kept until they would have ended: their reuse is a theft.
CREATE TABLE refresh_tokens (
  secret_hash BLOB    PRIMARY KEY CHECK (length(secret_hash) = 32),
  session_id  TEXT    NOT NULL REFERENCES sessions (id),
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL CHECK (expires_at > created_at),
  spent_at    INTEGER
) STRICT;
-- A session has one token to go on with.
CREATE UNIQUE INDEX refresh_tokens_unspent ON refresh_tokens (session_id) WHERE spent_at IS NULL;
CREATE INDEX refresh_tokens_session ON refresh_tokens (session_id);
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

ALTER TABLE credentials ADD COLUMN session_id TEXT REFERENCES sessions (id)
  CHECK (session_id IS NULL OR kind = 'access');
CREATE INDEX credentials_session ON credentials (session_id);
CREATE INDEX credentials_access_expiry ON credentials (expires_at) WHERE kind = 'access';

CREATE TABLE invitations (
  id              TEXT    PRIMARY KEY CHECK (length(id) = 36),
  organization_id TEXT    NOT NULL REFERENCES organizations (id),
  email           TEXT    NOT NULL CHECK (email <> ''),
  role            TEXT    NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  secret_hash     BLOB    NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
  -- NULL: the operator.
  created_by      TEXT    REFERENCES users (id),
  created_at      INTEGER NOT NULL,
  expires_at      INTEGER NOT NULL CHECK (expires_at > created_at),
  accepted_at     INTEGER,
  revoked_at      INTEGER,
  CHECK (accepted_at IS NULL OR revoked_at IS NULL)
) STRICT;
CREATE INDEX invitations_organization ON invitations (organization_id, id);

-- Written with the change that it tells of, and never altered.
CREATE TABLE audit_entries (
  id              TEXT    PRIMARY KEY CHECK (length(id) = 36),
  organization_id TEXT    NOT NULL REFERENCES organizations (id),
  project_id      TEXT,
  at              INTEGER NOT NULL,
  -- NULL: the operator.
  user_id         TEXT    REFERENCES users (id),
  request_id      TEXT    NOT NULL,
  address         TEXT    NOT NULL,
  action          TEXT    NOT NULL CHECK (action <> ''),
  object_kind     TEXT    NOT NULL CHECK (object_kind <> ''),
  object_id       TEXT    NOT NULL CHECK (object_id <> ''),
  -- A JSON object of strings.
  details         TEXT    NOT NULL,
  FOREIGN KEY (organization_id, project_id) REFERENCES projects (organization_id, id)
) STRICT;
CREATE INDEX audit_entries_organization ON audit_entries (organization_id, id);
