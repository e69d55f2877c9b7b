-- How many days a project keeps its events and its session replays; NULL is as
-- long as the server's settings say.
ALTER TABLE projects ADD COLUMN events_days bigint CHECK (events_days BETWEEN 1 AND 36500);
ALTER TABLE projects ADD COLUMN replays_days bigint CHECK (replays_days BETWEEN 1 AND 36500);

-- When each server has received the newest of the events that it has stored, in
-- microseconds since 1970. Ages of recordings are counted up to the latest of
-- these at most: a clock that is ahead of all events lets nothing go.
CREATE TABLE received_marks (
  server      bytea   PRIMARY KEY CHECK (length(server) = 16),
  received_at bigint  NOT NULL
);
