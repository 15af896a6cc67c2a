"""A Faust table as the stages use it: bytes by partition, records in.

Faust's own `table[key] = value` finds the partition in the event being handled, which is gone when an answer comes
back from the web or from the log. Here the partition is said. Every write goes to the changelog as Faust's does
(local mode has none, see `runtime.UnloggedTable`), and then to the partition's RocksDB.
"""

from collections.abc import Iterator
from typing import Any

from topology.records import Wire, encode


class Store:
    """One table. Only the owner of a partition may touch it."""

    def __init__(self, table: Any) -> None:
        self._table = table

    @property
    def name(self) -> str:
        """The table's name."""
        return str(self._table.name)

    def get(self, partition: int, key: bytes) -> bytes | None:
        """Return what stands under a key, encoded; None when nothing does."""
        found: bytes | None = self._db(partition).get(key)
        return found

    def put(self, partition: int, key: bytes, record: Wire) -> bytes:
        """Write a record, and return it as it stands there. It survives `kill -9` when this returns."""
        value = encode(record)
        self._table.send_changelog(partition, key, value)
        self._db(partition).put(key, value)
        return value

    def drop(self, partition: int, key: bytes) -> None:
        """Forget a key."""
        self._table.send_changelog(partition, key, None)
        self._db(partition).delete(key)

    def scan(self, partition: int, start: bytes, entries_max: int) -> list[tuple[bytes, bytes]]:
        """Return entries in order of their keys, from `start` on, at most so many."""
        cursor = self._db(partition).iter()
        return list(_entries(cursor, start, entries_max, self._table.data.offset_key))

    def size(self, partition: int) -> int:
        """Return about how many entries a partition has."""
        return int(self._db(partition).property_int_value("rocksdb.estimate-num-keys") or 0)

    def _db(self, partition: int) -> Any:
        return self._table.data._db_for_partition(partition)  # noqa: SLF001 - Faust's public way needs an event


def _entries(cursor: Any, start: bytes, entries_max: int, own_key: bytes) -> Iterator[tuple[bytes, bytes]]:
    cursor.seek(start)
    found = 0
    while cursor.valid() and found < entries_max:
        key = cursor.key()
        if key != own_key:  # Faust keeps the changelog offset among the entries
            yield key, cursor.value()
            found += 1
        cursor.next()
