"""Which robots.txt holds for an origin now: what an answer means, how long it holds, and one fetch for all who wait.

A robots.txt that cannot be read means different things (RFC 9309 2.3.1): a site that says it has none allows
everything, a site that is down allows nothing until it is up. The book is memory only, bounded in entries and
bytes; who keeps the text elsewhere hands it in as an answer with the time of its fetch.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from agents.fetching.robots import parse
from agents.fetching.robots_rules import ALLOW_ALL, DISALLOW_ALL, Rules

INLINE_BYTES_MAX: Final = 32 * 1024
"""Files up to this size are parsed where they arrive (under 3 ms); longer ones in a thread, off the event loop."""

_ENTRY_FOOTPRINT_BYTES: Final = 600  # an entry without any rule


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What asking for /robots.txt came to, redirects followed (at most five, RFC 9309 2.3.1.2).

    `status` is None when no answer came, 310 or any other 3xx when there were too many redirects. `fetched_s` is
    when it was fetched, if that was not just now.
    """

    status: int | None
    body: bytes = b""
    fetched_s: float | None = None


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long an answer holds, in seconds. RFC 9309 2.4 asks not to use a copy for more than 24 hours."""

    success_s: float = 24 * 3600.0
    error_s: float = 300.0  # then it is asked again
    stale_s: float = 7 * 24 * 3600.0  # an old copy stands in for a site that is down, this long after its fetch


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds for an origin until `expires_s`. When `deferred`, nothing may be fetched now, but later perhaps."""

    rules: Rules
    fetched_s: float
    expires_s: float
    deferred: bool = False
    reason: str = ""  # a sentence, when it is not the file itself that speaks

    def allowed(self, url: str) -> bool:
        """Whether `url` may be fetched now."""
        return not self.deferred and self.rules.allowed(url)

    @property
    def crawl_delay_s(self) -> float | None:
        """Seconds between two requests the file asks for; None when it does not."""
        return self.rules.crawl_delay_s


def judge(answer: RobotsAnswer, agent: str, now_s: float, lifetimes: Lifetimes) -> Verdict:
    """What an answer means (RFC 9309 2.3.1).

    2xx: the file. 3xx and 4xx: "unavailable", everything is allowed; but 429 is a site asking for patience, not
    one without rules. 5xx and no answer: "unreachable", nothing is allowed for now.
    """
    status, fetched_s = answer.status, now_s if answer.fetched_s is None else answer.fetched_s
    until_s = fetched_s + lifetimes.success_s
    if status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        why = "did not answer" if status is None else f"answered {status}"
        reason = f"The server {why} when asked for its robots.txt."
        return Verdict(DISALLOW_ALL, fetched_s, fetched_s + lifetimes.error_s, deferred=True, reason=reason)
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return Verdict(parse(answer.body, agent), fetched_s, until_s)
    return Verdict(ALLOW_ALL, fetched_s, until_s, reason=f"There is no robots.txt (status {status}).")


class RobotsBook:
    """The verdicts of the origins asked lately, and the fetches under way.

    `clock` gives seconds since the epoch. The least recently used entries are forgotten when there are more than
    `entries_max` or they cost more than `bytes_max`.
    """

    def __init__(
        self,
        *,
        agent: str,
        clock: Callable[[], float],
        lifetimes: Lifetimes | None = None,
        entries_max: int = 50_000,
        bytes_max: int = 64 * 1024 * 1024,
    ) -> None:
        self._agent = agent
        self._clock = clock
        self._lifetimes = lifetimes or Lifetimes()
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._verdicts: OrderedDict[str, Verdict] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Verdict]] = {}
        self.footprint_bytes = 0

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        return f"<RobotsBook: {len(self)} origins, {self.footprint_bytes} bytes, {len(self._asking)} being asked>"

    def known(self, origin: str) -> Verdict | None:
        """The verdict that holds now, without asking anybody."""
        verdict = self._verdicts.get(origin)
        if verdict is None or verdict.expires_s <= self._clock():
            return None
        self._verdicts.move_to_end(origin)
        return verdict

    async def verdict_for(self, origin: str, fetch: Callable[[], Awaitable[RobotsAnswer]]) -> Verdict:
        """The verdict that holds now; `fetch` is awaited when there is none, once for all who wait meanwhile.

        Whoever stops waiting stops for itself alone. An exception of `fetch` reaches every waiter and is not
        remembered: the next to come asks again.
        """
        verdict = self.known(origin)
        if verdict is not None:
            return verdict
        task = self._asking.get(origin)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(origin, fetch))
            self._asking[origin] = task
            task.add_done_callback(_retrieved)
        # Cancelling one waiter must not cancel the fetch the others wait for.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Give up the fetches under way."""
        tasks = tuple(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, origin: str, fetch: Callable[[], Awaitable[RobotsAnswer]]) -> Verdict:
        """Fetch, judge and remember."""
        try:
            answer = await fetch()
            if len(answer.body) > INLINE_BYTES_MAX:
                verdict = await asyncio.to_thread(judge, answer, self._agent, self._clock(), self._lifetimes)
            else:
                verdict = judge(answer, self._agent, self._clock(), self._lifetimes)
            verdict = self._or_stale(origin, verdict)
            self._remember(origin, verdict)
            return verdict
        finally:
            del self._asking[origin]

    def _or_stale(self, origin: str, verdict: Verdict) -> Verdict:
        """The old copy instead, while a site is down (RFC 9309 2.3.1.4 lets a crawler use one)."""
        old = self._verdicts.get(origin)
        if not verdict.deferred or old is None or old.deferred:
            return verdict
        if verdict.fetched_s - old.fetched_s > self._lifetimes.stale_s:
            return verdict
        return replace(old, expires_s=verdict.expires_s, reason=f"{verdict.reason} Its last known rules hold.")

    def _remember(self, origin: str, verdict: Verdict) -> None:
        """Keep a verdict, and the book within its bounds."""
        old = self._verdicts.pop(origin, None)
        self.footprint_bytes += _footprint(verdict) - (_footprint(old) if old else 0)
        self._verdicts[origin] = verdict
        while len(self._verdicts) > self._entries_max or self.footprint_bytes > self._bytes_max:
            _, forgotten = self._verdicts.popitem(last=False)
            self.footprint_bytes -= _footprint(forgotten)


def _footprint(verdict: Verdict) -> int:
    """Roughly what a verdict costs in memory."""
    return _ENTRY_FOOTPRINT_BYTES + verdict.rules.footprint_bytes


def _retrieved(task: asyncio.Task[Verdict]) -> None:
    """Look at the exception, so that asyncio does not report it when every waiter has gone."""
    if not task.cancelled():
        task.exception()
