-- Whose store this is, who may come in, and with which key.
-- Times are microseconds since 1970. Ids are UUIDs, lower case, hyphenated.

CREATE TABLE meta (
  id             bigint PRIMARY KEY CHECK (id = 1),
  store_identity bytea  NOT NULL CHECK (length(store_identity) = 16),
  format_version bigint NOT NULL CHECK (format_version > 0),
  created_at     bigint NOT NULL
);

-- The highest number ever given. A number outlives its row: stored events and
-- metrics name projects and credentials by it, so none is given twice.
CREATE TABLE counters (
  name  text   PRIMARY KEY CHECK (name IN ('project', 'credential')),
  value bigint NOT NULL CHECK (value >= 0)
);
INSERT INTO counters (name, value) VALUES ('project', 0), ('credential', 0);

CREATE TABLE organizations (
  id           text   PRIMARY KEY CHECK (length(id) = 36),
  name         text   NOT NULL CHECK (name <> ''),
  created_at   bigint NOT NULL,
  suspended_at bigint
);

CREATE TABLE users (
  id            text   PRIMARY KEY CHECK (length(id) = 36),
  email         text   NOT NULL UNIQUE CHECK (email <> ''),
  password_hash text   NOT NULL CHECK (password_hash LIKE '$argon2id$%'),
  created_at    bigint NOT NULL
);

CREATE TABLE memberships (
  organization_id text   NOT NULL REFERENCES organizations (id),
  user_id         text   NOT NULL REFERENCES users (id),
  role            text   NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  created_at      bigint NOT NULL,
  PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE projects (
  id              text   PRIMARY KEY CHECK (length(id) = 36),
  number          bigint NOT NULL UNIQUE CHECK (number BETWEEN 1 AND 4294967295),
  organization_id text   NOT NULL REFERENCES organizations (id),
  name            text   NOT NULL CHECK (name <> ''),
  created_at      bigint NOT NULL,
  UNIQUE (organization_id, id)
);

CREATE TABLE credentials (
  id              text   PRIMARY KEY CHECK (length(id) = 36),
  number          bigint NOT NULL UNIQUE CHECK (number > 0),
  organization_id text   NOT NULL REFERENCES organizations (id),
  project_id      text,
  user_id         text   REFERENCES users (id),
  kind            text   NOT NULL CHECK (kind IN ('browser', 'server', 'legacy', 'project', 'ci', 'access')),
  name            text   NOT NULL CHECK (name <> ''),
  secret_hash     bytea  NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
  prefix          text   NOT NULL,
  last_four       text   NOT NULL CHECK (length(last_four) <= 4),
  -- A JSON array of strings; empty means any origin.
  origins         text   NOT NULL,
  rate            double precision CHECK (rate >= 0 AND rate <= 1000000000),
  burst           bigint CHECK (burst BETWEEN 1 AND 1000000000),
  created_at      bigint NOT NULL,
  expires_at      bigint CHECK (expires_at > created_at),
  revoked_at      bigint,
  -- A project's key belongs to the organization the project belongs to.
  FOREIGN KEY (organization_id, project_id) REFERENCES projects (organization_id, id),
  -- Access tokens speak for a user in an organization and always end; every
  -- other kind speaks for one project and for nobody.
  CHECK ((kind = 'access') = (user_id IS NOT NULL)),
  CHECK ((kind = 'access') = (project_id IS NULL)),
  CHECK (kind <> 'access' OR expires_at IS NOT NULL),
  CHECK (kind = 'browser' OR origins = '[]')
);
CREATE INDEX credentials_organization ON credentials (organization_id, number);
CREATE INDEX credentials_project ON credentials (project_id);
CREATE INDEX credentials_user ON credentials (user_id);
