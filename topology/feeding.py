"""Tweets from files and standard input into the log, each once, resumable.

How far a file has been read is noted in the same write as the tweets themselves, so after a kill the same command
goes on with exactly the next line. Lines are fed only as fast as the stages take them: the log stays short, and
memory with it.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from topology import names
from topology.errors import Refusal
from topology.public import dead_letter
from topology.service import undelivered
from topology.sources import Line, is_file, messages
from topology.wiring import Worker

_LOOK_EVERY: Final = 8  # messages between two looks at the backlog
_AHEAD_OF: Final = (names.TWEETS, names.URL_REQUESTS, names.FETCH_REQUESTS)
_UNDELIVERED_MAX: Final = 600  # messages the stages have not taken yet
# Requests that wait for their domain's slot: in all lanes, and in the longest. One slow domain does not hold the
# others back: what is too far from its slot is deferred, and does not wait in its lane.
_WAITING_MAX: Final = 4_000
_WAITING_IN_ONE_LANE_MAX: Final = 1_000
_PAUSE_S: Final = 0.005
_LOOK_S: Final = 0.05  # between two looks at all lanes


class Feed:
    """Puts the messages of some sources into `tweets`, from where an earlier run of the same command stopped.

    A source named twice is read once. Raises Refusal when one is missing.
    """

    def __init__(self, worker: Worker, sources: tuple[str, ...]) -> None:
        self._worker = worker
        self._notes = {source: note_of(source) for source in dict.fromkeys(sources)}
        self._ended = False
        self.has_fed_all = False
        self.fed = 0
        self._longest, self._looked_s = 0, 0.0  # the longest lane, and when it was looked for
        self.resumed = 0

    async def run(self, stopping: Callable[[], bool]) -> None:
        """Feed everything, or until `stopping`."""
        try:
            for source, note in self._notes.items():
                await self._run(source, note, lambda: self._ended or stopping())
            self.has_fed_all = not stopping()
        finally:
            self._ended = True  # the thread that waits for a pipe hears it

    async def _run(self, source: str, note: str | None, stopping: Callable[[], bool]) -> None:
        done = self._done(note)
        self.resumed += done
        async with aclosing(messages(source, stopping)) as lines:
            async for line in lines:
                if stopping():
                    return
                if line.number > done:
                    await self._put(line, note)

    def forget(self) -> None:
        """Forget how far the sources were read: everything in them has been announced."""
        log = self._worker.app.transport.log
        for note in self._notes.values():
            if note:
                log.note(note, None)
        log.flush()

    def _done(self, note: str | None) -> int:
        raw = self._worker.app.transport.log.noted(note) if note else None
        return int(raw) if raw else 0

    async def _put(self, line: Line, note: str | None) -> None:
        place = f"{line.source}:{line.number}"
        if line.fault is not None:
            await self._worker.outlets[names.DEAD_LETTERS].raw(place, dead_letter(line.raw, line.fault, place))
            return  # not noted: it may be there when the command is given again
        # The key says where it stood; which partition it goes to does not matter, and hashing a path is not free.
        partition = line.number % self._worker.settings.partitions
        await self._worker.outlets[names.TWEETS].raw(f"{names.LINE_KEY_PREFIX}{place}", line.raw, partition)
        if note:
            self._worker.app.transport.log.note(note, b"%d" % line.number)
        self.fed += 1
        if self.fed % _LOOK_EVERY == 0:
            await asyncio.sleep(0)
            while self._is_far_ahead():  # noqa: ASYNC110 - the log has no event for "taken", and should not pay for one
                await asyncio.sleep(_PAUSE_S)

    def _is_far_ahead(self) -> bool:
        """Say whether the stages have enough to do: a file can wait, a request that is read may be rejected."""
        return undelivered(self._worker, _AHEAD_OF) > _UNDELIVERED_MAX or self._is_crowded()

    def _is_crowded(self) -> bool:
        lanes = self._worker.stages[names.FETCH].lanes
        if lanes.waiting <= _WAITING_IN_ONE_LANE_MAX:
            return False
        if time.monotonic() > self._looked_s + _LOOK_S:
            self._looked_s = time.monotonic()
            self._longest = len(lanes.busiest(1)[0].queue)
        return lanes.waiting > _WAITING_MAX or self._longest > _WAITING_IN_ONE_LANE_MAX


def note_of(source: str) -> str | None:
    """Name a file as it is now: path, size and time of change. A pipe has no such name, and cannot be resumed.

    Raises Refusal when the file is missing.
    """
    try:
        if not is_file(source):
            return None
        path = Path(source).resolve()
        stat = path.stat()
    except OSError as error:
        raise Refusal(f"{source} cannot be read: {error.strerror}") from error
    identity = f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}"
    return "feed/" + hashlib.sha256(identity.encode()).hexdigest()[:32]
