-- Who is logged in, who is invited, and what was changed by whom.

-- A session is a family of tokens: what one login made and its refreshes. When
-- it is revoked, none of them works.
CREATE TABLE sessions (
  id              text   PRIMARY KEY CHECK (length(id) = 36),
  user_id         text   NOT NULL REFERENCES users (id),
  -- The organization its next access token is for, unless another is asked for.
  organization_id text   NOT NULL REFERENCES organizations (id),
  created_at      bigint NOT NULL,
  revoked_at      bigint
);
CREATE INDEX sessions_user ON sessions (user_id);

-- Spent ones are kept until they would have ended: their reuse is a theft.
CREATE TABLE refresh_tokens (
  secret_hash bytea  PRIMARY KEY CHECK (length(secret_hash) = 32),
  session_id  text   NOT NULL REFERENCES sessions (id),
  created_at  bigint NOT NULL,
  expires_at  bigint NOT NULL CHECK (expires_at > created_at),
  spent_at    bigint
);
-- A session has one token to go on with.
CREATE UNIQUE INDEX refresh_tokens_unspent ON refresh_tokens (session_id) WHERE spent_at IS NULL;
CREATE INDEX refresh_tokens_session ON refresh_tokens (session_id);
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

ALTER TABLE credentials ADD COLUMN session_id text REFERENCES sessions (id)
  CHECK (session_id IS NULL OR kind = 'access');
CREATE INDEX credentials_session ON credentials (session_id);
CREATE INDEX credentials_access_expiry ON credentials (expires_at) WHERE kind = 'access';

CREATE TABLE invitations (
  id              text   PRIMARY KEY CHECK (length(id) = 36),
  organization_id text   NOT NULL REFERENCES organizations (id),
  email           text   NOT NULL CHECK (email <> ''),
  role            text   NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  secret_hash     bytea  NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
  -- NULL: the operator.
  created_by      text   REFERENCES users (id),
  created_at      bigint NOT NULL,
  expires_at      bigint NOT NULL CHECK (expires_at > created_at),
  accepted_at     bigint,
  revoked_at      bigint,
  CHECK (accepted_at IS NULL OR revoked_at IS NULL)
);
CREATE INDEX invitations_organization ON invitations (organization_id, id);

-- Written with the change that it tells of, and never altered.
CREATE TABLE audit_entries (
  id              text   PRIMARY KEY CHECK (length(id) = 36),
  organization_id text   NOT NULL REFERENCES organizations (id),
  project_id      text,
  at              bigint NOT NULL,
  -- NULL: the operator.
  user_id         text   REFERENCES users (id),
  request_id      text   NOT NULL,
  address         text   NOT NULL,
  action          text   NOT NULL CHECK (action <> ''),
  object_kind     text   NOT NULL CHECK (object_kind <> ''),
  object_id       text   NOT NULL CHECK (object_id <> ''),
  -- A JSON object of strings.
  details         text   NOT NULL,
  FOREIGN KEY (organization_id, project_id) REFERENCES projects (organization_id, id)
);
CREATE INDEX audit_entries_organization ON audit_entries (organization_id, id);
