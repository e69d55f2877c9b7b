-- Session replay: what was received, what of it can be read, and which blobs
-- there may be. Ids of sessions and persons are bytes: they are any text of the
-- caller's, with characters that a column of text cannot hold.

-- A mark of each chunk that was ever received. It outlives the chunk: nothing
-- deletes a mark, so a repeat is known for ever.
CREATE TABLE replay_marks (
  project_id   text    NOT NULL REFERENCES projects (id),
  -- SHA-256 of the session's id.
  session_hash bytea   NOT NULL CHECK (length(session_hash) = 32),
  chunk        bigint  NOT NULL CHECK (chunk BETWEEN 0 AND 1000000),
  -- SHA-256 of the events, however they were spelt.
  digest       bytea   NOT NULL CHECK (length(digest) = 32),
  -- The attempt that was first, by which it knows itself.
  attempt      bytea   NOT NULL CHECK (length(attempt) = 16),
  received_at  bigint  NOT NULL,
  PRIMARY KEY (project_id, session_hash, chunk)
);

-- Sessions of which there is a chunk to read, summed up over their chunks.
CREATE TABLE replay_sessions (
  number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id   text    NOT NULL REFERENCES projects (id),
  session_hash bytea   NOT NULL CHECK (length(session_hash) = 32),
  session_id   bytea   NOT NULL CHECK (length(session_id) BETWEEN 1 AND 800),
  -- Those of the chunk received last that has one.
  user_id      bytea   CHECK (length(user_id) BETWEEN 1 AND 800),
  anon_id      bytea   CHECK (length(anon_id) BETWEEN 1 AND 800),
  -- When the first event happened, and the last.
  started_at   bigint  NOT NULL,
  ended_at     bigint  NOT NULL,
  chunks       bigint  NOT NULL CHECK (chunks > 0),
  bytes        bigint  NOT NULL CHECK (bytes >= 2 * chunks),
  events       bigint  NOT NULL CHECK (events >= 0),
  pages        bigint  NOT NULL CHECK (pages >= 0),
  errors       bigint  NOT NULL CHECK (errors >= 0),
  clicks       bigint  NOT NULL CHECK (clicks >= 0),
  UNIQUE (project_id, session_hash),
  CHECK (ended_at >= started_at)
);
CREATE INDEX replay_sessions_project ON replay_sessions (project_id, number);

-- Chunks that can be read. A row is there exactly as long as its blob.
CREATE TABLE replay_chunks (
  session_number bigint  NOT NULL REFERENCES replay_sessions (number),
  chunk          bigint  NOT NULL CHECK (chunk BETWEEN 0 AND 1000000),
  project_id     text    NOT NULL,
  -- The name of the compressed events in the blob store.
  blob           text    COLLATE "C" NOT NULL UNIQUE CHECK (length(blob) BETWEEN 1 AND 200),
  -- The events as they were sent, and as they are stored.
  bytes          bigint  NOT NULL CHECK (bytes >= 2),
  stored_bytes   bigint  NOT NULL CHECK (stored_bytes > 0),
  user_id        bytea   CHECK (length(user_id) BETWEEN 1 AND 800),
  anon_id        bytea   CHECK (length(anon_id) BETWEEN 1 AND 800),
  received_at    bigint  NOT NULL,
  started_at     bigint  NOT NULL,
  ended_at       bigint  NOT NULL,
  events         bigint  NOT NULL CHECK (events >= 0),
  pages          bigint  NOT NULL CHECK (pages BETWEEN 0 AND events),
  errors         bigint  NOT NULL CHECK (errors BETWEEN 0 AND events),
  clicks         bigint  NOT NULL CHECK (clicks BETWEEN 0 AND events),
  PRIMARY KEY (session_number, chunk),
  CHECK (ended_at >= started_at)
);
CREATE INDEX replay_chunks_received ON replay_chunks (project_id, received_at);
CREATE INDEX replay_chunks_user ON replay_chunks (project_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX replay_chunks_anon ON replay_chunks (project_id, anon_id) WHERE anon_id IS NOT NULL;

-- Blobs that may be in the store and that no chunk has: pending ones are being
-- written for a chunk that is about to be, doomed ones are to be deleted. Only
-- whoever takes the pending row away may make a chunk of the blob.
CREATE TABLE replay_blobs (
  name  text    COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 200),
  state text    NOT NULL CHECK (state IN ('pending', 'doomed')),
  -- When it got into this state.
  since bigint  NOT NULL
);
CREATE INDEX replay_blobs_state ON replay_blobs (state, since);

-- The place that holds the blobs: a folder of one server, or a bucket. A blob in
-- it says the same id. Without a row none does yet.
CREATE TABLE replay_place (
  one        bigint PRIMARY KEY CHECK (one = 1),
  id         bytea  NOT NULL CHECK (length(id) = 16),
  -- The place that they were moved from last; id if they never were.
  moved_from bytea  NOT NULL CHECK (length(moved_from) = 16)
);

-- What was received in each month (UTC, by receipt). Deletions lower nothing.
CREATE TABLE replay_usage (
  project_id text    NOT NULL REFERENCES projects (id),
  month      bigint  NOT NULL CHECK (month BETWEEN 197001 AND 999912 AND month % 100 BETWEEN 1 AND 12),
  chunks     bigint  NOT NULL CHECK (chunks > 0),
  -- The events as they were sent.
  bytes      bigint  NOT NULL CHECK (bytes >= 2 * chunks),
  PRIMARY KEY (project_id, month)
);
