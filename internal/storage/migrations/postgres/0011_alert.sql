-- Alerts on a metric: what is watched, how each stands, and what has become of it.
CREATE TABLE alerts (
  id            text             NOT NULL PRIMARY KEY CHECK (length(id) = 36),
  project_id    text             NOT NULL REFERENCES projects (id),
  name          text             NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  source        text             NOT NULL CHECK (source IN ('trend', 'duplicate_rate', 'rejection_rate', 'lag_seconds')),
  -- JSON: measure, event and where of a trend; empty for the health of intake.
  metric        text             NOT NULL,
  period        text             NOT NULL CHECK (period IN ('5m', '15m', '30m', '1h', '6h', '12h', '1d')),
  timezone      text             NOT NULL CHECK (timezone <> ''),
  -- JSON: the rule that a period is judged by.
  condition     text             NOT NULL,
  for_periods   bigint           NOT NULL CHECK (for_periods BETWEEN 1 AND 100),
  resolve_after bigint           NOT NULL CHECK (resolve_after BETWEEN 1 AND 100),
  -- Moves on with each change of what is watched: a period that was begun
  -- under another one does not count.
  revision      bigint           NOT NULL CHECK (revision > 0),
  -- The period to be judged next. What ended before it has been judged or
  -- passed over, and is never judged again.
  next_start    bigint           NOT NULL,
  next_end      bigint           NOT NULL,
  -- How often judging it has failed, and when it is tried again.
  attempts      bigint           NOT NULL CHECK (attempts >= 0),
  retry_at      bigint,
  -- Why it is not known how the metric stands, and since when.
  problem       text             CHECK (problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  problem_since bigint,
  state         text             NOT NULL CHECK (state IN ('ok', 'firing')),
  -- Periods in a row that were good, and bad.
  good_run      bigint           NOT NULL CHECK (good_run >= 0),
  bad_run       bigint           NOT NULL CHECK (bad_run >= 0),
  firing_since  bigint,
  -- The entry of the history that says that it fires, and whether endpoints
  -- were told of it.
  fired_entry   text             CHECK (length(fired_entry) = 36),
  told          bigint           NOT NULL CHECK (told IN (0, 1)),
  muted_at      bigint,
  -- Null while it is muted: for ever.
  muted_until   bigint           CHECK (muted_until > muted_at),
  -- The period that was judged last.
  last_start    bigint,
  last_end      bigint,
  last_verdict  text             CHECK (last_verdict IN ('good', 'bad', 'unknown')),
  last_problem  text             CHECK (last_problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  last_value    double precision,
  last_baseline double precision,
  last_at       bigint,
  created_at    bigint           NOT NULL,
  updated_at    bigint           NOT NULL,
  deleted_at    bigint,
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
);
CREATE INDEX alerts_project ON alerts (project_id, id) WHERE deleted_at IS NULL;
CREATE INDEX alerts_due ON alerts (next_end) WHERE deleted_at IS NULL;
CREATE INDEX alerts_deleted ON alerts (deleted_at) WHERE deleted_at IS NOT NULL;

-- One row for each period that was judged: whoever inserts it has judged it.
CREATE TABLE alert_evaluations (
  alert_id     text             NOT NULL REFERENCES alerts (id),
  period_start bigint           NOT NULL,
  period_end   bigint           NOT NULL,
  revision     bigint           NOT NULL CHECK (revision > 0),
  verdict      text             NOT NULL CHECK (verdict IN ('good', 'bad', 'unknown')),
  -- Why the verdict is unknown.
  problem      text             CHECK (problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  value        double precision,
  baseline     double precision,
  evaluated_at bigint           NOT NULL,
  PRIMARY KEY (alert_id, period_start),
  CHECK (period_end > period_start),
  CHECK ((verdict = 'unknown') = (problem IS NOT NULL)),
  CHECK (verdict = 'unknown' OR value IS NOT NULL)
);
CREATE INDEX alert_evaluations_age ON alert_evaluations (evaluated_at);

-- What has become of an alert. Entries are never altered.
CREATE TABLE alert_history (
  number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id           text             NOT NULL UNIQUE CHECK (length(id) = 36),
  alert_id     text             NOT NULL REFERENCES alerts (id),
  kind         text             NOT NULL CHECK (kind IN ('fired', 'announced', 'resolved', 'muted', 'unmuted', 'changed', 'skipped', 'problem')),
  at           bigint           NOT NULL,
  -- Who did it; null if a period did.
  user_id      text,
  -- Why it was resolved.
  reason       text             CHECK (reason IN ('recovered', 'by_hand', 'changed', 'deleted')),
  period_start bigint,
  period_end   bigint,
  value        double precision,
  baseline     double precision,
  problem      text             CHECK (problem IN ('no_data', 'no_baseline', 'query_timeout', 'query_failed')),
  -- Until when it is muted; null: for ever.
  until        bigint,
  -- How many periods were passed over.
  periods      bigint           CHECK (periods > 0),
  -- 1: it was muted, and nothing was sent.
  muted        bigint           NOT NULL CHECK (muted IN (0, 1)),
  -- JSON: the release markers near.
  releases     text             NOT NULL,
  CHECK ((kind = 'resolved') = (reason IS NOT NULL)),
  CHECK ((kind = 'skipped') = (periods IS NOT NULL)),
  CHECK ((kind = 'problem') = (problem IS NOT NULL)),
  CHECK ((period_start IS NULL) = (period_end IS NULL)),
  CHECK (kind = 'muted' OR until IS NULL),
  CHECK (kind NOT IN ('fired', 'announced', 'skipped', 'problem') OR period_start IS NOT NULL)
);
CREATE INDEX alert_history_alert ON alert_history (alert_id, number);
CREATE INDEX alert_history_age ON alert_history (at);
