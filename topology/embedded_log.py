"""The durable log of local mode: one RocksDB, `topic/partition/offset -> record`.

Theory of operation. `append` gives a record its offset and puts it in a pending batch; `flush` writes the batch
in one RocksDB write and only then shows the records to readers. RocksDB's write-ahead log has handed the bytes to
the operating system when the write returns, so a record that anybody has seen, or whose sender has been told,
survives `kill -9` at any instruction (not a power cut: the file system decides then).

The newest records of the partitions somebody reads also stay in memory (`Tail`), bounded by bytes over all
partitions: in the steady state a record is read from there and RocksDB is only written. A reader that has fallen
behind, or starts after a crash, reads from RocksDB until it has caught up.

What every agent has committed is deleted with the commit, in the same write. Topics that have no agent (those
users consume) are kept up to `kept_records_max` per partition.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from rocksdict import AccessType, DBCompressionType, Options, Rdict, WriteBatch

from topology.embedded_records import (
    META_KEY,
    Partition,
    Record,
    commit_key,
    note_key,
    offset_in,
    partition_of,
    record_key,
    record_of,
    record_value,
)
from topology.errors import Refusal

__all__ = ["Log", "LogReader", "Partition", "Record", "partition_of"]

_FORMAT: Final = 1
_WRITE_BUFFER_BYTES: Final = 16 << 20


class _Meta(msgspec.Struct):
    """What the directory is: written with every new topic."""

    format: int
    topics: dict[str, tuple[int, int]]  # name -> number, partitions


@dataclass(slots=True)
class Tail:
    """The newest records of one partition that its reader has not taken yet, oldest first."""

    start: int  # the offset the first record has, or would have
    records: deque[Record] = field(default_factory=deque)

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.start + len(self.records)


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(3)
    options.set_compression_type(DBCompressionType.none())  # bodies come compressed
    options.set_max_open_files(64)
    options.set_max_total_wal_size(64 << 20)
    options.set_keep_log_file_num(2)
    return options


class Log:
    """The log of one data directory, opened by one process at a time.

    Raises:
        Refusal: another process has the directory, or a newer version wrote it, or a topic's partitions differ.
    """

    def __init__(self, path: Path, *, memory_bytes_max: int, kept_records_max: int) -> None:
        self.path = path
        self.memory_bytes_max = memory_bytes_max
        self.kept_records_max = kept_records_max
        path.mkdir(parents=True, exist_ok=True)
        try:
            self._db = Rdict(str(path), _options())
        except Exception as error:  # rocksdict raises bare Exception; the text tells
            raise _refusal(path, error) from error
        try:
            self._meta = self._read_meta()
        except Refusal:
            self._db.close()
            raise
        self._ends: dict[Partition, int] = {}
        self._visible: dict[Partition, int] = {}  # the ends as readers may see them: without what is pending
        self._begins: dict[Partition, int] = {}  # exact: nothing is deleted but by this process
        self._tails: dict[Partition, Tail] = {}
        self._tail_bytes = 0
        self._pending: list[tuple[Partition, Record]] = []
        self._pending_notes: dict[bytes, bytes | None] = {}
        for topic in self._meta.topics:
            self._find_ends(topic)

    # -- topics

    def create_topic(self, topic: str, partitions: int) -> None:
        """Make a topic if it is not there. Raises Refusal when it is, with another number of partitions."""
        known = self._meta.topics.get(topic)
        if known is None:
            self._meta.topics[topic] = (len(self._meta.topics), partitions)
            self._db[META_KEY] = msgspec.msgpack.encode(self._meta)
            self._find_ends(topic)
        elif known[1] != partitions:
            raise Refusal(
                f"the log in {self.path} has {known[1]} partitions for topic {topic!r}, the settings say "
                f"{partitions}: set partitions to {known[1]}, or use another data directory"
            )

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None when there is no such topic."""
        known = self._meta.topics.get(topic)
        return known[1] if known else None

    @property
    def topics(self) -> Iterable[str]:
        """Names of the topics there are."""
        return self._meta.topics.keys()

    # -- writing

    def append(self, where: Partition, key: bytes | None, value: bytes, timestamp: float) -> int:
        """Give a record its offset and put it in the pending batch. Nobody sees it before `flush`."""
        offset = self._ends[where]
        self._ends[where] = offset + 1
        self._pending.append((where, Record(offset, timestamp, key, value)))
        return offset

    def note(self, name: str, value: bytes | None) -> None:
        """Write a note with the pending batch, so that it stands exactly when those records do; None removes it."""
        self._pending_notes[note_key(name)] = value

    def noted(self, name: str) -> bytes | None:
        """Return a note as it stands in the log."""
        value: bytes | None = self._db.get(note_key(name))
        return value

    def flush(self) -> set[Partition]:
        """Write what is pending, show it to readers, and return the partitions that have grown.

        What cannot be written (a full disk) stays pending, and the error is RocksDB's.
        """
        if not self._pending and not self._pending_notes:
            return set()
        self._db.write(self._pending_batch())
        pending, self._pending, self._pending_notes = self._pending, [], {}
        grown = set()
        for where, record in pending:
            self._visible[where] = record.offset + 1
            tail = self._tails.get(where)
            if tail is not None:
                grown.add(where)
                if tail.end == record.offset and self._tail_bytes < self.memory_bytes_max:
                    tail.records.append(record)
                    self._tail_bytes += record.size_bytes
            elif record.offset % 1000 == 0:
                self._trim_kept(where)
        return grown

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Remember how far every agent has come, and delete what lies before."""
        batch = WriteBatch(raw_mode=True)
        for where, offset in offsets.items():
            batch.put(commit_key(where), b"%d" % offset)
            self._delete_before(batch, where, offset)
        self._db.write(batch)
        self._begins.update((where, max(offset, self._begins[where])) for where, offset in offsets.items())

    # -- reading

    def follow(self, where: Partition, offset: int) -> None:
        """Begin to keep this partition's newest records in memory for a reader that stands at `offset`."""
        self.unfollow(where)
        self._tails[where] = Tail(offset)

    def unfollow(self, where: Partition) -> None:
        """Stop keeping this partition in memory."""
        tail = self._tails.pop(where, None)
        if tail is not None:
            self._tail_bytes -= sum(record.size_bytes for record in tail.records)

    def has_next(self, where: Partition) -> bool:
        """Say whether `take` would hand something out."""
        tail = self._tails[where]
        return bool(tail.records) or tail.start < self._visible[where]

    def position(self, where: Partition) -> int | None:
        """Return the offset of the next record `take` would hand out; None when nobody follows."""
        tail = self._tails.get(where)
        return None if tail is None else tail.start

    def take(self, where: Partition) -> Record | None:
        """Hand the followed partition's next record out, from memory or from disk; None when there is none."""
        tail = self._tails[where]
        if not tail.records:
            if tail.start >= self._visible[where]:
                return None
            for record in self.read(where, tail.start, records_max=256, bytes_max=4 << 20):
                tail.records.append(record)
                self._tail_bytes += record.size_bytes
            if not tail.records:
                return None
        record = tail.records.popleft()
        tail.start = record.offset + 1
        self._tail_bytes -= record.size_bytes
        return record

    def read(self, where: Partition, offset: int, *, records_max: int = 1000, bytes_max: int = 8 << 20) -> list[Record]:
        """Read records from disk, from `offset` on, at least one if there is one."""
        known = self._meta.topics.get(where.topic)
        if known is None:
            return []
        number = known[0]
        records: list[Record] = []
        size = 0
        cursor = self._db.iter()
        cursor.seek(record_key(number, where.partition, offset))
        while cursor.valid() and len(records) < records_max and size < bytes_max:
            at = offset_in(cursor.key(), number, where.partition)
            if at is None:
                break
            record = record_of(at, cursor.value())
            records.append(record)
            size += record.size_bytes
            cursor.next()
        return records

    def committed(self, where: Partition) -> int | None:
        """How far every agent has come; None when nothing has been committed."""
        value = self._db.get(commit_key(where))
        return None if value is None else int(value)

    def begin(self, where: Partition) -> int:
        """The offset of the oldest record, or the end when there is none."""
        return self._begins.get(where, 0)

    def end(self, where: Partition) -> int:
        """The offset the next record will get."""
        return self._ends.get(where, 0)

    # -- life

    def refresh(self) -> None:
        """Nothing to do for the process that writes (see `LogReader`)."""

    def close(self) -> None:
        """Flush and let go of the directory."""
        self.flush()
        self._db.close()

    # -- inside

    def _pending_batch(self) -> WriteBatch:
        batch = WriteBatch(raw_mode=True)
        for where, record in self._pending:
            number = self._meta.topics[where.topic][0]
            batch.put(record_key(number, where.partition, record.offset), record_value(record))
        for name, value in self._pending_notes.items():
            if value is None:
                batch.delete(name)
            else:
                batch.put(name, value)
        return batch

    def _read_meta(self) -> _Meta:
        raw = self._db.get(META_KEY)
        try:
            meta = _Meta(_FORMAT, {}) if raw is None else msgspec.msgpack.decode(raw, type=_Meta)
        except msgspec.DecodeError as error:
            raise Refusal(f"what {self.path} holds is no log of this program: {error}") from error
        if meta.format != _FORMAT:
            raise Refusal(
                f"the log in {self.path} has format {meta.format}, this version reads {_FORMAT}: "
                "use the version that wrote it, or another data directory"
            )
        return meta

    def _find_ends(self, topic: str) -> None:
        number, partitions = self._meta.topics[topic]
        cursor = self._db.iter()
        for partition in range(partitions):
            where = Partition(topic, partition)
            end = self.committed(where) or 0  # what is committed is deleted, and still counted
            cursor.seek_for_prev(record_key(number, partition, 2**64 - 1))
            last = offset_in(cursor.key(), number, partition) if cursor.valid() else None
            if last is not None:
                end = max(end, last + 1)
            self._ends[where] = self._visible[where] = end
            first = self.read(where, 0, records_max=1, bytes_max=1)
            self._begins[where] = first[0].offset if first else end

    def _delete_before(self, batch: WriteBatch, where: Partition, offset: int) -> None:
        number = self._meta.topics[where.topic][0]
        begin = self._begins[where]
        if offset > begin:
            batch.delete_range(
                record_key(number, where.partition, begin),
                record_key(number, where.partition, offset),
            )

    def _trim_kept(self, where: Partition) -> None:
        """Bound a topic nobody here reads: its consumers are users, who have this long."""
        batch = WriteBatch(raw_mode=True)
        begin = self._ends[where] - self.kept_records_max
        self._delete_before(batch, where, begin)
        if not batch.is_empty():
            self._db.write(batch)
            self._begins[where] = begin


