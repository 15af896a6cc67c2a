"""The messages in a file or on standard input, one by one, whatever the form: lines or one document, in gzip or not.

`Messages` is the form without the reading: bytes go in as they come, messages come out, and where the bytes were cut
makes no difference. `messages` is the reading. What breaks off is a `Line` with a fault, never an exception: what was
read before it still counts. The forms are those archives of tweets come in: JSON lines (https://jsonlines.org), also
in files called `.json`; arrays, on one line or indented; one object, indented; gzip of several members (RFC 1952).
"""

import asyncio
import os
import select
import stat
import zlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import IO, Final

import msgspec

from topology.errors import Refusal

STDIN: Final = "-"
LINE_BYTES_MAX: Final = (16 << 20) + 1  # one more than a message may have: cut here, refused there
DOCUMENT_BYTES_MAX: Final = 256 << 20  # an array is read whole
INFLATED_BYTES_MAX: Final = 1 << 20  # taken out of a gzip stream at a time

_STDIN_FD: Final = 0
_CHUNK_BYTES: Final = 64 << 10
_LOOK_S: Final = 0.1  # how soon a thread that waits for a pipe notices that it should stop
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 31  # window bits: gzip header and trailer, CRC checked
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

Stopping = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Line:
    """One message and where it stood: the number of its line, or of its element in an array, from 1.

    `fault` says why nothing can be read from here on; then there is no message.
    """

    source: str
    number: int
    raw: bytes
    fault: str | None = None


def check(sources: Iterable[str]) -> None:
    """Raise Refusal when one of these files cannot be read: before anything has begun for the others."""
    for source in sources:
        if source == STDIN:
            continue
        try:
            if is_file(source):  # opening a pipe would disturb its writer
                Path(source).open("rb").close()
            elif Path(source).is_dir():
                raise Refusal(f"{source} cannot be read: it is a directory; name the files in it, as in {source}/*")
        except OSError as error:
            raise Refusal(f"{source} cannot be read: {error.strerror}") from error


def is_file(source: str) -> bool:
    """Whether a source is a regular file: one that can be read again from any line. Raises OSError when missing."""
    return source != STDIN and stat.S_ISREG(Path(source).stat().st_mode)


async def messages(source: str, stopping: Stopping) -> AsyncGenerator[Line, None]:
    """Read the messages of a file, a pipe or standard input, until the end or until `stopping`.

    A file is read on the spot, in small chunks. A pipe may be slow: a thread waits for it, and looks up now and then.
    """
    form = Messages(source)
    try:
        with _opened(source) as stream:
            fd = stream.fileno()
            waits = not stat.S_ISREG(os.fstat(fd).st_mode)
            while chunk := await asyncio.to_thread(_wait_for, fd, stopping) if waits else os.read(fd, _CHUNK_BYTES):
                for line in form.feed(chunk):
                    yield line
        if not stopping():
            for line in form.end():
                yield line
    except OSError as error:
        yield form.broken(str(error.strerror))


def _opened(source: str) -> IO[bytes]:
    if source == STDIN:
        return os.fdopen(_STDIN_FD, "rb", buffering=0, closefd=False)
    return Path(source).open("rb", buffering=0)


def _wait_for(fd: int, stopping: Stopping) -> bytes:
    """Read what a pipe has next; nothing at its end, and when stopping. A blocked read could not be interrupted."""
    while not stopping():
        if select.select([fd], [], [], _LOOK_S)[0]:
            return os.read(fd, _CHUNK_BYTES)
    return b""


class _Form(Enum):
    UNKNOWN = auto()
    LINES = auto()
    DOCUMENT = auto()  # an array; or an object on several lines, unless it turns out not to be


