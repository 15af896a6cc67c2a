"""Segments: files of WARC records in the spool, opened, appended to, and sealed when full or old."""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from agents.archiving.records import warcinfo
from agents.archiving.spool import Spool, segment_name
from agents.clients.errors import StoreUnavailable

_WRITER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]*")


class SegmentWriter:
    """Appends members to one segment at a time. It blocks, and is for one thread.

    Every write says where it goes, at the end of what is known to be written. So a write that fails half-way
    (a full disk) leaves only a tail that the next write covers and `seal` cuts.

    `writer` is part of every name and must not be used by two processes that put to the same content store.
    `sealed` is told the file name of each segment that is complete.
    """

    def __init__(
        self,
        spool: Spool,
        *,
        writer: str,
        bytes_max: int,
        age_s_max: float,
        info: Mapping[str, str],
        sealed: Callable[[str], None],
    ) -> None:
        if not _WRITER.fullmatch(writer):
            raise ValueError(f"not the name of a writer: {writer!r}")
        self._spool, self._writer, self._info, self._sealed = spool, writer, info, sealed
        self._bytes_max, self._age_s_max = bytes_max, age_s_max
        self._serial = 0
        self._file, self._size, self._opened_s = -1, 0, 0.0
        self.current: str | None = None  # file name of the segment that is open

    def append(self, members: bytes, now_s: float) -> tuple[str, int]:
        """Write members to the operating system; give the segment's name in the store and their offset.

        Raises:
            StoreUnavailable: nothing of it counts as written.
        """
        try:
            self.roll(now_s)
            file_name = self.current or self._open(now_s)
            segment = segment_name(file_name)
            begin = b"" if self._size else warcinfo(segment, self._info, round(now_s * 1000))
            _write(self._file, begin + members, self._size)
        except OSError as error:
            raise StoreUnavailable(f"spool {self._spool.folder}: {error}") from error
        offset = self._size + len(begin)
        self._size = offset + len(members)
        return segment, offset

    def roll(self, now_s: float) -> None:
        """Seal the open segment if it is full or old."""
        if self._size >= self._bytes_max or now_s - self._opened_s >= self._age_s_max:
            self.seal()

    def seal(self) -> None:
        """Complete the open segment, if there is one. After an OSError it is still open."""
        if self.current is None:
            return
        os.ftruncate(self._file, self._size)
        self._spool.open_path(self.current).replace(self._spool.path(self.current))
        os.close(self._file)
        sealed, self.current, self._file, self._size = self.current, None, -1, 0
        self._sealed(sealed)

    def _open(self, now_s: float) -> str:
        self._serial += 1
        stamp = datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%S%f")[:-3]
        file_name = f"{stamp}-{self._writer}-{self._serial:05d}.warc.gz"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(self._spool.open_path(file_name), flags, 0o644)
        self.current, self._size, self._opened_s = file_name, 0, now_s
        return file_name


def _write(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written
