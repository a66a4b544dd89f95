-- +goose Up
-- Times are Unix milliseconds, 0 for none.
CREATE TABLE feeds (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    url           TEXT    NOT NULL UNIQUE,
    state         TEXT    NOT NULL,
    type          TEXT    NOT NULL DEFAULT '',
    title         TEXT    NOT NULL DEFAULT '',
    description   TEXT    NOT NULL DEFAULT '',
    site_url      TEXT    NOT NULL DEFAULT '',
    icon_url      TEXT    NOT NULL DEFAULT '',
    language      TEXT    NOT NULL DEFAULT '',
    etag          TEXT    NOT NULL DEFAULT '',
    last_modified TEXT    NOT NULL DEFAULT '',
    body_hash     BLOB    NOT NULL DEFAULT x'',
    created_at    INTEGER NOT NULL,
    checked_at    INTEGER NOT NULL DEFAULT 0,
    read_at       INTEGER NOT NULL DEFAULT 0,
    full_at       INTEGER NOT NULL DEFAULT 0,
    next_fetch    INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,
    penalty_until INTEGER NOT NULL DEFAULT 0,
    error_kind    TEXT    NOT NULL DEFAULT '',
    error_text    TEXT    NOT NULL DEFAULT '',
    moved_to      TEXT    NOT NULL DEFAULT '',
    moved_since   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX feeds_due ON feeds (next_fetch) WHERE next_fetch > 0;

-- Every address that a feed has or had.
CREATE TABLE feed_urls (
    url     TEXT    PRIMARY KEY,
    feed_id INTEGER NOT NULL REFERENCES feeds (id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX feed_urls_feed ON feed_urls (feed_id);

CREATE TABLE entries (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    feed_id      INTEGER NOT NULL REFERENCES feeds (id) ON DELETE CASCADE,
    identity     TEXT    NOT NULL,
    guid         TEXT    NOT NULL,
    url          TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    author       TEXT    NOT NULL,
    summary      TEXT    NOT NULL,
    content      TEXT    NOT NULL,
    published    INTEGER NOT NULL, -- as the document says
    updated      INTEGER NOT NULL, -- as the document says
    date         INTEGER NOT NULL, -- the effective one
    first_seen   INTEGER NOT NULL,
    edited_at    INTEGER NOT NULL DEFAULT 0,
    revision     INTEGER NOT NULL DEFAULT 1,
    content_hash BLOB    NOT NULL,
    categories   TEXT    NOT NULL DEFAULT '[]',
    enclosures   TEXT    NOT NULL DEFAULT '[]',
    extensions   TEXT    NOT NULL DEFAULT '',
    UNIQUE (feed_id, identity)
);
CREATE INDEX entries_date ON entries (feed_id, date);

-- The keys by which an entry is recognised.
CREATE TABLE entry_keys (
    feed_id  INTEGER NOT NULL,
    key      TEXT    NOT NULL,
    entry_id INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    PRIMARY KEY (feed_id, key, entry_id)
) WITHOUT ROWID;
CREATE INDEX entry_keys_entry ON entry_keys (entry_id);

CREATE TABLE status_log (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    feed_id         INTEGER NOT NULL REFERENCES feeds (id) ON DELETE CASCADE,
    at              INTEGER NOT NULL,
    took_ms         INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    http_status     INTEGER NOT NULL DEFAULT 0,
    new_entries     INTEGER NOT NULL DEFAULT 0,
    updated_entries INTEGER NOT NULL DEFAULT 0,
    error_kind      TEXT    NOT NULL DEFAULT '',
    message         TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX status_log_feed ON status_log (feed_id, id);

-- +goose Down
DROP TABLE status_log;
DROP TABLE entry_keys;
DROP TABLE entries;
DROP TABLE feed_urls;
DROP TABLE feeds;
