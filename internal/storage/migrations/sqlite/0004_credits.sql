-- Customers, their credits and the ledger. Amounts are integers of
-- micro-units: 1 credit is 1,000,000. The keys of movements are rows of
-- idempotency_keys.
CREATE TABLE customers (
  id          INTEGER PRIMARY KEY,
  project_id  TEXT    NOT NULL REFERENCES projects (id),
  -- The project's own name for the customer, compared byte by byte.
  external_id TEXT    NOT NULL CHECK (length(external_id) BETWEEN 1 AND 200),
  -- A JSON object.
  metadata    TEXT,
  created_at  INTEGER NOT NULL,
  UNIQUE (project_id, external_id)
) STRICT;
CREATE INDEX customers_project ON customers (project_id, id);

CREATE TABLE credit_types (
  id             INTEGER PRIMARY KEY,
  project_id     TEXT    NOT NULL REFERENCES projects (id),
  name           TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  allow_negative INTEGER NOT NULL CHECK (allow_negative IN (0, 1)),
  created_at     INTEGER NOT NULL,
  UNIQUE (project_id, name),
  UNIQUE (id, allow_negative)
) STRICT;

-- What the ledger sums to. allow_negative is that of the credit type, which
-- never changes.
CREATE TABLE balances (
  customer_id    INTEGER NOT NULL REFERENCES customers (id),
  credit_type_id INTEGER NOT NULL,
  allow_negative INTEGER NOT NULL,
  posted         INTEGER NOT NULL CHECK (posted BETWEEN -999999999999999999 AND 999999999999999999),
  held           INTEGER NOT NULL CHECK (held BETWEEN 0 AND 999999999999999999),
  -- Whether there are grants with something left.
  has_grants     INTEGER NOT NULL CHECK (has_grants IN (0, 1)),
  -- Before this time the passing of time changes nothing; null: ever.
  next_due       INTEGER,
  updated_at     INTEGER NOT NULL,
  PRIMARY KEY (customer_id, credit_type_id),
  FOREIGN KEY (credit_type_id, allow_negative) REFERENCES credit_types (id, allow_negative),
  CHECK (allow_negative = 1 OR posted >= held)
) STRICT, WITHOUT ROWID;
CREATE INDEX balances_due ON balances (next_due) WHERE next_due IS NOT NULL;

CREATE TABLE grants (
  id             INTEGER PRIMARY KEY,
  customer_id    INTEGER NOT NULL,
  credit_type_id INTEGER NOT NULL,
  movement_id    TEXT    NOT NULL UNIQUE CHECK (length(movement_id) = 36),
  priority       INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 100),
  expires_at     INTEGER,
  created_at     INTEGER NOT NULL,
  amount         INTEGER NOT NULL CHECK (amount > 0),
  remaining      INTEGER NOT NULL CHECK (remaining BETWEEN 0 AND amount),
  -- The part of what remains that is held.
  pinned         INTEGER NOT NULL CHECK (pinned BETWEEN 0 AND remaining),
  FOREIGN KEY (customer_id, credit_type_id) REFERENCES balances (customer_id, credit_type_id)
) STRICT;
CREATE INDEX grants_live ON grants (customer_id, credit_type_id) WHERE remaining > 0;

CREATE TABLE holds (
  id             INTEGER PRIMARY KEY,
  customer_id    INTEGER NOT NULL,
  credit_type_id INTEGER NOT NULL,
  -- The project's own name for the hold.
  hold_id        TEXT    NOT NULL CHECK (length(hold_id) BETWEEN 1 AND 200),
  amount         INTEGER NOT NULL CHECK (amount BETWEEN 1 AND 999999999999999999),
  captured       INTEGER NOT NULL CHECK (captured BETWEEN 0 AND amount),
  state          TEXT    NOT NULL CHECK (state IN ('open', 'captured', 'released', 'expired')),
  expires_at     INTEGER,
  created_at     INTEGER NOT NULL,
  closed_at      INTEGER,
  -- What a repeat is compared by.
  print          TEXT    NOT NULL,
  reason         TEXT,
  metadata       TEXT,
  UNIQUE (customer_id, hold_id),
  FOREIGN KEY (customer_id, credit_type_id) REFERENCES balances (customer_id, credit_type_id),
  CHECK ((state = 'open') = (closed_at IS NULL)),
  CHECK (state = 'captured' OR captured = 0)
) STRICT;
CREATE INDEX holds_open ON holds (customer_id, credit_type_id, expires_at) WHERE state = 'open';
CREATE INDEX holds_customer ON holds (customer_id, id);

-- From which grants a hold is taken; the rest is of what does not expire.
CREATE TABLE hold_pins (
  hold     INTEGER NOT NULL REFERENCES holds (id),
  grant_id INTEGER NOT NULL REFERENCES grants (id),
  amount   INTEGER NOT NULL CHECK (amount > 0),
  PRIMARY KEY (hold, grant_id)
) STRICT, WITHOUT ROWID;

-- The ledger: rows are only added.
CREATE TABLE movements (
  number         INTEGER PRIMARY KEY,
  id             TEXT    NOT NULL UNIQUE CHECK (length(id) = 36),
  project_id     TEXT    NOT NULL,
  customer_id    INTEGER NOT NULL,
  credit_type_id INTEGER NOT NULL,
  kind           TEXT    NOT NULL CHECK (kind IN ('topup', 'charge', 'adjust', 'capture', 'reversal', 'expiry')),
  amount         INTEGER NOT NULL,
  -- The effect on what is posted, and what is posted after it.
  delta          INTEGER NOT NULL,
  balance_after  INTEGER NOT NULL,
  reason         TEXT,
  metadata       TEXT,
  work_key       TEXT,
  reversal_of    TEXT    UNIQUE REFERENCES movements (id),
  hold           INTEGER UNIQUE REFERENCES holds (id),
  priority       INTEGER,
  expires_at     INTEGER,
  created_at     INTEGER NOT NULL,
  FOREIGN KEY (customer_id, credit_type_id) REFERENCES balances (customer_id, credit_type_id),
  -- What is asked for with a key has one, and nothing else has.
  CHECK ((work_key IS NOT NULL) = (kind IN ('topup', 'charge', 'adjust'))),
  CHECK ((reversal_of IS NOT NULL) = (kind = 'reversal')),
  CHECK ((hold IS NOT NULL) = (kind = 'capture')),
  CHECK (delta <> 0 OR kind = 'capture')
) STRICT;
-- At most one movement a key, whatever the table of keys says.
CREATE UNIQUE INDEX movements_key ON movements (project_id, work_key) WHERE work_key IS NOT NULL;
CREATE INDEX movements_customer ON movements (customer_id, number);
CREATE INDEX movements_project ON movements (project_id, number);

-- Entries are history: nothing changes or removes them.
CREATE TRIGGER movements_stay BEFORE UPDATE ON movements
BEGIN SELECT RAISE(ABORT, 'movements are only added'); END;
CREATE TRIGGER movements_kept BEFORE DELETE ON movements
BEGIN SELECT RAISE(ABORT, 'movements are only added'); END;
