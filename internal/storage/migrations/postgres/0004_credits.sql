-- Customers, their credits and the ledger. Amounts are integers of
-- micro-units: 1 credit is 1,000,000. The keys of movements are rows of
-- idempotency_keys.
CREATE TABLE customers (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id  text    NOT NULL REFERENCES projects (id),
  -- The project's own name for the customer, compared byte by byte.
  external_id text COLLATE "C"    NOT NULL CHECK (length(external_id) BETWEEN 1 AND 200),
  -- A JSON object.
  metadata    text,
  created_at  bigint NOT NULL,
  UNIQUE (project_id, external_id)
);
CREATE INDEX customers_project ON customers (project_id, id);

CREATE TABLE credit_types (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id     text    NOT NULL REFERENCES projects (id),
  name           text COLLATE "C"    NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  allow_negative bigint NOT NULL CHECK (allow_negative IN (0, 1)),
  created_at     bigint NOT NULL,
  UNIQUE (project_id, name),
  UNIQUE (id, allow_negative)
);

-- What the ledger sums to. allow_negative is that of the credit type, which
-- never changes.
CREATE TABLE balances (
  customer_id    bigint NOT NULL REFERENCES customers (id),
  credit_type_id bigint NOT NULL,
  allow_negative bigint NOT NULL,
  posted         bigint NOT NULL CHECK (posted BETWEEN -999999999999999999 AND 999999999999999999),
  held           bigint NOT NULL CHECK (held BETWEEN 0 AND 999999999999999999),
  -- Whether there are grants with something left.
  has_grants     bigint NOT NULL CHECK (has_grants IN (0, 1)),
  -- Before this time the passing of time changes nothing; null: ever.
  next_due       bigint,
  updated_at     bigint NOT NULL,
  PRIMARY KEY (customer_id, credit_type_id),
  FOREIGN KEY (credit_type_id, allow_negative) REFERENCES credit_types (id, allow_negative),
  CHECK (allow_negative = 1 OR posted >= held)
);
CREATE INDEX balances_due ON balances (next_due) WHERE next_due IS NOT NULL;

CREATE TABLE grants (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer_id    bigint NOT NULL,
  credit_type_id bigint NOT NULL,
  movement_id    text    NOT NULL UNIQUE CHECK (length(movement_id) = 36),
  priority       bigint NOT NULL CHECK (priority BETWEEN 0 AND 100),
  expires_at     bigint,
  created_at     bigint NOT NULL,
  amount         bigint NOT NULL CHECK (amount > 0),
  remaining      bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
  -- The part of what remains that is held.
  pinned         bigint NOT NULL CHECK (pinned BETWEEN 0 AND remaining),
  FOREIGN KEY (customer_id, credit_type_id) REFERENCES balances (customer_id, credit_type_id)
);
CREATE INDEX grants_live ON grants (customer_id, credit_type_id) WHERE remaining > 0;

CREATE TABLE holds (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer_id    bigint NOT NULL,
  credit_type_id bigint NOT NULL,
  -- The project's own name for the hold.
  hold_id        text COLLATE "C"    NOT NULL CHECK (length(hold_id) BETWEEN 1 AND 200),
  amount         bigint NOT NULL CHECK (amount BETWEEN 1 AND 999999999999999999),
  captured       bigint NOT NULL CHECK (captured BETWEEN 0 AND amount),
  state          text    NOT NULL CHECK (state IN ('open', 'captured', 'released', 'expired')),
  expires_at     bigint,
  created_at     bigint NOT NULL,
  closed_at      bigint,
  -- What a repeat is compared by.
  print          text    NOT NULL,
  reason         text,
  metadata       text,
  UNIQUE (customer_id, hold_id),
  FOREIGN KEY (customer_id, credit_type_id) REFERENCES balances (customer_id, credit_type_id),
  CHECK ((state = 'open') = (closed_at IS NULL)),
  CHECK (state = 'captured' OR captured = 0)
);
CREATE INDEX holds_open ON holds (customer_id, credit_type_id, expires_at) WHERE state = 'open';
CREATE INDEX holds_customer ON holds (customer_id, id);

-- From which grants a hold is taken; the rest is of what does not expire.
CREATE TABLE hold_pins (
  hold     bigint NOT NULL REFERENCES holds (id),
  grant_id bigint NOT NULL REFERENCES grants (id),
  amount   bigint NOT NULL CHECK (amount > 0),
  PRIMARY KEY (hold, grant_id)
);

-- The ledger: rows are only added.
CREATE TABLE movements (
  number         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id             text    NOT NULL UNIQUE CHECK (length(id) = 36),
  project_id     text    NOT NULL,
  customer_id    bigint NOT NULL,
  credit_type_id bigint NOT NULL,
  kind           text    NOT NULL CHECK (kind IN ('topup', 'charge', 'adjust', 'capture', 'reversal', 'expiry')),
  amount         bigint NOT NULL,
  -- The effect on what is posted, and what is posted after it.
  delta          bigint NOT NULL,
  balance_after  bigint NOT NULL,
  reason         text,
  metadata       text,
  work_key       text COLLATE "C",
  reversal_of    text    UNIQUE REFERENCES movements (id),
  hold           bigint UNIQUE REFERENCES holds (id),
  priority       bigint,
  expires_at     bigint,
  created_at     bigint NOT NULL,
  FOREIGN KEY (customer_id, credit_type_id) REFERENCES balances (customer_id, credit_type_id),
  -- What is asked for with a key has one, and nothing else has.
  CHECK ((work_key IS NOT NULL) = (kind IN ('topup', 'charge', 'adjust'))),
  CHECK ((reversal_of IS NOT NULL) = (kind = 'reversal')),
  CHECK ((hold IS NOT NULL) = (kind = 'capture')),
  CHECK (delta <> 0 OR kind = 'capture')
);
-- At most one movement a key, whatever the table of keys says.
CREATE UNIQUE INDEX movements_key ON movements (project_id, work_key) WHERE work_key IS NOT NULL;
CREATE INDEX movements_customer ON movements (customer_id, number);
CREATE INDEX movements_project ON movements (project_id, number);

-- Entries are history: nothing changes or removes them.
CREATE FUNCTION movements_stay() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'movements are only added' USING ERRCODE = 'restrict_violation'; END $$;
CREATE TRIGGER movements_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON movements
FOR EACH STATEMENT EXECUTE FUNCTION movements_stay();
