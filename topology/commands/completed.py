"""`spiderduck completed`: what has been announced, read from the log of a worker that runs or does not.

A reader of its own beside the worker, at least once and in order per partition: it takes nothing away from anybody.
"""

import heapq
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from topology import names
from topology.commands.options import with_settings
from topology.embedded_log import LogReader, Partition, Record
from topology.errors import Refusal
from topology.service import ensure_local
from topology.settings import Settings

_LOOK_S: Final = 0.2
_READ_RECORDS: Final = 256
_READ_BYTES: Final = 4 << 20


@click.command()
@with_settings("data")
@click.option("--follow", "-f", is_flag=True, help="wait for more, also for a log that is not there yet")
@click.option(
    "--from-start/--from-now", default=True, help="begin with the oldest kept, or with the next  [default: start]"
)
@click.option("--limit", "-n", metavar="N", type=click.IntRange(min=1), help="end after so many")
@click.option("--dead-letters", is_flag=True, help="what could not be read, instead")
def completed(settings: Settings, follow: bool, from_start: bool, limit: int | None, dead_letters: bool) -> None:
    """Print announcements (url-completed) as JSON lines, the oldest first.

    It works beside a running worker, and without one.
    """
    ensure_local(settings)
    if not from_start and not follow:
        raise Refusal("--from-now without --follow prints nothing: add --follow")
    listener = Listener(
        settings.data / "log", names.DEAD_LETTERS if dead_letters else names.URL_COMPLETED, from_start=from_start
    )
    with told_by_signals() as stop, TemporaryDirectory(prefix="spiderduck-") as scratch:
        for line in islice(listener.lines(Path(scratch), stop, follow=follow), limit):
            sys.stdout.buffer.write(line)
            if follow:
                sys.stdout.buffer.flush()


@contextmanager
def told_by_signals() -> Iterator[threading.Event]:
    """Return an event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Listener:
    """Reads one topic of a log that another process may be writing: each record once, in order per partition.

    `from_start`: begin with the oldest record kept; otherwise with the first that is written from now on.
    """

    def __init__(self, log: Path, topic: str, *, from_start: bool) -> None:
        self._log = log
        self._topic = topic
        self._from_start = from_start
        self._positions: dict[Partition, int] = {}
        self._reader: LogReader | None = None

    def lines(self, scratch: Path, stop: threading.Event, *, follow: bool) -> Iterator[bytes]:
        """Return a line for each record there is; with `follow`, for each that comes until `stop`.

        Raises Refusal when there is no log to read, and `follow` does not make it wait for one.
        """
        while not stop.is_set():
            try:
                self._look(scratch)
            except Refusal:
                if not follow:
                    raise
                self._close()  # the log is not there yet, or is another one now
            for record in self._merged():
                yield record.value + b"\n"
                if stop.is_set():
                    break
            if not follow:
                break
            stop.wait(_LOOK_S)
        self._close()

    def _look(self, scratch: Path) -> None:
        if self._reader is None:
            self._reader = LogReader(self._log, scratch)
            self._stand(self._reader)
        else:
            self._reader.refresh()

    def _stand(self, reader: LogReader) -> None:
        """Keep standing where we stood, unless the log has been made anew."""
        for where in self._partitions(reader):
            end = reader.end(where)
            if where not in self._positions:
                self._positions[where] = 0 if self._from_start else end
            elif self._positions[where] > end:
                self._positions[where] = 0
        self._from_start = True  # a partition that appears later is new from its first record on

    def _partitions(self, reader: LogReader) -> list[Partition]:
        return [Partition(self._topic, number) for number in range(reader.partitions(self._topic) or 0)]

    def _merged(self) -> Iterator[Record]:
        """Merge the partitions by the time of their records."""
        if self._reader is None:
            return
        streams = [self._records(self._reader, where) for where in self._partitions(self._reader)]
        yield from heapq.merge(*streams, key=attrgetter("timestamp"))

    def _records(self, reader: LogReader, where: Partition) -> Iterator[Record]:
        position = self._positions.get(where, 0)
        while records := reader.read(where, position, records_max=_READ_RECORDS, bytes_max=_READ_BYTES):
            for record in records:
                # Noted before it is handed on: a merge looks one record ahead, and that one is never lost, because
                # the merge is read to its end unless nothing is read after it.
                self._positions[where] = position = record.offset + 1
                yield record

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
