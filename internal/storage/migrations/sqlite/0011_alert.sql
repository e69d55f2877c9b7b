-- Alerts on a metric: what is watched, how each stands, and what has become of it.
CREATE TABLE alerts (
  id            TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 36),
  project_id    TEXT    NOT NULL REFERENCES projects (id),
  name          TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  source        TEXT    NOT NULL CHECK (source IN ('trend', 'duplicate_rate', 'rejection_rate', 'lag_seconds')),
  -- JSON: measure, event and where of a trend; empty for the health of intake.
  metric        TEXT    NOT NULL,
  period        TEXT    NOT NULL CHECK (period IN ('5m', '15m', '30m', '1h', '6h', '12h', '1d')),
  timezone      TEXT    NOT NULL CHECK (timezone <> ''),
  -- JSON: the rule that a period is judged by.
  condition     TEXT    NOT NULL,
  for_periods   INTEGER NOT NULL CHECK (for_periods BETWEEN 1 AND 100),
  resolve_after INTEGER NOT NULL CHECK (resolve_after BETWEEN 1 AND 100),
  -- Moves on with each change of what is watched: a period that was begun
  -- under another one does not count.
  revision      INTEGER NOT NULL CHECK (revision > 0),
  -- The period to be judged next. What ended before it has been judged or
  -- passed over, and is never judged again.
  next_start    INTEGER NOT NULL,
  next_end      INTEGER NOT NULL,
  -- How often judging it has failed, and when it is tried again.
  attempts      INTEGER NOT NULL CHECK (attempts >= 0),
  retry_at      INTEGER,
  -- Why it is not known how the metric stands, and since when.
  problem       TEXT    CHECK (problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  problem_since INTEGER,
  state         TEXT    NOT NULL CHECK (state IN ('ok', 'firing')),
  -- Periods in a row that were good, and bad.
  good_run      INTEGER NOT NULL CHECK (good_run >= 0),
  bad_run       INTEGER NOT NULL CHECK (bad_run >= 0),
  firing_since  INTEGER,
  -- The entry of the history that says that it fires, and whether endpoints
  -- were told of it.
  fired_entry   TEXT    CHECK (length(fired_entry) = 36),
  told          INTEGER NOT NULL CHECK (told IN (0, 1)),
  muted_at      INTEGER,
  -- Null while it is muted: for ever.
  muted_until   INTEGER CHECK (muted_until > muted_at),
  -- The period that was judged last.
  last_start    INTEGER,
  last_end      INTEGER,
  last_verdict  TEXT    CHECK (last_verdict IN ('good', 'bad', 'unknown')),
  last_problem  TEXT    CHECK (last_problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  last_value    REAL,
  last_baseline REAL,
  last_at       INTEGER,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  deleted_at    INTEGER,
  CHECK (next_end > next_start),
  CHECK (last_end IS NULL OR last_end <= next_start),
  CHECK ((attempts > 0) = (retry_at IS NOT NULL)),
  CHECK ((problem IS NULL) = (problem_since IS NULL)),
  CHECK (good_run = 0 OR bad_run = 0),
  CHECK ((state = 'firing') = (firing_since IS NOT NULL)),
  CHECK ((state = 'firing') = (fired_entry IS NOT NULL)),
  CHECK (state = 'firing' OR told = 0),
  CHECK (muted_at IS NOT NULL OR muted_until IS NULL),
  CHECK ((last_start IS NULL) = (last_end IS NULL)),
  CHECK ((last_start IS NULL) = (last_verdict IS NULL)),
  CHECK ((last_start IS NULL) = (last_at IS NULL)),
  CHECK (last_verdict IS NULL OR (last_verdict = 'unknown') = (last_problem IS NOT NULL)),
  CHECK (deleted_at IS NULL OR state = 'ok')
) STRICT;
CREATE INDEX alerts_project ON alerts (project_id, id) WHERE deleted_at IS NULL;
CREATE INDEX alerts_due ON alerts (next_end) WHERE deleted_at IS NULL;
CREATE INDEX alerts_deleted ON alerts (deleted_at) WHERE deleted_at IS NOT NULL;

-- One row for each period that was judged: whoever inserts it has judged it.
CREATE TABLE alert_evaluations (
  alert_id     TEXT    NOT NULL REFERENCES alerts (id),
  period_start INTEGER NOT NULL,
  period_end   INTEGER NOT NULL,
  revision     INTEGER NOT NULL CHECK (revision > 0),
  verdict      TEXT    NOT NULL CHECK (verdict IN ('good', 'bad', 'unknown')),
  -- Why the verdict is unknown.
  problem      TEXT    CHECK (problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  value        REAL,
  baseline     REAL,
  evaluated_at INTEGER NOT NULL,
  PRIMARY KEY (alert_id, period_start),
  CHECK (period_end > period_start),
  CHECK ((verdict = 'unknown') = (problem IS NOT NULL)),
  CHECK (verdict = 'unknown' OR value IS NOT NULL)
) STRICT;
CREATE INDEX alert_evaluations_age ON alert_evaluations (evaluated_at);

-- What has become of an alert. Entries are never altered.
CREATE TABLE alert_history (
  number       INTEGER PRIMARY KEY,
  id           TEXT    NOT NULL UNIQUE CHECK (length(id) = 36),
  alert_id     TEXT    NOT NULL REFERENCES alerts (id),
  kind         TEXT    NOT NULL CHECK (kind IN ('fired', 'announced', 'resolved', 'muted', 'unmuted', 'changed', 'skipped', 'problem')),
  at           INTEGER NOT NULL,
  -- Who did it; null if a period did.
  user_id      TEXT,
  -- Why it was resolved.
  reason       TEXT    CHECK (reason IN ('recovered', 'by_hand', 'changed', 'deleted')),
  period_start INTEGER,
  period_end   INTEGER,
  value        REAL,
  baseline     REAL,
  problem      TEXT    CHECK (problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  -- Until when it is muted; null: for ever.
  until        INTEGER,
  -- How many periods were passed over.
  periods      INTEGER CHECK (periods > 0),
  -- 1: it was muted, and nothing was sent.
  muted        INTEGER NOT NULL CHECK (muted IN (0, 1)),
  -- JSON: the release markers near.
  releases     TEXT    NOT NULL,
  CHECK ((kind = 'resolved') = (reason IS NOT NULL)),
  CHECK ((kind = 'skipped') = (periods IS NOT NULL)),
  CHECK ((kind = 'problem') = (problem IS NOT NULL)),
  CHECK ((period_start IS NULL) = (period_end IS NULL)),
  CHECK (kind = 'muted' OR until IS NULL),
  CHECK (kind NOT IN ('fired', 'announced', 'skipped', 'problem') OR period_start IS NOT NULL)
) STRICT;
CREATE INDEX alert_history_alert ON alert_history (alert_id, number);
CREATE INDEX alert_history_age ON alert_history (at);
