"""fetch-requests -> pages | documents | deferred. Key: registered domain. Owns the `domains` and `robots` tables.

The only stage that touches the outside web, and the owner of its domains: it alone knows when a domain may be asked
next. A request is one coroutine: it joins its domain's lane, gets its turn, asks robots.txt, sends, and ends in
`pages`, in `documents` or in `deferred`; until then its message is unacknowledged, so a killed worker's requests
are made by the next owner.
"""

import asyncio
import random
from asyncio import Future
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from faust.types import AppT, EventT, StreamT, TopicT

from agents.clients.http import Ask, Asks, Reply, Trouble
from agents.clients.packer import Pack, pack_here
from agents.fetching.lanes import Full, Lane, Lanes, Later, Turn, Wait, gate
from agents.fetching.robots_desk import RobotsDesk
from agents.fetching.verdict import Again, Ending, GotPage, Redirect, header, verdict
from agents.pump import NOTHING, Acted, Pump
from tables import domains
from tables.store import Store
from topology import names
from topology.events import Events
from topology.outcomes import Outcome
from topology.outlets import Outlet
from topology.records import Deferred, Document, FetchRequest, Http, Page, Sweep, Visit
from topology.settings import Settings

_RECENT_MAX: Final = 20_000  # fetches remembered to tell a replay from a new order
_FORGET_S: Final = 2.0  # how often idle lanes are dropped

_decode: Final = msgspec.msgpack.Decoder(FetchRequest | Sweep).decode

Slot = Future[Turn[Any]]
Key = tuple[str, str, int]


@dataclass(slots=True)
class Meter:
    """Where the time of one fetch goes. Seconds; `sent_s` is a point in time."""

    waited_s: float = 0.0
    web_s: float = 0.0
    sent_s: float = 0.0


