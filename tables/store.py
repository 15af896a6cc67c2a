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
        found: bytes | None = self._table.data._db_for_partition(partition).get(key)  # noqa: SLF001 - see above
        return found

    def put(self, partition: int, key: bytes, record: Wire) -> None:
        """Write a record. It survives `kill -9` when this returns."""
        value = encode(record)
        self._table.send_changelog(partition, key, value)
        self._table.data._db_for_partition(partition).put(key, value)  # noqa: SLF001

    def drop(self, partition: int, key: bytes) -> None:
        """Forget a key."""
        self._table.send_changelog(partition, key, None)
        self._table.data._db_for_partition(partition).delete(key)  # noqa: SLF001

    def scan(self, partition: int, start: bytes, entries_max: int) -> list[tuple[bytes, bytes]]:
        """Return entries in order of their keys, from `start` on, at most so many."""
        data = self._table.data
        cursor = data._db_for_partition(partition).iter()  # noqa: SLF001
        return list(_entries(cursor, start, entries_max, data.offset_key))

    def size(self, partition: int) -> int:
        """Return about how many entries a partition has."""
        db = self._table.data._db_for_partition(partition)  # noqa: SLF001
        return int(db.property_int_value("rocksdb.estimate-num-keys") or 0)


def _entries(cursor: Any, start: bytes, entries_max: int, own_key: bytes) -> Iterator[tuple[bytes, bytes]]:
    cursor.seek(start)
    found = 0
    while cursor.valid() and found < entries_max:
        key = cursor.key()
        if key != own_key:  # Faust keeps the changelog offset among the entries
            yield key, cursor.value()
            found += 1
        cursor.next()
