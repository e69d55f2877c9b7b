-- Whose store this is, who may come in, and with which key.
-- Times are microseconds since 1970. Ids are UUIDs, lower case, hyphenated.

CREATE TABLE meta (
  id             INTEGER PRIMARY KEY CHECK (id = 1),
  store_identity BLOB    NOT NULL CHECK (length(store_identity) = 16),
  format_version INTEGER NOT NULL CHECK (format_version > 0),
  created_at     INTEGER NOT NULL
) STRICT;

-- The highest number ever given. A number outlives its row: stored events and
-- metrics name projects and credentials by it, so none is given twice.
CREATE TABLE counters (
  name  TEXT    PRIMARY KEY CHECK (name IN ('project', 'credential')),
  value INTEGER NOT NULL CHECK (value >= 0)
) STRICT;
INSERT INTO counters (name, value) VALUES ('project', 0), ('credential', 0);

CREATE TABLE organizations (
  id           TEXT    PRIMARY KEY CHECK (length(id) = 36),
  name         TEXT    NOT NULL CHECK (name <> ''),
  created_at   INTEGER NOT NULL,
  suspended_at INTEGER
) STRICT;

CREATE TABLE users (
  id            TEXT    PRIMARY KEY CHECK (length(id) = 36),
  email         TEXT    NOT NULL UNIQUE CHECK (email <> ''),
  password_hash TEXT    NOT NULL CHECK (password_hash LIKE '$argon2id$%'),
  created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE memberships (
  organization_id TEXT    NOT NULL REFERENCES organizations (id),
  user_id         TEXT    NOT NULL REFERENCES users (id),
  role            TEXT    NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (organization_id, user_id)
) STRICT;
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE projects (
  id              TEXT    PRIMARY KEY CHECK (length(id) = 36),
  number          INTEGER NOT NULL UNIQUE CHECK (number BETWEEN 1 AND 4294967295),
  organization_id TEXT    NOT NULL REFERENCES organizations (id),
  name            TEXT    NOT NULL CHECK (name <> ''),
  created_at      INTEGER NOT NULL,
  UNIQUE (organization_id, id)
) STRICT;

CREATE TABLE credentials (
  id              TEXT    PRIMARY KEY CHECK (length(id) = 36),
  number          INTEGER NOT NULL UNIQUE CHECK (number > 0),
  organization_id TEXT    NOT NULL REFERENCES organizations (id),
  project_id      TEXT,
  user_id         TEXT    REFERENCES users (id),
  kind            TEXT    NOT NULL CHECK (kind IN ('browser', 'server', 'legacy', 'project', 'ci', 'access')),
  name            TEXT    NOT NULL CHECK (name <> ''),
  secret_hash     BLOB    NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
  prefix          TEXT    NOT NULL,
  last_four       TEXT    NOT NULL CHECK (length(last_four) <= 4),
  -- A JSON array of strings; empty means any origin.
  origins         TEXT    NOT NULL,
  rate            REAL CHECK (rate >= 0 AND rate <= 1000000000),
  burst           INTEGER CHECK (burst BETWEEN 1 AND 1000000000),
  created_at      INTEGER NOT NULL,
  expires_at      INTEGER CHECK (expires_at > created_at),
  revoked_at      INTEGER,
  -- A project's key belongs to the organization the project belongs to.
  FOREIGN KEY (organization_id, project_id) REFERENCES projects (organization_id, id),
  -- Access tokens speak for a user in an organization and always end; every
  -- other kind speaks for one project and for nobody.
  CHECK ((kind = 'access') = (user_id IS NOT NULL)),
  CHECK ((kind = 'access') = (project_id IS NULL)),
  CHECK (kind <> 'access' OR expires_at IS NOT NULL),
  CHECK (kind = 'browser' OR origins = '[]')
) STRICT;
CREATE INDEX credentials_organization ON credentials (organization_id, number);
CREATE INDEX credentials_project ON credentials (project_id);
CREATE INDEX credentials_user ON credentials (user_id);
