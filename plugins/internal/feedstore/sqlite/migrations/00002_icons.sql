-- +goose Up
-- A feed of many authors counts only the entries of the one whose full name is given.
ALTER TABLE feeds ADD COLUMN multi_author INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN full_name TEXT NOT NULL DEFAULT '';

-- The icon of a feed; data is empty until one was found.
CREATE TABLE icons (
    feed_id    INTEGER PRIMARY KEY REFERENCES feeds (id) ON DELETE CASCADE,
    url        TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    data       BLOB    NOT NULL,
    width      INTEGER NOT NULL,
    height     INTEGER NOT NULL,
    rank       INTEGER NOT NULL,
    found_at   INTEGER NOT NULL,
    checked_at INTEGER NOT NULL
);

-- +goose Down
DROP TABLE icons;
ALTER TABLE feeds DROP COLUMN full_name;
ALTER TABLE feeds DROP COLUMN multi_author;
