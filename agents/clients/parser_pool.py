"""Parsing in processes of its own, with a time limit: a page that hangs or kills the parser costs that page only.

Theory of operation. Every process reads jobs from a pipe and answers in order, so the job it is on is always the
oldest unanswered one. A few jobs are sent ahead (`_AHEAD`): the process never waits for us, and its answers come
back several at a time. When the oldest job takes too long, or the process dies, that job is the culprit: it ends as
broken, the process is replaced, and the jobs behind it are given to the new one.

Why not a pool from a library: `concurrent.futures` cannot kill one job (and a dead worker breaks the pool), and
those that can pay a pickle and two thread hand-overs per job, 0.18 ms where this takes 0.05.
"""

import asyncio
import contextlib
import logging
from asyncio import Future, StreamReader
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

from agents.clients.children import read_message, spawn
from agents.clients.framing import framed
from agents.clients.parser_process import Job, Result
from topology.errors import Refusal

log = logging.getLogger(__name__)

_AHEAD: Final = 8  # as few as keep a process busy while the event loop has other work
_RESPAWN_S: Final = 0.5  # between two tries to start a process that does not start
_MODULE: Final = "agents.clients.parser_process"

Pending = tuple[Job, "Future[Result]"]

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Result).decode


class ParserPool:
    """So many processes, each killed when one page takes longer than `parse_s_max`.

    `module` is what the processes run: tests give one that hangs or dies on demand.
    """

    def __init__(
        self, *, processes: int, parse_s_max: float, site_rules: Mapping[str, Any], module: str = _MODULE
    ) -> None:
        self._count = processes
        self._parse_s_max = parse_s_max
        self._rules = msgspec.json.encode(site_rules)
        self._module = module
        self._queue: deque[Pending] = deque()
        self._parsers: list[_Parser] = []
        self.killed = 0

    async def __aenter__(self) -> Self:
        """Start the processes; they are ready when this returns. Raises Refusal when site rules are wrong."""
        self._parsers = [_Parser(self, self._module, self._rules, self._parse_s_max) for _ in range(self._count)]
        started = await asyncio.gather(*(parser.start() for parser in self._parsers), return_exceptions=True)
        failures = [failure for failure in started if failure is not None]
        if failures:
            await self.stop()
            raise failures[0]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the processes."""
        await self.stop()

    async def stop(self) -> None:
        """Stop the processes; jobs without an answer are cancelled."""
        await asyncio.gather(*(parser.stop() for parser in self._parsers))
        for _, answer in self._queue:
            answer.cancel()

    async def parse(self, job: Job) -> Result:
        """Read one body; wait for a process if all are busy."""
        answer: Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.append((job, answer))
        self.feed()
        return await answer

    @property
    def pids(self) -> list[int]:
        """The processes, for those who measure them."""
        return [parser.pid for parser in self._parsers]

    def feed(self) -> None:
        """Give waiting jobs to the processes that have the fewest."""
        while self._queue:
            parser = min(self._parsers, key=lambda one: one.load)
            if parser.load >= _AHEAD:
                return
            parser.send(*self._queue.popleft())

    def give_back(self, jobs: "deque[Pending]") -> None:
        """Take back jobs a dead process did not come to, ahead of those that came later."""
        self._queue.extendleft(reversed(jobs))


class _Parser:
    """One process and the jobs it has."""

    def __init__(self, pool: ParserPool, module: str, rules: bytes, parse_s_max: float) -> None:
        self._pool = pool
        self._module = module
        self._rules = rules
        self._parse_s_max = parse_s_max
        self._jobs: deque[Pending] = deque()
        self._process: Process | None = None
        self._life: asyncio.Task[None] | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._alive = False
        self._too_slow: Pending | None = None

    @property
    def load(self) -> int:
        """How many jobs it has; as many as it can when it is not running."""
        return len(self._jobs) if self._alive else _AHEAD

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid if self._process else 0

    async def start(self) -> None:
        """Start the process, wait until it can work, and start it again whenever it dies."""
        answers = await self._spawn()
        try:
            ready = await _read(answers)
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
            raise Refusal("the processes that parse do not start: their error stands above") from None
        if ready.error is not None:
            raise Refusal(ready.error)
        self._life = asyncio.create_task(self._live(answers))

    async def stop(self) -> None:
        """Kill the process and forget its jobs."""
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        await self._bury()
        for _, answer in self._jobs:
            answer.cancel()

    def send(self, job: Job, answer: "Future[Result]") -> None:
        """Hand a job over."""
        self._jobs.append((job, answer))
        self._writer.write(framed(_encode(job)))
        if len(self._jobs) == 1:
            self._start_clock()

    async def _spawn(self) -> StreamReader:
        self._process, answers, self._writer = await spawn(self._module)
        self._writer.write(framed(self._rules))
        self._too_slow = None
        return answers

    async def _live(self, answers: StreamReader) -> None:
        while True:
            self._alive = True
            self._pool.feed()
            # An answer that cannot be read is as good as none: the job it was for is the culprit.
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
                await self._listen(answers)
            self._alive = False
            await self._bury()
            self._blame()
            answers = await self._respawn()

    async def _respawn(self) -> StreamReader:
        """Start another process; while none starts (no memory), jobs wait, and no page is blamed for it."""
        while True:
            with contextlib.suppress(asyncio.IncompleteReadError, OSError, msgspec.DecodeError):
                answers = await self._spawn()
                await _read(answers)
                return answers
            log.error("a process that parses does not start; it is tried again every %g s", _RESPAWN_S)
            await self._bury()
            await asyncio.sleep(_RESPAWN_S)

    async def _listen(self, answers: StreamReader) -> None:
        while True:
            result = await _read(answers)
            _, answer = self._jobs.popleft()
            if not answer.done():
                answer.set_result(result)
            self._start_clock()
            self._pool.feed()

    def _start_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        if self._jobs:
            self._clock = asyncio.get_running_loop().call_later(self._parse_s_max, self._kill)

    def _kill(self) -> None:
        self._too_slow = self._jobs[0] if self._jobs else None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def _blame(self) -> None:
        """The oldest job did it; those behind it are innocent."""
        if self._clock is not None:
            self._clock.cancel()
        answered_after_all = self._too_slow is not None and self._too_slow not in self._jobs
        if self._jobs and not answered_after_all:
            job, answer = self._jobs.popleft()
            self._pool.killed += 1
            why = f"it took longer than {self._parse_s_max:g} s to parse" if self._too_slow else "the parser died on it"
            log.warning("%s: %s", job.url, why)
            if not answer.done():
                answer.set_result(Result(error=why))
        jobs, self._jobs = self._jobs, deque()
        self._pool.give_back(jobs)

    async def _bury(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


async def _read(answers: StreamReader) -> Result:
    return _decode(await read_message(answers))