class Fetcher:
    """Gives turns, asks the web, and says how it ended."""

    def __init__(
        self,
        settings: Settings,
        events: Events,
        clock: Callable[[], float],
        *,
        web: Asks,
        robots: RobotsDesk,
        domain_rows: Store,
        to_pages: Outlet,
        to_documents: Outlet,
        to_deferred: Outlet,
        pack: Pack = pack_here,
    ) -> None:
        self._settings = settings
        self._events = events
        self._clock = clock
        self._web = web
        self._robots = robots
        self._rows = domain_rows
        self._to_pages = to_pages
        self._to_documents = to_documents
        self._to_deferred = to_deferred
        self._pack = pack
        self.lanes: Lanes[Slot] = Lanes(
            wait_s_max=settings.wait_s_max,
            queue_max=settings.queue_urls_max,
            under_way_max=max(1, settings.fetches_max // 4),  # no domain holds more than a quarter of a worker
            horizon_s=settings.pending_s_max,
        )
        self._changed = asyncio.Event()
        self.draining = False  # when set, nothing more is begun
        self._under_way: set[Key] = set()
        self._done: OrderedDict[Key, None] = OrderedDict()

    # -- turns

    async def dispatch(self) -> None:
        """Give each lane its turn when its slot comes, for ever."""
        loop, forget_s = asyncio.get_running_loop(), 0.0
        while True:
            self._changed.clear()
            now_s = self._clock()
            while self._has_room() and (turn := self.lanes.take(now_s)):
                if turn.order.done():
                    self.lanes.done(turn.lane)
                else:
                    turn.order.set_result(turn)
            if now_s > forget_s:
                self.lanes.forget(now_s)
                forget_s = now_s + _FORGET_S
            next_s = self.lanes.next_s()
            if next_s is None or not self._has_room():
                await self._changed.wait()
                continue
            alarm = loop.call_later(max(0.0005, next_s - now_s), self._changed.set)
            await self._changed.wait()
            alarm.cancel()

    def _has_room(self) -> bool:
        return self.lanes.under_way < self._settings.fetches_max and not self.draining

    def _lane(self, partition: int, domain: str, now_s: float) -> Lane[Slot]:
        lane = self.lanes.get(domain)
        if lane is not None:
            return lane
        raw = self._rows.get(partition, domain.encode())
        row = domains.FRESH if raw is None else domains.decode(raw)
        own = self._settings.domain(domain).rate_per_s
        rate = self._settings.rate_per_s if own is None else own
        return self.lanes.open(domain, rate_per_s=rate, resume_s=row.reserved_s, now_s=now_s)

    async def _may_send(self, partition: int, lane: Lane[Slot], meter: Meter, *, extra: bool = False) -> None:
        """Hold a request back until its domain may be asked, and book the slot before it goes out."""
        while isinstance(said := gate(lane, now_s := self._clock(), extra=extra), Wait):
            await asyncio.sleep(said.wait_s)
            meter.waited_s += self._clock() - now_s
        if said.reserve_s is not None:
            self._rows.put(partition, lane.domain.encode(), domains.Row(said.reserve_s))
        meter.sent_s = now_s

    # -- one request

    async def on_request(self, event: EventT[bytes]) -> Acted:
        """See one request through to its end."""
        request = _decode(event.value)
        partition = event.message.partition
        if isinstance(request, Sweep):
            return self._sweep(partition)
        key = _key(request)
        if key in self._under_way or key in self._done:
            return NOTHING  # a replay: the first one answers, or its message is replayed too
        self._under_way.add(key)
        try:
            return await self._see_through(partition, request)
        finally:
            self._under_way.discard(key)

    async def _see_through(self, partition: int, request: FetchRequest) -> Acted:
        lane = self._lane(partition, request.domain, now_s := self._clock())
        slot: Slot = asyncio.get_running_loop().create_future()
        match self.lanes.admit(lane, slot, now_s, returning=request.returning):
            case Later(due_s):
                return Acted((await self._later(request, due_s, "politeness", Meter(due_s - now_s)),))
            case Full(waiting):
                reason = f"the queue of {request.domain} is full: {waiting} requests wait"
                return Acted((await self._end(request, Outcome.REJECTED, reason, Meter()),))
        self._changed.set()
        turn = await slot
        try:
            sent = await self._visit(partition, request, turn)
        finally:
            self.lanes.done(lane)
            self._changed.set()
        return Acted((sent,), lambda: self._remember(request))

    async def _visit(self, partition: int, request: FetchRequest, turn: Turn[Slot]) -> "Future[Any]":
        meter = Meter(turn.due_s - turn.admitted_s)
        self._events.took("queue", (self._clock() - turn.due_s) * 1000)

        async def may_send() -> None:
            await self._may_send(partition, turn.lane, meter)

        async def may_ask_robots() -> None:
            await self._may_send(partition, turn.lane, meter, extra=True)

        pace = (turn.lane.domain, turn.lane.step_s)
        before_s, waited_s = self._clock(), meter.waited_s
        robots = await self._robots.rules(partition, request.url, may_ask_robots, pace)
        meter.web_s += self._clock() - before_s - (meter.waited_s - waited_s)
        if isinstance(robots, Trouble):
            return await self._conclude(request, robots, meter)
        if robots.deferred:
            return await self._again(request, Again("robots", robots.reason), meter)
        if not robots.allowed(request.url):
            return await self._end(request, Outcome.REFUSED, "robots.txt of the site forbids it", meter)
        answer = await self._ask(request, may_send, pace, meter)
        return await self._conclude(request, answer, meter)

    async def _ask(
        self, request: FetchRequest, may_send: Any, pace: tuple[str, float], meter: Meter
    ) -> Reply | Trouble:
        image = request.kind == "image"
        limit = self._settings.image_bytes_max if image else self._settings.body_bytes_max
        before_s, waited_s = self._clock(), meter.waited_s
        answer = await self._web.get(
            Ask(request.url, limit, self._settings.fetch_s_max, (), may_send, packed=True, pace=pace)
        )
        took_s = self._clock() - before_s - (meter.waited_s - waited_s)
        meter.web_s += took_s
        self._events.took("web", took_s * 1000)
        self._events.took("wait", meter.waited_s * 1000)
        return answer

    async def _conclude(self, request: FetchRequest, answer: Reply | Trouble, meter: Meter) -> "Future[Any]":
        said = verdict(answer, request.url)
        self._events.count("fetches", f"{answer.status // 100}xx" if isinstance(answer, Reply) else answer.kind.value)
        match said:
            case GotPage():
                assert isinstance(answer, Reply)  # noqa: S101 - only a reply is a page
                return await self._to_pages(request.domain, await self._page(request, answer, meter))
            case Redirect(target, status):
                document = self._document(request, Outcome.REDIRECTED, None, meter, answer)
                return await self._to_documents(
                    request.domain, msgspec.structs.replace(document, redirect_to=target, redirect_status=status)
                )
            case Ending(outcome, reason):
                return await self._end(request, outcome, reason, meter, answer)
            case Again():
                return await self._again(request, said, meter, answer)

    async def give_up(self, raw: bytes, reason: str) -> "Future[Any]":
        """End a request that a fault of ours kept from being made."""
        request = msgspec.msgpack.decode(raw, type=FetchRequest)
        return await self._end(request, Outcome.FAILED, reason, Meter())

    # -- ways to end

    async def _end(
        self, request: FetchRequest, outcome: Outcome, reason: str, meter: Meter, answer: Reply | Trouble | None = None
    ) -> "Future[Any]":
        return await self._to_documents(request.domain, self._document(request, outcome, reason, meter, answer))

    async def _again(
        self, request: FetchRequest, again: Again, meter: Meter, answer: Reply | Trouble | None = None
    ) -> "Future[Any]":
        if request.attempt >= self._settings.retries_max:
            reason = f"{again.reason} (after {request.attempt + 1} tries)"
            return await self._end(request, Outcome.FAILED, reason, meter, answer)
        self._events.count("retries", again.why)
        back_off_s = self._settings.retry_s * 2**request.attempt * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
        later = msgspec.structs.replace(request, attempt=request.attempt + 1)
        waited = Meter(meter.waited_s + back_off_s, meter.web_s)
        return await self._later(later, self._clock() + back_off_s, "retry", waited)

    async def _later(self, request: FetchRequest, due_s: float, why: str, meter: Meter) -> "Future[Any]":
        self._events.count("deferred", why)
        returning = msgspec.structs.replace(
            request,
            returning=True,
            waited_ms=request.waited_ms + int(meter.waited_s * 1000),
            web_ms=request.web_ms + int(meter.web_s * 1000),
        )
        return await self._to_deferred(request.domain, Deferred(int(due_s * 1000), fetch=returning))

    def _document(
        self, request: FetchRequest, outcome: Outcome, reason: str | None, meter: Meter, answer: Reply | Trouble | None
    ) -> Document:
        http = _http(answer) if isinstance(answer, Reply) else None
        visit = self._visit_of(request, meter, answer)
        return Document(request.url, request.domain, request.fetch_id, request.kind, outcome, reason, http, visit)

    async def _page(self, request: FetchRequest, reply: Reply, meter: Meter) -> Page:
        packed = reply.packed or await self._pack(reply.body)
        return Page(
            request.url,
            request.domain,
            request.fetch_id,
            request.kind,
            _http(reply),
            self._visit_of(request, meter, reply),
            packed.squeezed.data,
            packed.squeezed.crc32,
            packed.sha1,
            reply.reason,
            reply.request_headers,
            reply.headers,
        )

    def _visit_of(self, request: FetchRequest, meter: Meter, answer: Reply | Trouble | None) -> Visit:
        return Visit(
            admitted_ms=request.asked_ms,
            started_ms=int(meter.sent_s * 1000),
            finished_ms=int(self._clock() * 1000),
            address=answer.address if answer is not None else "",
            waited_ms=request.waited_ms + int(meter.waited_s * 1000),
            web_ms=request.web_ms + int(meter.web_s * 1000),
        )

    def _remember(self, request: FetchRequest) -> None:
        self._done[_key(request)] = None
        if len(self._done) > _RECENT_MAX:
            self._done.popitem(last=False)

    def _sweep(self, partition: int) -> Acted:
        """Forget reservations that have passed and robots.txt that has expired."""
        now_s, start = self._clock(), b""
        while entries := self._rows.scan(partition, start, 500):
            for key, raw in entries:
                if domains.decode(raw).reserved_s < now_s:
                    self._rows.drop(partition, key)
                    self._events.count("swept", names.DOMAINS)
            start = entries[-1][0] + b"\0"
        self._robots.sweep(partition)
        return NOTHING


def _key(request: FetchRequest) -> Key:
    """Tell a replay from another order: a retry comes back under its fetch's id, and is none."""
    return request.url, request.fetch_id, request.attempt


def _http(reply: Reply) -> Http:
    body_bytes = len(reply.body) if reply.packed is None else reply.packed.squeezed.bytes_len
    return Http(reply.status, header(reply, "content-type"), body_bytes, reply.truncated)


class Alarm:
    """Holds what is deferred until it is due, then sends it back. One timer for all."""

    def __init__(self, clock: Callable[[], float], *, to_fetch: Outlet, to_requests: Outlet) -> None:
        self._clock = clock
        self._to_fetch = to_fetch
        self._to_requests = to_requests

    async def on_deferred(self, event: EventT[bytes]) -> Acted:
        """Wait until it is due, and send it back where it came from."""
        deferred = _decode_deferred(event.value)
        await asyncio.sleep(max(0.0, deferred.due_ms / 1000 - self._clock()))
        if deferred.fetch is not None:
            return Acted((await self._to_fetch(deferred.fetch.domain, deferred.fetch),))
        assert deferred.request is not None  # noqa: S101 - exactly one is set, says the record
        return Acted((await self._to_requests(deferred.request.domain, deferred.request),))


_decode_deferred: Final = msgspec.msgpack.Decoder(Deferred).decode


def attach(
    app: AppT, *, orders: TopicT, deferred: TopicT, fetcher: Fetcher, alarm: Alarm, pump: Callable[..., Pump]
) -> None:
    """Attach the fetcher, its dispatcher, and the alarm for what was deferred."""

    @app.agent(orders, name=names.FETCH)
    async def fetch(stream: StreamT[bytes]) -> None:
        """Ask the web for each URL when its domain may be asked."""
        await pump(names.FETCH, concurrent=True).run(stream, fetcher.on_request, fetcher.give_up)

    @app.agent(deferred, name=names.DEFER)
    async def defer(stream: StreamT[bytes]) -> None:
        """Hold each deferred request until it is due."""
        await pump(names.DEFER, concurrent=True).run(stream, alarm.on_deferred)

    app.task(fetcher.dispatch)
