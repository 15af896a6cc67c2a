"""The spool: a folder of segments that are not in the content store yet.

    20261121T184500123-w-00001.warc.gz         sealed: whole, waits to be put
    20261121T184510456-w-00002.warc.gz.open    being written; its tail may be torn when its writer was killed

One process owns a spool (a lock says so), because what is found open when it starts was left by the dead. A
segment is named in the content store `3f/<file name>`: the first letters are a hash of the rest, so that the
segments of one minute do not all land in the same part of an object store's index.
"""

import fcntl
import hashlib
import os
from io import BufferedReader
from pathlib import Path
from typing import Final, Self

from isal import isal_zlib

from agents.clients.errors import StoreUnavailable

OPEN: Final = ".open"

_GZIP: Final = 31  # window bits: gzip header and trailer, CRC checked
_READ_BYTES: Final = 65_536
_INFLATED_BYTES: Final = 1_048_576


def segment_name(file_name: str) -> str:
    """Name of a segment in the content store, from its name in the spool."""
    return f"{hashlib.sha1(file_name.encode(), usedforsecurity=False).hexdigest()[:2]}/{file_name}"


class Spool:
    """A spool folder that this process owns until `close`."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Own a folder, and seal what was left open in it.

        Raises:
            StoreUnavailable: it cannot be written, or another process owns it.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreUnavailable(f"spool {folder}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in sorted(folder.glob("*" + OPEN)):
                _mend(left)
        except OSError as error:
            os.close(lock)
            reason = "another process owns it" if isinstance(error, BlockingIOError) else str(error)
            raise StoreUnavailable(f"spool {folder}: {reason}") from error
        return cls(folder, lock)

    def sealed(self) -> list[str]:
        """File names of the segments that wait to be put, oldest first."""
        return sorted(path.name for path in self.folder.glob("*.warc.gz"))

    def path(self, file_name: str) -> Path:
        """Where a sealed segment is."""
        return self.folder / file_name

    def open_path(self, file_name: str) -> Path:
        """Where a segment is while it is written."""
        return self.folder / (file_name + OPEN)

    def close(self) -> None:
        """Leave the folder to another owner."""
        os.close(self._lock)


def read_spooled(folder: Path, segment: str, offset: int, length: int) -> bytes | None:
    """Read bytes of a segment that may still be in a spool; None when it is not there, or not that long."""
    file_name = segment.rpartition("/")[2]
    for path in (folder / (file_name + OPEN), folder / file_name):
        try:
            with path.open("rb") as file:
                file.seek(offset)
                found = file.read(length)
        except FileNotFoundError:
            continue
        if len(found) == length:
            return found
    return None


def whole_members_bytes(path: Path) -> int:
    """Length of the whole gzip members that a file begins with; what follows was torn by a crash."""
    end = 0
    with path.open("rb") as file:
        while length := _member_bytes(file, end):
            end += length
    return end


def _mend(left: Path) -> None:
    """Cut the torn tail of a segment and seal it; remove it when nothing is left."""
    whole = whole_members_bytes(left)
    if whole:
        os.truncate(left, whole)
        left.replace(left.with_name(left.name.removesuffix(OPEN)))
    else:
        left.unlink()


def _member_bytes(file: BufferedReader, start: int) -> int:
    """Length of the gzip member at `start`, zero when it is not whole. Its CRC is checked."""
    file.seek(start)
    stream, read = isal_zlib.decompressobj(_GZIP), 0
    try:
        while not stream.eof:
            part = stream.unconsumed_tail or file.read(_READ_BYTES)
            if not part:
                return 0
            read += 0 if stream.unconsumed_tail else len(part)
            stream.decompress(part, _INFLATED_BYTES)
    except isal_zlib.IsalError:  # type: ignore[misc]  # typed as an instance
        return 0
    return read - len(stream.unused_data)
