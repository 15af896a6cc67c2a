"""What stands in for time, the web, tables and topics, so that a test of one stage needs none of them.

`simulated(coroutine)` runs on a loop whose time jumps to the next timer when nothing else is left to do: an hour of
back-off takes a millisecond. `FakeClock` tells that time as seconds since the epoch.
"""

import asyncio
import selectors
from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from agents.clients.http import Ask, Reply, Trouble, TroubleKind
from topology.records import Wire, encode

EPOCH_S = 1_700_000_000.0
ADDRESS = "192.0.2.1"
NO_ROBOTS = 404
GENERATION = 1

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Waits for nobody but threads and sockets: when only timers are left, the time becomes the next one's."""

    now_s = 0.0
    threads = 0  # at work just now

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or self.threads:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self.now_s += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Jumping()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now_s

    def run_in_executor(self, executor: Any, function: Any, *arguments: Any) -> Any:
        self.selector.threads += 1
        done = super().run_in_executor(executor, function, *arguments)
        done.add_done_callback(self._back)
        return done

    def _back(self, _: Any) -> None:
        self.selector.threads -= 1


def simulated(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in simulated time. What it awaits forever stops the test with a `TimeoutError` after a year."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(asyncio.wait_for(work, 365 * 86_400))


class FakeClock:
    """Seconds since the epoch: as the simulated loop's timers have it, or as `advance` sets it."""

    def __init__(self, start_s: float = EPOCH_S) -> None:
        self._start_s = start_s

    def advance(self, seconds: float) -> None:
        self._start_s += seconds

    def __call__(self) -> float:
        try:
            return self._start_s + asyncio.get_running_loop().time()
        except RuntimeError:  # nothing runs: a test of a pure function
            return self._start_s


class Recorder:
    """An `Outlet` that collects what is sent to it. `refusing`: that many sends fail; `held`: none is safe yet."""

    def __init__(self, *, refusing: int = 0) -> None:
        self.sent: list[tuple[str | None, Any]] = []
        self.to: list[int] = []  # partitions of `to_partition`
        self.refusing = refusing
        self.held: list[Future[Any]] | None = None

    @property
    def records(self) -> list[Any]:
        """What was sent, without keys."""
        return [record for _, record in self.sent]

    @property
    def last(self) -> Any:
        """What was sent last."""
        return self.sent[-1][1]

    async def __call__(self, key: str | None, record: Wire) -> "Future[Any]":
        return self._take(key, record)

    async def raw(self, key: str | None, value: bytes) -> "Future[Any]":
        return self._take(key, value)

    async def to_partition(self, partition: int, record: Wire) -> "Future[Any]":
        self.to.append(partition)
        return self._take(None, record)

    def _take(self, key: str | None, record: Any) -> "Future[Any]":
        done: Future[Any] = asyncio.get_running_loop().create_future()
        if self.refusing:
            self.refusing -= 1
            done.set_exception(OSError("the log refuses"))
            return done
        self.sent.append((key, record))
        if self.held is None:
            done.set_result(None)
        else:
            self.held.append(done)
        return done


@dataclass
class Asked:
    """One request as the web saw it: when its gate was passed, and when it was sent."""

    url: str
    at_s: float
    ask: Ask


Script = Reply | Trouble | Exception | Callable[[], Awaitable[Reply | Trouble]]


class ScriptedWeb:
    """A `Web` that answers by a script: URL -> what comes back, one after the other, the last one for ever.

    What is not in the script is a 404. The politeness gate is awaited as the real one does.
    """

    def __init__(self, clock: Callable[[], float], script: dict[str, Script | list[Script]] | None = None) -> None:
        self._clock = clock
        self._script = {url: list(said) if isinstance(said, list) else [said] for url, said in (script or {}).items()}
        self.asked: list[Asked] = []
        self.took_s = 0.0  # every answer takes this long

    @property
    def urls(self) -> list[str]:
        """What was asked for, in order."""
        return [asked.url for asked in self.asked]

    async def get(self, ask: Ask) -> Reply | Trouble:
        if ask.before_send is not None:
            await ask.before_send()
        self.asked.append(Asked(ask.url, self._clock(), ask))
        await asyncio.sleep(self.took_s)
        answers = self._script.get(ask.url, [reply(NO_ROBOTS)])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Reply | Trouble):
            return answer
        return await answer()


def reply(
    status: int = 200, body: bytes = b"", *, headers: Iterable[tuple[str, str]] = (), truncated: bool = False
) -> Reply:
    """Make a reply as the web client gives it."""
    return Reply(status, "", tuple(headers), (), body, truncated, ADDRESS, 0.0, 0.0)


def redirect(location: str, status: int = 302) -> Reply:
    """Make a redirect."""
    return reply(status, headers=[("Location", location)])


def trouble(kind: TroubleKind, *, transient: bool) -> Trouble:
    """Make a trouble."""
    return Trouble(kind, f"there was {kind}", transient, ADDRESS)


class MemoryStore:
    """A `tables.store.Store` in memory: bytes by partition and key, in key order."""

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self.rows: dict[int, dict[bytes, bytes]] = {}
        self.writes = 0

    def get(self, partition: int, key: bytes) -> bytes | None:
        return self.rows.get(partition, {}).get(key)

    def put(self, partition: int, key: bytes, record: Wire) -> None:
        self.writes += 1
        self.rows.setdefault(partition, {})[key] = encode(record)

    def drop(self, partition: int, key: bytes) -> None:
        self.rows.get(partition, {}).pop(key, None)

    def scan(self, partition: int, start: bytes, entries_max: int) -> list[tuple[bytes, bytes]]:
        rows = sorted(self.rows.get(partition, {}).items())
        return [row for row in rows if row[0] >= start][:entries_max]

    def size(self, partition: int) -> int:
        return len(self.rows.get(partition, {}))


@dataclass
class Message:
    """What a handler looks at in a message."""

    value: bytes
    key: bytes | None = None
    topic: str = "topic"
    partition: int = 0
    offset: int = 0
    timestamp: float = EPOCH_S
    generation_id: int = GENERATION


@dataclass
class Event:
    """An event as an agent gets it. `acked` counts acknowledgements."""

    message: Message
    acked: int = 0

    @property
    def value(self) -> bytes:
        return self.message.value

    def ack(self) -> bool:
        self.acked += 1
        return True


def event(record: Wire | bytes, **message: Any) -> Event:
    """Make an event that carries a record."""
    return Event(Message(record if isinstance(record, bytes) else encode(record), **message))


class Stream:
    """A stream that never ends: `put` an event, and the agent gets it."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Event] = asyncio.Queue()
        self.channel = self
        self.app = self
        self.consumer_generation_id = GENERATION

    def put(self, *events: Event) -> None:
        for one in events:
            self.queue.put_nowait(one)
