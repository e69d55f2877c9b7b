-- The generations of the data folders that use this database: a server writes a
-- new one here and then into its folder, at each start and after each backup. A
-- database that lacks its folder's is an earlier copy, or another one's.
CREATE TABLE generations (
  generation BLOB    PRIMARY KEY CHECK (length(generation) = 16),
  made_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
