-- Webhooks: where to, what is told, and how each delivery stands.
CREATE TABLE webhook_endpoints (
  id               text    NOT NULL PRIMARY KEY CHECK (length(id) = 36),
  project_id       text    NOT NULL REFERENCES projects (id),
  url              text    NOT NULL CHECK (length(url) BETWEEN 1 AND 2000),
  description      text    NOT NULL CHECK (length(description) <= 500),
  -- JSON lists: names of types, and of {"credit_type", "below"}.
  event_types      text    NOT NULL,
  low_balance      text    NOT NULL,
  -- Secrets are kept as they are: without them nothing can be signed.
  secret           text    NOT NULL,
  old_secret       text,
  old_secret_until bigint,
  state            text    NOT NULL CHECK (state IN ('enabled', 'disabled', 'deleted')),
  -- Why it is disabled: asked for, answered 410, or failing for days.
  disabled_reason  text    CHECK (disabled_reason IN ('asked', 'gone', 'failing')),
  -- Since when nothing was delivered although it was tried; null: it works.
  failing_since    bigint,
  created_at       bigint  NOT NULL,
  -- When it was disabled or deleted.
  ended_at         bigint,
  CHECK ((state = 'enabled') = (ended_at IS NULL)),
  CHECK ((state = 'disabled') = (disabled_reason IS NOT NULL)),
  CHECK ((old_secret IS NULL) = (old_secret_until IS NULL)),
  CHECK (state <> 'deleted' OR secret = '' AND old_secret IS NULL),
  CHECK (state = 'deleted' OR secret <> '')
);
CREATE INDEX webhook_endpoints_project ON webhook_endpoints (project_id, id) WHERE state <> 'deleted';

-- A fact that is told: one row and one id, however many are told of it.
CREATE TABLE webhook_messages (
  -- What receivers know it by.
  id         text    NOT NULL PRIMARY KEY CHECK (length(id) = 40),
  project_id text    NOT NULL,
  type       text    NOT NULL CHECK (length(type) BETWEEN 1 AND 64),
  -- The bytes that are signed and sent, as they were fixed with the fact.
  body       bytea    NOT NULL,
  created_at bigint  NOT NULL
);
CREATE INDEX webhook_messages_age ON webhook_messages (created_at);

-- pending → delivered | dead; sent again, either is pending once more.
CREATE TABLE webhook_deliveries (
  number          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id              text    NOT NULL UNIQUE CHECK (length(id) = 36),
  endpoint_id     text    NOT NULL REFERENCES webhook_endpoints (id),
  message_id      text    NOT NULL REFERENCES webhook_messages (id),
  state           text    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
  -- Attempts begun since it was last asked for.
  attempts        bigint  NOT NULL CHECK (attempts >= 0),
  -- When it may be claimed; while it is claimed, when the claim ends.
  next_attempt_at bigint,
  -- Moves on with each claim: only the latest may say what came of it.
  epoch           bigint  NOT NULL CHECK (epoch >= 0),
  last_attempt_at bigint,
  -- The status of the last answer; null if there was none.
  last_status     bigint  CHECK (last_status BETWEEN 100 AND 999),
  last_error      text,
  created_at      bigint  NOT NULL,
  finished_at     bigint,
  UNIQUE (message_id, endpoint_id),
  CHECK ((state = 'pending') = (next_attempt_at IS NOT NULL)),
  CHECK ((state = 'pending') = (finished_at IS NULL)),
  CHECK (state <> 'delivered' OR attempts > 0 AND last_error IS NULL)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, number);
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_at) WHERE finished_at IS NOT NULL;
