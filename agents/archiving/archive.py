"""The archive: pages in, placements out once they are safe.

When is a page safe, so that its message may be acknowledged? A segment takes seconds under load and minutes
without to be worth an object. Holding the messages of a whole segment would keep the log from being trimmed,
bound the throughput by the messages in flight, and fetch minutes of pages out of the log again after a crash.
So there are two answers, and the deployment knows which is true:

- `SPOOLED`, when the spool is on a disk that outlives the process (local mode; a volume): safe when the
  operating system has the bytes. A killed process loses nothing: what it left open is cut to its last whole
  record and put by the next start. A power cut may lose the last seconds.
- `PUT`, when the spool dies with the worker: safe when the segment is in the content store. Then segments must
  be small or young (10 s), and the stage must allow as many pages in flight as it wants in one segment.

`add` is the same for both: it returns the placements when they are safe. One thread composes, writes and
seals; another puts sealed segments, strictly in order, so that a revisit never becomes safe before its
original. A page whose body is archived already is recorded as a revisit, and its placement is that of the
original's response record: one range read returns a page, always.

Measured, CPU for the response and request records of a page of 83 kB (20 kB compressed):

    composed around the compressed body     68 us, and 105 us with writing, in `add` by batches of 64
    inflated and compressed again           340 us (isal, level 1)
    warcio's WARCWriter, from the page      3,370 us (zlib, level 9, is what it offers)
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self, TypeVar

from agents.archiving.records import Original, request, response, revisit, warc_date
from agents.archiving.segments import SegmentWriter
from agents.archiving.spool import Spool, segment_name
from agents.clients.content import ContentStore, NotStored
from agents.clients.errors import StoreUnavailable
from topology.records import Page, Placed

T = TypeVar("T")


class SafeWhen(StrEnum):
    """What makes a page safe."""

    SPOOLED = "spooled"  # the operating system has it, on a disk that outlives the process
    PUT = "put"  # its segment is in the content store


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """What the archive may use."""

    writer: str  # part of segment names; unique to each start of a process
    safe_when: SafeWhen = SafeWhen.SPOOLED
    segment_bytes_max: int = 67_108_864
    segment_age_s_max: float = 600.0
    sealed_segments_max: int = 16  # waiting to be put; then nothing more is taken
    originals_max: int = 10_000  # bodies remembered, to tell a revisit; 0 writes no revisits
    info: Mapping[str, str] = field(default_factory=dict)  # warcinfo fields, such as software and operator


class Archive:
    """Writes pages into segments and puts the segments. Made by `open`; call `tick` every second or so."""

    def __init__(self, content: ContentStore, spool: Spool, settings: ArchiveSettings) -> None:
        self._content, self._spool, self._settings = content, spool, settings
        self._sealed = deque(spool.sealed())
        self._not_put: set[str] = set()  # segments of this process that are open or sealed
        self._segments = SegmentWriter(
            spool,
            writer=settings.writer,
            bytes_max=settings.segment_bytes_max,
            age_s_max=settings.segment_age_s_max,
            info=settings.info,
            sealed=self._sealed.append,
        )
        self._originals = _Originals(settings.originals_max)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self._put = asyncio.Condition()
        self._putting: asyncio.Task[None] | None = None
        self._closed = False
        self.trouble: str | None = None  # why the oldest sealed segment is not put

    @classmethod
    async def open(cls, content: ContentStore, spool: Path, settings: ArchiveSettings) -> Self:
        """Own the spool folder, mend what a killed process left there, and begin to put it.

        Raises:
            StoreUnavailable: the spool cannot be written or another process owns it.
        """
        archive = cls(content, await asyncio.to_thread(Spool.open, spool), settings)
        archive._begin_putting()
        return archive

    async def add(self, pages: Sequence[Page], now_s: float) -> list[Placed]:
        """Archive pages; where each of them is, when all of them are safe.

        Raises:
            StoreUnavailable: the spool cannot be written, or too many segments wait to be put. None of the
                pages counts as archived, though some may be; they may be given again.
        """
        if len(self._sealed) >= self._settings.sealed_segments_max:
            raise StoreUnavailable(f"{len(self._sealed)} segments wait to be put: {self.trouble}")
        placed, last = await self._do(lambda: self._append(pages, now_s))
        self._begin_putting()
        if last and self._settings.safe_when is SafeWhen.PUT:
            await self._until_put(last)
        return placed

    async def tick(self, now_s: float) -> None:
        """Seal a segment that is old though nothing comes any more, and try again to put what waits."""
        await self._do(lambda: self._segments.roll(now_s))
        self._begin_putting()

    async def close(self) -> None:
        """Seal and put what there is. What cannot be put stays in the spool for the next start."""
        if self._closed:
            return
        try:
            await self._do(self._segments.seal)
            self._begin_putting()
            if self._putting:
                await self._putting
        finally:
            self._closed = True
            async with self._put:
                self._put.notify_all()
            self._thread.shutdown()
            self._spool.close()

    @property
    def waiting(self) -> int:
        """How many sealed segments wait to be put."""
        return len(self._sealed)

    async def _do(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreUnavailable("the archive is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except OSError as error:
            raise StoreUnavailable(f"spool {self._spool.folder}: {error}") from error

    def _append(self, pages: Sequence[Page], now_s: float) -> tuple[list[Placed], str | None]:
        """Write pages; their placements and the segment that the last of them is in."""
        placed = [self._place(page, now_s) for page in pages]
        last = self._segments.current
        if last:
            self._not_put.add(last)  # before it can be sealed, so nobody ever finds it missing too early
        self._segments.roll(now_s)
        return placed, last

    def _place(self, page: Page, now_s: float) -> Placed:
        if original := self._originals.find(page):
            self._segments.append(revisit(page, original) + request(page), now_s)
            return original.placed
        member = response(page)
        segment, offset = self._segments.append(member + request(page), now_s)
        placed = Placed(segment, offset, len(member))
        self._originals.keep(page, placed)
        return placed

    def _begin_putting(self) -> None:
        """Have one task, and no more than one, put what is sealed."""
        if self._putting and self._putting.done():
            self._putting.result()  # an error that is not the store's is a fault of ours: let it be seen
            self._putting = None
        if self._sealed and not self._putting:
            self._putting = asyncio.create_task(self._put_sealed())

    async def _put_sealed(self) -> None:
        """Put sealed segments, oldest first, until there are none or the store does not take one."""
        while self._sealed:
            file_name = self._sealed[0]
            try:
                await self._put_one(file_name)
            except (StoreUnavailable, NotStored) as error:
                self.trouble = str(error)
                return
            self.trouble = None
            self._sealed.popleft()
            self._not_put.discard(file_name)
            async with self._put:
                self._put.notify_all()

    async def _put_one(self, file_name: str) -> None:
        name, path = segment_name(file_name), self._spool.path(file_name)
        if await asyncio.to_thread(path.exists):
            await self._content.put_file(name, path)
        else:
            await self._content.size(name)  # it was put, and the answer got lost

    async def _until_put(self, file_name: str) -> None:
        async with self._put:
            await self._put.wait_for(lambda: self._closed or file_name not in self._not_put)
        if file_name in self._not_put:
            raise StoreUnavailable("the archive was closed before the segment was put")


class _Originals:
    """The latest bodies archived, by SHA-1: a bounded memory of this process, enough to tell most repeats."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._by_sha1: OrderedDict[bytes, Original] = OrderedDict()

    def find(self, page: Page) -> Original | None:
        """The record that has this page's body, if it is remembered. An empty body has nothing to save."""
        original = self._by_sha1.get(page.body_sha1) if page.http.body_bytes else None
        if original:
            self._by_sha1.move_to_end(page.body_sha1)
        return original

    def keep(self, page: Page, placed: Placed) -> None:
        """Remember a page's record, and forget the one not used for longest."""
        self._by_sha1[page.body_sha1] = Original(page.url, warc_date(page.visit.started_ms), placed)
        if len(self._by_sha1) > self._count_max:
            self._by_sha1.popitem(last=False)