class LogReader(Log):
    """A second process's view of a log that may be in use: reads only; `refresh` catches up."""

    def __init__(self, path: Path, scratch: Path) -> None:
        if not (path / "CURRENT").exists():
            raise Refusal(f"there is no log in {path}: has `spiderduck run` or `worker` been started with this --data?")
        self.path = path
        options = _options()
        options.set_max_open_files(-1)  # a secondary instance needs its files open: the writer deletes them
        try:
            self._db = Rdict(str(path), options, access_type=AccessType.secondary(str(scratch)))
        except Exception as error:  # rocksdict raises bare Exception
            raise Refusal(f"the log in {path} cannot be read: {error}") from error
        self._ends = {}
        self._visible = {}
        self._begins = {}
        self._meta = self._read_meta()

    def refresh(self) -> None:
        """See what the writer has written since. Raises Refusal when that cannot be read."""
        try:
            self._db.try_catch_up_with_primary()
        except Exception as error:  # rocksdict raises bare Exception
            raise Refusal(f"the log in {self.path} cannot be read: {error}") from error
        self._meta = self._read_meta()

    def begin(self, where: Partition) -> int:
        """The offset of the oldest record this view has, or the end when there is none."""
        if where.topic not in self._meta.topics:
            return 0
        self._find_ends(where.topic)
        return self._begins[where]

    def end(self, where: Partition) -> int:
        """The offset the next record will get, as far as this view goes; 0 when there is no such topic."""
        if where.topic not in self._meta.topics:
            return 0
        self._find_ends(where.topic)
        return self._ends[where]

    def close(self) -> None:
        """Let go of the files."""
        self._db.close()


def _refusal(path: Path, error: Exception) -> Refusal:
    if "lock" in str(error).lower():
        return Refusal(
            f"another process is using the data directory {path}: the embedded log is for one process. "
            "Stop the other one, or give this one a directory of its own with --data"
        )
    return Refusal(f"the log in {path} cannot be opened: {error}")