class Messages:
    """Takes the bytes of one source as they come, and hands out its messages.

    The first byte that is not blank decides: `[` begins an array, which is read whole. Anything else is lines, unless
    the first of them is a `{...` that is no JSON by itself: then it may be an object on several lines.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._number = 0
        self._inflater = _Inflater()
        self._form = _Form.UNKNOWN
        self._held = bytearray()  # the line that has not ended; all there is, while it is not known to be lines
        self._is_broken = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Take the next bytes, and return the messages they complete."""
        try:
            for plain in self._inflater.feed(chunk):
                if not self._is_broken:
                    yield from self._take(plain)
        except zlib.error as error:
            yield self.broken(f"it is not gzip to its end: {error}")

    def end(self) -> Iterator[Line]:
        """Return what is left when there are no more bytes."""
        for plain in self._inflater.end():
            yield from self._take(plain)
        if self._is_broken:
            return
        if self._inflater.is_torn:
            yield self.broken("the gzip stream breaks off")
        elif self._form is _Form.DOCUMENT:
            yield from self._document(bytes(self._held))
        else:
            yield from self._as_lines(ended=True)

    def broken(self, fault: str) -> Line:
        """Say that nothing can be read from here on."""
        self._is_broken = True
        return Line(self._source, self._number + 1, b"", fault)

    def _take(self, plain: bytes) -> Iterator[Line]:
        if self._form is _Form.LINES:
            yield from self._split(plain)
            return
        self._held += plain
        if self._form is _Form.UNKNOWN:
            self._form = _form_of(bytes(self._held))
        if self._form is _Form.LINES:
            yield from self._as_lines()
        elif len(self._held) > DOCUMENT_BYTES_MAX:
            self._held = bytearray()
            yield self.broken(
                f"it is one JSON document of more than {DOCUMENT_BYTES_MAX >> 20} MiB: "
                "make it lines first, as `jq -c '.[]'` does"
            )

    def _as_lines(self, *, ended: bool = False) -> Iterator[Line]:
        self._form = _Form.LINES
        held, self._held = bytes(self._held), bytearray()
        yield from self._split(held)
        if ended and self._held:
            yield from self._line(bytes(self._held))

    def _split(self, plain: bytes) -> Iterator[Line]:
        *ended, rest = plain.split(b"\n")
        for line in ended:
            yield from self._line(bytes(self._held) + line if self._held else line)
            self._held.clear()
        self._held += rest[: max(0, LINE_BYTES_MAX - len(self._held))]

    def _line(self, raw: bytes) -> Iterator[Line]:
        self._number += 1
        if raw.strip():
            yield Line(self._source, self._number, raw[:LINE_BYTES_MAX].rstrip(b"\r"))

    def _document(self, raw: bytes) -> Iterator[Line]:
        text = raw.removeprefix(_BYTE_ORDER_MARK).strip()
        is_array = text.startswith(b"[")
        try:
            found = msgspec.json.decode(text if is_array else b"[" + text + b"]", type=list[msgspec.Raw])
        except msgspec.DecodeError as error:
            if is_array and not _is_json(text.partition(b"\n")[0]):
                yield self.broken(f"it begins as a JSON array, and is none: {error}")
                return
            yield from self._as_lines(ended=True)  # a broken line is not an object on several
            return
        for number, element in enumerate(found, 1):
            yield Line(self._source, number, bytes(element))


def _form_of(begun: bytes) -> _Form:
    """Tell the form by what has been read so far."""
    text = begun.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if not text or _BYTE_ORDER_MARK.startswith(text):
        return _Form.UNKNOWN
    if text.startswith(b"["):
        return _Form.DOCUMENT
    line, newline, rest = text.partition(b"\n")
    if not text.startswith(b"{") or len(line) > LINE_BYTES_MAX:
        return _Form.LINES
    if not newline:
        return _Form.UNKNOWN
    if _is_json(line):
        return _Form.LINES
    second = rest.lstrip()  # of an object on several lines, it begins a member or ends the object
    return _Form.UNKNOWN if not second else _Form.LINES if second.startswith(b"{") else _Form.DOCUMENT


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


class _Inflater:
    """Takes gzip apart as it comes, so much at a time; hands on what is not gzip. Its first two bytes tell."""

    def __init__(self) -> None:
        self._begun = b""  # until there are two bytes
        self._is_gzip: bool | None = None
        self._member = zlib.decompressobj(_GZIP)
        self._has_read = False  # any of the present member

    @property
    def is_torn(self) -> bool:
        """Whether a member has begun and not ended."""
        return self._has_read and not self._member.eof

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Return the plain bytes of a chunk. Raises zlib.error."""
        if self._is_gzip is None:
            chunk = self._begun + chunk
            if len(chunk) < len(_GZIP_MAGIC):
                self._begun = chunk
                return
            self._begun, self._is_gzip = b"", chunk.startswith(_GZIP_MAGIC)
        if not self._is_gzip:
            yield chunk
            return
        plain = b""
        while chunk or len(plain) == INFLATED_BYTES_MAX:
            if self._member.eof:
                chunk = chunk.lstrip(b"\0")  # padding, as tar and tapes leave it
                if not chunk:
                    break
                self._member = zlib.decompressobj(_GZIP)
            self._has_read = True
            plain = self._member.decompress(chunk, INFLATED_BYTES_MAX)
            yield plain
            chunk = self._member.unconsumed_tail or self._member.unused_data

    def end(self) -> Iterator[bytes]:
        """Return what was held back because it was too short to tell."""
        if self._begun:
            yield self._begun
