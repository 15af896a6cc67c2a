"""robots.txt of an origin, from the nearest place that has it: memory, the `robots` table, the site itself.

The site is asked once however many wait (`robots_book`), at its domain's pace like any other request, and what it
says survives a restart. Redirects are followed within the registered domain, at most five (RFC 9309, 2.3.1.2). One
that leaves the domain counts as "no robots.txt here": the other domain's owner is elsewhere, and asking it from
here would be asking out of turn.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from agents.clients.http import Ask, Asks, Reply, Trouble
from agents.fetching.robots_book import Lifetimes, RobotsAnswer, RobotsBook, Verdict
from agents.fetching.verdict import REDIRECTS, header
from tables import robots
from tables.store import Store
from topology import names
from topology.events import Events
from topology.settings import Settings
from topology.urls import Address, join, parse

_REDIRECTS_MAX: Final = 5

MaySend = Callable[[], Awaitable[None]]
Pace = tuple[str, float] | None  # domain, seconds between its requests


class _LastingError(Exception):
    """Carries a trouble past the book to everybody who waits: it is no answer to remember."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.reason)
        self.trouble = trouble


class RobotsDesk:
    """Answers what a site's robots.txt says about a URL."""

    def __init__(
        self, settings: Settings, events: Events, clock: Callable[[], float], *, web: Asks, rows: Store
    ) -> None:
        self._settings = settings
        self._events = events
        self._clock = clock
        self._web = web
        self._rows = rows
        self._book = RobotsBook(
            agent=settings.robots_agent,
            clock=clock,
            lifetimes=Lifetimes(success_s=settings.robots_s, error_s=settings.robots_error_s),
        )

    async def rules(self, partition: int, url: str, may_send: MaySend, pace: Pace = None) -> Verdict | Trouble:
        """Return what holds for this URL's origin now; `may_send` is awaited before every request to it.

        A trouble that trying again does not mend (no such host, an unsafe address) is returned as it is: the page
        would meet it too.
        """
        address = parse(url)
        assert isinstance(address, Address)  # noqa: S101 - decide lets nothing else through

        async def fetch() -> RobotsAnswer:
            return self._from_table(partition, address.origin) or await self._from_site(
                partition, address, may_send, pace
            )

        try:
            return self._book.known(address.origin) or await self._book.verdict_for(address.origin, fetch)
        except _LastingError as error:
            return error.trouble

    def sweep(self, partition: int) -> None:
        """Forget what has expired."""
        now_s, start = self._clock(), b""
        while entries := self._rows.scan(partition, start, 500):
            for key, raw in entries:
                if robots.decode(raw).expires_s < now_s:
                    self._rows.drop(partition, key)
                    self._events.count("swept", names.ROBOTS)
            start = entries[-1][0] + b"\0"

    def _from_table(self, partition: int, origin: str) -> RobotsAnswer | None:
        raw = self._rows.get(partition, origin.encode())
        row = None if raw is None else robots.decode(raw)
        if row is None or row.expires_s <= self._clock():
            return None
        self._events.count("robots", "remembered")
        return RobotsAnswer(row.status, row.body, row.fetched_s)

    async def _from_site(self, partition: int, address: Address, may_send: MaySend, pace: Pace) -> RobotsAnswer:
        answer = await self._ask(address, may_send, pace)
        now_s = self._clock()
        reached = answer.status is not None and answer.status < 500 and answer.status != 429  # noqa: PLR2004 - as judged
        self._events.count("robots", "fetched" if reached else "unreachable")
        if reached and answer.status is not None:
            body = answer.body if answer.status < 300 else b""  # noqa: PLR2004 - only a success has rules
            row = robots.Row(answer.status, body, now_s, now_s + self._settings.robots_s)
            self._rows.put(partition, address.origin.encode(), row)
        return answer

    async def _ask(self, address: Address, may_send: MaySend, pace: Pace) -> RobotsAnswer:
        url = f"{address.origin}/robots.txt"
        for _ in range(_REDIRECTS_MAX + 1):
            reply = await self._web.get(
                Ask(
                    url,
                    body_bytes_max=self._settings.robots_bytes_max,
                    deadline_s=self._settings.fetch_s_max,
                    before_send=may_send,
                    pace=pace,
                )
            )
            if isinstance(reply, Trouble):
                if not reply.transient:
                    raise _LastingError(reply)
                return RobotsAnswer(None)
            target = _redirected(reply, url)
            if target is None or target.domain != address.domain:
                return RobotsAnswer(reply.status, reply.body)
            url = target.href
        return RobotsAnswer(310)  # too many redirects: there is none


def _redirected(reply: Reply, url: str) -> Address | None:
    location = header(reply, "location") if reply.status in REDIRECTS else None
    target = join(url, location) if location else None
    address = parse(target) if target else None
    return address if isinstance(address, Address) else None
