-- How many days a project keeps its events and its session replays; NULL is as
-- long as the server's settings say.
ALTER TABLE projects ADD COLUMN events_days bigint CHECK (events_days BETWEEN 1 AND 36500);
ALTER TABLE projects ADD COLUMN replays_days bigint CHECK (replays_days BETWEEN 1 AND 36500);
