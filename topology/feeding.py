"""Tweets from files and standard input into the log, each once, resumable.

How far a file has been read is noted in the same write as the tweets themselves, so after a kill the same command
goes on with exactly the next line. Lines are fed only as fast as the stages take them: the log stays short, and
memory with it.
"""

import asyncio
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import msgspec

from topology import names
from topology.errors import Refusal
from topology.service import undelivered
from topology.wiring import Worker

STDIN: Final = "-"
_LOOK_EVERY: Final = 8  # messages between two looks at the backlog
_UNDELIVERED_MAX: Final = 600  # messages the stages have not taken yet
_PAUSE_S: Final = 0.005
_GZIP_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Line:
    """One message and where it stood."""

    source: str
    number: int
    raw: bytes


def lines_of(source: str) -> Iterator[Line]:
    """Read the messages of a file or of standard input: lines, or the elements of one JSON document.

    Gzip is told by its first bytes, not by a name. Raises Refusal when the file cannot be read.
    """
    try:
        with _opened(source) as stream:
            whole = source.removesuffix(".gz").endswith(".json")
            yield from _elements(source, stream.read()) if whole else _lines(source, stream)
    except (OSError, EOFError, zlib.error) as error:
        raise Refusal(f"{source} cannot be read: {error}") from error


@contextmanager
def _opened(source: str) -> Iterator[IO[bytes]]:
    if source == STDIN:
        yield sys.stdin.buffer
        return
    with Path(source).open("rb") as plain:
        zipped = plain.read(2) == _GZIP_MAGIC
        plain.seek(0)
        if zipped:
            with gzip.open(plain) as unzipped:
                yield io.BufferedReader(unzipped)
        else:
            yield plain


def _lines(source: str, stream: IO[bytes]) -> Iterator[Line]:
    for number, raw in enumerate(stream, 1):
        if raw.strip():
            yield Line(source, number, raw.rstrip(b"\r\n"))


def _elements(source: str, raw: bytes) -> Iterator[Line]:
    """A .json file is one document: an array of messages, or one message; or lines after all."""
    try:
        elements = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        elements = None
    if elements is not None:
        for number, element in enumerate(elements, 1):
            yield Line(source, number, bytes(element))
        return
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        yield from _lines(source, io.BytesIO(raw))
    else:
        yield Line(source, 1, raw)


class Feed:
    """Puts the lines of some sources into `tweets`, from where an earlier run of the same command stopped."""

    def __init__(self, worker: Worker, sources: tuple[str, ...]) -> None:
        self._worker = worker
        self._sources = sources
        self.fed = 0
        self.resumed = 0

    async def run(self, stopping: Callable[[], bool]) -> None:
        """Feed everything, or until `stopping`."""
        for source in self._sources:
            note = note_of(source)
            done = self._done(note)
            self.resumed += done
            lines = lines_of(source)
            while (line := await _next(lines, source)) is not None and not stopping():
                if line.number > done:
                    await self._put(line, note)

    def forget(self) -> None:
        """Forget how far the sources were read: everything in them has been announced."""
        log = self._worker.app.transport.log
        for source in self._sources:
            if note := note_of(source):
                log.note(note, None)
        log.flush()

    def _done(self, note: str | None) -> int:
        raw = self._worker.app.transport.log.noted(note) if note else None
        return int(raw) if raw else 0

    async def _put(self, line: Line, note: str | None) -> None:
        key = f"{names.LINE_KEY_PREFIX}{line.source}:{line.number}"
        await self._worker.outlets[names.TWEETS].raw(key, line.raw)
        if note:
            self._worker.app.transport.log.note(note, b"%d" % line.number)
        self.fed += 1
        if self.fed % _LOOK_EVERY == 0:
            await asyncio.sleep(0)
            while (
                undelivered(self._worker, (names.TWEETS, names.URL_REQUESTS, names.FETCH_REQUESTS)) > _UNDELIVERED_MAX
            ):
                await asyncio.sleep(_PAUSE_S)


def note_of(source: str) -> str | None:
    """Name a file as it is now: path, size and time of change. Standard input has no name, and cannot be resumed."""
    if source == STDIN:
        return None
    path = Path(source).resolve()
    stat = path.stat()
    identity = f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}"
    return "feed/" + hashlib.sha256(identity.encode()).hexdigest()[:32]


async def _next(lines: Iterator[Line], source: str) -> Line | None:
    """Read the next line; standard input may be slow, so it is read in a thread."""
    if source == STDIN:
        return await asyncio.to_thread(next, lines, None)
    return next(lines, None)
