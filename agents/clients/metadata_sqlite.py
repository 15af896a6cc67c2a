"""The metadata store in one SQLite file: the local mode.

One thread owns the only connection that writes, another one that reads, so the event loop never waits for
the disk and readers never wait for the writer (WAL, https://www.sqlite.org/wal.html). With
`synchronous=NORMAL` a commit is handed to the operating system: a killed process loses nothing, a power cut
may lose the last commits but corrupts nothing. One transaction per batch.

A record is one row with its fields as a JSON object, merged by `merged` when the row exists. Measured for
records of 18 fields in batches of 100, CPU per URL: one JSON row with two aliases and a share 60 us (39 us
written again) and 2.1 kB on disk; a row per field, the record alone, 101 us and 2.9 kB. SQLite's own
`json_patch` merges nested objects too, so a field that is an object would keep the keys of its predecessor.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec

from agents.clients.errors import StoreUnavailable
from agents.clients.metadata import READ_URLS_MAX, Answer, Ending, Record, ShareCounts

SCHEMA: Final = 1

# `written` is 0 while a record consists of updates only: it waits for its ending, or for one naming it an alias.
# Shares are keyed by what is shared, not by where it led: each is counted once, whatever a replay finds.
_TABLES: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS schema (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS records (
    canonical_url TEXT PRIMARY KEY, written INTEGER NOT NULL, fields TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS aliases (alias TEXT PRIMARY KEY, canonical_url TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shares (
    tweet_id TEXT, url TEXT, canonical_url TEXT NOT NULL, day TEXT NOT NULL, completed TEXT NOT NULL,
    PRIMARY KEY (tweet_id, url)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS shares_by_url ON shares (canonical_url, day);
INSERT INTO schema SELECT {schema} WHERE NOT EXISTS (SELECT * FROM schema);
COMMIT;
"""
_WRITE: Final = """
INSERT INTO records VALUES (?1, 1, ?2)
ON CONFLICT DO UPDATE SET written = 1, fields = merged(fields, ?3)"""
_UPDATE: Final = """
INSERT INTO records VALUES (coalesce((SELECT canonical_url FROM aliases WHERE alias = ?1), ?1), 0, ?2)
ON CONFLICT DO UPDATE SET fields = merged(fields, ?3)"""
_MERGE: Final = """
INSERT INTO records VALUES (?1, 0, ?2)
ON CONFLICT DO UPDATE SET fields = merged(fields, ?2)"""
_WAITING: Final = """
SELECT canonical_url, fields FROM records
WHERE written = 0 AND canonical_url IN (SELECT value FROM json_each(?))"""
_POINT: Final = """
INSERT INTO aliases VALUES (?, ?) ON CONFLICT DO UPDATE SET canonical_url = excluded.canonical_url"""
_SHARE: Final = "INSERT OR REPLACE INTO shares VALUES (?, ?, ?, ?, ?)"
_GET: Final = """
SELECT asked.value, records.canonical_url, records.fields FROM json_each(?) AS asked
LEFT JOIN aliases ON aliases.alias = asked.value
JOIN records ON records.canonical_url = coalesce(aliases.canonical_url, asked.value) AND records.written"""
_BY_TWEET: Final = "SELECT url, canonical_url, completed FROM shares WHERE tweet_id = ? ORDER BY url"
_COUNTS: Final = "SELECT day, count(*) FROM shares WHERE canonical_url = ? GROUP BY day ORDER BY day"

_encode = msgspec.json.Encoder().encode
_fields = msgspec.json.Decoder(dict[str, Any]).decode

T = TypeVar("T")


