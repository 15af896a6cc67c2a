"""`GET /domains/{name}[?url=URL]`: how a domain stands, and why a URL of it would wait.

Answered by the domain's owner: the only one that knows its lane.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from aiohttp import web
from faust.types import AppT
from faust.web import View

from agents.fetching.lanes import Lane
from agents.fetching.robots_book import Lifetimes, RobotsAnswer, judge
from tables import domains, robots
from topology import names
from topology.public import iso
from topology.settings import Settings
from topology.urls import Address, domain_of, parse
from topology.views.http import ROUTED, parameters, problem, reply
from topology.views.lookup import Look, Lookup
from topology.views.owner import Owners
from topology.views.waiting import Slot, because, slot_of
from topology.wiring import Worker

_SLICE: Final = 500  # rows looked at before the crawl has its turn
_SCANNED_MAX: Final = 20_000  # rows looked at for one answer


class LaneNow(msgspec.Struct, frozen=True):
    """A domain's queue in the fetch stage of its owner."""

    queued: int
    under_way: int
    next_slot_s: float  # from now


class RobotsNow(msgspec.Struct, frozen=True):
    """robots.txt of one origin, as it was last read."""

    origin: str
    status: int
    bytes: int
    age_s: float
    expires_s: float  # from now; negative: it is read again before the next fetch


class Why(msgspec.Struct, frozen=True):
    """What would become of a request for a URL now, in a sentence and in numbers."""

    url: str
    sentence: str
    slot_s: float  # from now, were it fetched
    ahead: int


class DomainNow(msgspec.Struct, frozen=True):
    """How a domain stands. `robots_complete` is false when there were too many rows to look at all."""

    domain: str
    rate_per_s: float
    lane: LaneNow | None
    reserved_until: str | None
    robots: list[RobotsNow]
    robots_complete: bool
    settings: dict[str, Any]
    why: Why | None = None


class Desk:
    """Knows how domains stand that this worker owns."""

    def __init__(self, worker: Worker, owners: Owners, lookup: Lookup, clock: Callable[[], float]) -> None:
        self._worker = worker
        self._owners = owners
        self._lookup = lookup
        self._clock = clock

    async def describe(self, domain: str, address: Address | None) -> DomainNow:
        """Return how a domain stands, and what would become of a request for `address` of it."""
        settings, partition = self._worker.settings, self._owners.partition(domain)
        rows, complete = await self._robots(partition, domain)
        lane, reserved_s, now_s = self._lane(domain), self._reserved_s(partition, domain), self._clock()
        rate_per_s = settings.domain(domain).rate_per_s or settings.rate_per_s
        slot = slot_of(lane, reserved_s, now_s)
        return DomainNow(
            domain,
            rate_per_s,
            None if lane is None else _lane_now(lane, now_s),
            iso(int(reserved_s * 1000)) if reserved_s > now_s else None,
            [_robots_now(origin, row, now_s) for origin, row in rows.items()],
            complete,
            _overrides(settings, domain),
            None if address is None else await self._why(address, slot, rows.get(address.origin), now_s),
        )

    async def _why(self, address: Address, slot: Slot, row: robots.Row | None, now_s: float) -> Why:
        look: Look | None = await self._lookup.look(address)
        allowed = None if row is None else await asyncio.to_thread(_allowed, row, address.href, self._worker.settings)
        sentence = because(look, slot, row, allowed=allowed, settings=self._worker.settings, now_s=now_s)
        return Why(address.href, sentence, round(slot.in_s, 3), slot.ahead)

    def _lane(self, domain: str) -> Lane[Any] | None:
        fetcher = self._worker.stages.get(names.FETCH)
        lane: Lane[Any] | None = None if fetcher is None else fetcher.lanes.get(domain)
        return lane

    def _reserved_s(self, partition: int, domain: str) -> float:
        raw = self._worker.tables[names.DOMAINS].get(partition, domain.encode())
        return 0.0 if raw is None else domains.decode(raw).reserved_s

    async def _robots(self, partition: int, domain: str) -> tuple[dict[str, robots.Row], bool]:
        """Find the rows of a domain's origins. They stand by origin, so a slice of the table is looked at a time."""
        found: dict[str, robots.Row] = {}
        start, store = b"", self._worker.tables[names.ROBOTS]
        for _ in range(_SCANNED_MAX // _SLICE):
            entries = store.scan(partition, start, _SLICE)
            for key, raw in entries:
                origin = key.decode()
                if _domain_of_origin(origin) == domain:
                    found[origin] = robots.decode(raw)
            if len(entries) < _SLICE:
                return found, True
            start = entries[-1][0] + b"\0"
            await asyncio.sleep(0)
        return found, False


def attach(app: AppT, owners: Owners, desk: Desk) -> None:
    """Register the view of domains."""

    @app.page("/domains/{name}", name="domain")
    class Domain(View):
        """How a domain stands."""

        async def get(self, request: web.Request, name: str) -> web.Response:
            """Answer for one domain; a host's name will do."""
            query = parameters(request, "url")
            domain = _domain(name)
            address = _address(query["url"], domain) if "url" in query else None
            owner = owners.elsewhere(names.DOMAINS, domain, routed=ROUTED in request.headers)
            return await owners.forward(request, owner) if owner else reply(await desk.describe(domain, address))


def _domain(name: str) -> str:
    address = parse(f"http://{name}/")
    if not isinstance(address, Address) or address.href != f"http://{address.host}/":
        raise problem(400, f"{name[:200]!r} is not the name of a host.", "GET /domains/example.com")
    return address.domain


def _address(url: str, domain: str) -> Address:
    address = parse(url)
    if not isinstance(address, Address):
        raise problem(400, f"url: {address.reason}")
    if address.domain != domain:
        raise problem(400, f"url: it belongs to {address.domain}, not to {domain}.", f"GET /domains/{address.domain}")
    return address


def _domain_of_origin(origin: str) -> str:
    # A port stands after the last colon, but an IPv6 address has colons of its own, inside brackets.
    host = origin.partition("://")[2]
    name, colon, port = host.rpartition(":")
    return domain_of(name if colon and port.isdigit() else host)


def _lane_now(lane: Lane[Any], now_s: float) -> LaneNow:
    return LaneNow(len(lane.queue), lane.under_way, round(max(0.0, lane.next_s - now_s), 3))


def _robots_now(origin: str, row: robots.Row, now_s: float) -> RobotsNow:
    return RobotsNow(
        origin, row.status, len(row.body), round(now_s - row.fetched_s, 1), round(row.expires_s - now_s, 1)
    )


def _overrides(settings: Settings, domain: str) -> dict[str, Any]:
    own = settings.domain(domain)
    values = {name: getattr(own, name) for name in own.__dataclass_fields__}
    rules = {"site_rules": settings.site_rules[domain]} if domain in settings.site_rules else {}
    return {name: value for name, value in values.items() if value is not None} | rules


def _allowed(row: robots.Row, href: str, settings: Settings) -> bool:
    answer = RobotsAnswer(row.status, row.body, row.fetched_s)
    lifetimes = Lifetimes(success_s=settings.robots_s, error_s=settings.robots_error_s)
    return judge(answer, settings.robots_agent, row.fetched_s, lifetimes).allowed(href)
