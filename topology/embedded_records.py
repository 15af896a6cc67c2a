"""How the embedded log's records, offsets and notes are written as RocksDB keys and values. Pure.

Keys sort as they are read: all records of a partition stand together, in the order of their offsets. What is not a
record begins with `!`.
"""

import struct
from typing import Final, NamedTuple

from aiokafka.partitioner import murmur2

META_KEY: Final = b"!meta"

_KEY: Final = struct.Struct(">BBHIQ")  # kind, spare, topic number, partition, offset
_KIND_RECORD: Final = 0x72  # "r"
_VALUE: Final = struct.Struct(">dI")  # timestamp, key length (all ones: no key)
_NO_KEY: Final = 0xFFFFFFFF


class Partition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Record(NamedTuple):
    """One record as it stands in the log. `timestamp` is seconds since the epoch."""

    offset: int
    timestamp: float
    key: bytes | None
    value: bytes

    @property
    def size_bytes(self) -> int:
        """What this record costs a tail in memory, its container included."""
        return len(self.value) + len(self.key or b"") + 160


def partition_of(key: bytes | None, partitions: int) -> int | None:
    """Return the partition of a key as Kafka's default partitioner does (murmur2); None without a key."""
    if key is None:
        return None
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def commit_key(where: Partition) -> bytes:
    """Return the key of a partition's committed offset."""
    return f"!commit/{where.topic}/{where.partition}".encode()


def note_key(name: str) -> bytes:
    """Return the key of a note."""
    return f"!note/{name}".encode()


def record_key(topic_number: int, partition: int, offset: int) -> bytes:
    """Return the key of a record. Topics are numbered in the order they were made."""
    return _KEY.pack(_KIND_RECORD, 0, topic_number, partition, offset)


def offset_in(key: bytes, topic_number: int, partition: int) -> int | None:
    """Return a record's offset; None for the key of anything else, or of another partition's record."""
    if len(key) != _KEY.size:
        return None
    kind, _, number, its_partition, offset = _KEY.unpack(key)
    return int(offset) if (kind, number, its_partition) == (_KIND_RECORD, topic_number, partition) else None


def record_value(record: Record) -> bytes:
    """Write a record, all but its offset."""
    length = _NO_KEY if record.key is None else len(record.key)
    return _VALUE.pack(record.timestamp, length) + (record.key or b"") + record.value


def record_of(offset: int, raw: bytes) -> Record:
    """Read what `record_value` wrote."""
    timestamp, length = _VALUE.unpack_from(raw)
    if length == _NO_KEY:
        return Record(offset, timestamp, None, raw[_VALUE.size :])
    start = _VALUE.size + length
    return Record(offset, timestamp, raw[_VALUE.size : start], raw[start:])