class SqliteMetadata:
    """A `MetadataStore` in one file. Made by `open`; several processes may open the same file."""

    def __init__(self, path: Path, lock_wait_s_max: float) -> None:
        self._writer = _Lane(path, "metadata-writer", lock_wait_s_max)
        self._reader = _Lane(path, "metadata-reader", lock_wait_s_max)

    @classmethod
    async def open(cls, path: Path, *, lock_wait_s_max: float = 5.0) -> Self:
        """Open or create the file.

        A call that waits longer than `lock_wait_s_max` seconds for another process's lock fails.

        Raises:
            StoreUnavailable: it cannot be opened, is no SQLite file, or was written by a later release.
        """
        store = cls(path, lock_wait_s_max)
        try:
            await store._writer.run(_prepare)
            await store._reader.run(lambda db: db.execute("PRAGMA query_only = ON"))
        except BaseException:
            await store.close()
            raise
        return store

    async def write(self, batch: Sequence[Ending]) -> None:
        """Store endings in one transaction."""
        await self._writer.run(lambda db: _write(db, batch))

    async def update(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge a few fields into each record, in one transaction."""
        await self._writer.run(lambda db: _update(db, changes))

    async def get_many(self, urls: Sequence[str], fields: Collection[str] | None = None) -> dict[str, Record | None]:
        """Read records through any of their URLs."""
        if len(urls) > READ_URLS_MAX:
            raise ValueError(f"{len(urls)} URLs asked at once, {READ_URLS_MAX} are allowed")
        return await self._reader.run(lambda db: _get_many(db, urls, fields))

    async def by_tweet(self, tweet_id: str) -> list[Answer]:
        """Say what was answered to each URL of a tweet."""
        rows = await self._reader.run(lambda db: db.execute(_BY_TWEET, (tweet_id,)).fetchall())
        return [Answer(url, canonical, _fields(completed)) for url, canonical, completed in rows]

    async def shares(self, canonical_url: str) -> ShareCounts:
        """Count the shares of a canonical URL."""
        rows = await self._reader.run(lambda db: db.execute(_COUNTS, (canonical_url,)).fetchall())
        by_day = dict(rows)
        return ShareCounts(sum(by_day.values()), by_day)

    async def close(self) -> None:
        """Wait for the calls under way, then close both connections. Closing twice is closing once."""
        await self._writer.close()
        await self._reader.close()


class _Lane:
    """One thread, and the connection that only this thread uses."""

    def __init__(self, path: Path, name: str, lock_wait_s_max: float) -> None:
        self._path, self._lock_wait_s_max = path, lock_wait_s_max
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._db: sqlite3.Connection | None = None
        self._closed = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` on the lane's thread; whatever SQLite complains of becomes `StoreUnavailable`."""
        if self._closed:
            raise StoreUnavailable(f"{self._path} is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._path}: {error}") from error

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._db is None:
            self._db = _connect(self._path, self._lock_wait_s_max)
        try:
            return work(self._db)
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
            self._thread.shutdown()

    def _end(self) -> None:
        if self._db is not None:
            self._db.close()


def _connect(path: Path, lock_wait_s_max: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=lock_wait_s_max, isolation_level=None)  # transactions are written out
    db.create_function("merged", 2, merged, deterministic=True)
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def _prepare(db: sqlite3.Connection) -> None:
    """Create what is missing, and refuse a file that a later release has written."""
    db.execute("PRAGMA journal_mode = WAL")
    known = db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'schema'").fetchone()[0]
    found = db.execute("SELECT max(version) FROM schema").fetchone()[0] if known else SCHEMA
    if found > SCHEMA:
        raise StoreUnavailable(
            f"the metadata file has schema {found} and this release knows up to {SCHEMA}: run a newer release"
        )
    db.executescript(_TABLES.format(schema=SCHEMA))


def merged(old: str, new: str) -> str:
    """Merge two JSON objects field by field: the new value wins, and null removes. For SQL."""
    return _present(_fields(old) | _fields(new))


def _present(fields: Mapping[str, Any]) -> str:
    return _encode({name: value for name, value in fields.items() if value is not None}).decode()


def _write(db: sqlite3.Connection, batch: Sequence[Ending]) -> None:
    """Apply endings in their order. Everything is encoded before the lock is taken."""
    leads_to = _leads_to(batch)
    aliases = [(alias, url) for alias, url in leads_to.items() if alias != url]
    records = [(end.canonical_url, _present(end.fields), _encode(end.fields).decode()) for end in batch]
    shares = [
        (share.tweet_id, share.url, end.canonical_url, share.day, _encode(share.completed).decode())
        for end in batch
        for share in end.shares
    ]
    db.execute("BEGIN IMMEDIATE")
    _move_waiting(db, dict(aliases))
    db.executemany(_WRITE, records)
    db.executemany("DELETE FROM aliases WHERE alias = ?", [(end.canonical_url,) for end in batch])
    db.executemany(_POINT, aliases)
    db.executemany(_SHARE, shares)
    db.execute("COMMIT")


def _leads_to(batch: Sequence[Ending]) -> dict[str, str]:
    """Where each URL leads after the batch. A later ending wins, and a URL that is written leads to itself."""
    leads_to: dict[str, str] = {}
    for end in batch:
        leads_to |= dict.fromkeys(end.aliases, end.canonical_url)
        leads_to[end.canonical_url] = end.canonical_url
    return leads_to


def _move_waiting(db: sqlite3.Connection, aliases: Mapping[str, str]) -> None:
    """Hand updates that came before the ending, under what turns out to be an alias, to the canonical record."""
    waiting = db.execute(_WAITING, (_encode(list(aliases)).decode(),)).fetchall()
    db.executemany(_MERGE, [(aliases[alias], fields) for alias, fields in waiting])
    db.executemany("DELETE FROM records WHERE canonical_url = ?", [(alias,) for alias, _ in waiting])


def _update(db: sqlite3.Connection, changes: Mapping[str, Mapping[str, Any]]) -> None:
    rows = [(url, _present(fields), _encode(fields).decode()) for url, fields in changes.items()]
    db.execute("BEGIN IMMEDIATE")
    db.executemany(_UPDATE, rows)
    db.execute("COMMIT")


def _get_many(db: sqlite3.Connection, urls: Sequence[str], only: Collection[str] | None) -> dict[str, Record | None]:
    found: dict[str, Record | None] = dict.fromkeys(urls)
    for url, canonical_url, encoded in db.execute(_GET, (_encode(urls).decode(),)):
        fields = _fields(encoded)
        kept = fields if only is None else {name: fields[name] for name in only if name in fields}
        found[url] = Record(canonical_url, kept)
    return found
