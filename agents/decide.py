"""url-requests -> fetch-requests | completions | url-requests; documents -> completions | url-requests.

Key: registered domain. Owns the `urls` table. The crawl decider: one fetch for all who want a URL, an answer from
memory while it is fresh, and a replay answered once.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from faust.types import AppT, EventT, StreamT, TopicT

from agents.pump import NOTHING, Acted, Pump
from tables import urls
from tables.store import Store
from topology import names
from topology.events import Events
from topology.outcomes import POLICY, Outcome
from topology.outlets import Outlet
from topology.records import Completion, Deferred, Document, Hop, Sweep, UrlRequest, Visit, Waiter
from topology.settings import Settings
from topology.urls import Address, parse

_CROWDED_S: Final = 5.0  # a request that found too many waiting asks again after this
_WAITERS_PER_COMPLETION: Final = 200  # bounds the size of a message, not how many may wait
_SWEEP_ENTRIES: Final = 500  # looked at per note: the stage must not stand still for a sweep

_decode_request: Final = msgspec.msgpack.Decoder(UrlRequest | Sweep).decode
_decode_document: Final = msgspec.msgpack.Decoder(Document).decode


# -- thought


def window_s(document: Document, settings: Settings) -> float:
    """How long this ending is answered from memory: by outcome, overridable per domain."""
    name = POLICY[document.outcome].window
    own = getattr(settings.domain(document.domain), name)
    return float(getattr(settings, name) if own is None else own)


def with_times(waiter: Waiter, visit: Visit) -> Waiter:
    """Add what this waiter spent outside at the present URL: on the web, and waiting politely.

    One that attached while the fetch was under way spent only what was left of it.
    """
    spent_ms = max(0, visit.finished_ms - max(waiter.attached_ms, visit.admitted_ms))
    web_ms = min(visit.web_ms, spent_ms)
    waited_ms = min(visit.waited_ms, spent_ms - web_ms)
    return msgspec.structs.replace(waiter, web_ms=waiter.web_ms + web_ms, waited_ms=waiter.waited_ms + waited_ms)


def follow(waiter: Waiter, document: Document, *, now_ms: int, redirects_max: int) -> UrlRequest | Document:
    """Send a waiter on along a redirect, or say why it goes no further."""
    target = document.redirect_to or ""
    address = parse(target)
    if not isinstance(address, Address):
        return _ended(
            document, Outcome.INVALID, f"redirected to what cannot be fetched, {target[:200]}: {address.reason}"
        )
    # Compared as they are asked for: a fragment makes no other URL.
    if address.href == document.url or any(hop.url == address.href for hop in waiter.hops):
        return _ended(document, Outcome.REDIRECT_LOOP, f"the redirects lead in a circle, back to {address.href}")
    if len(waiter.hops) >= redirects_max:
        return _ended(document, Outcome.TOO_MANY_REDIRECTS, f"more than {redirects_max} redirects")
    hop = Hop(document.url, document.redirect_status, document.visit.web_ms)
    onward = msgspec.structs.replace(waiter, hops=(*waiter.hops, hop), attached_ms=now_ms)
    return UrlRequest(address.href, address.domain, onward)


def _ended(document: Document, outcome: Outcome, reason: str) -> Document:
    return msgspec.structs.replace(document, outcome=outcome, reason=reason, redirect_to=None, metadata=None)


def in_messages(document: Document, waiters: tuple[Waiter, ...], *, cached: bool) -> Iterator[Completion]:
    """Cut a crowd of waiters into messages of bounded size."""
    for start in range(0, len(waiters), _WAITERS_PER_COMPLETION):
        yield Completion(document, waiters[start : start + _WAITERS_PER_COMPLETION], cached)


# -- hands


class Decider:
    """Acts on what the table's transitions say."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        events: Events,
        clock: Callable[[], float],
        *,
        to_self: Outlet,
        to_documents: Outlet,
        to_fetch: Outlet,
        to_deferred: Outlet,
        to_complete: Outlet,
    ) -> None:
        self._store = store
        self._settings = settings
        self._events = events
        self._clock = clock
        self._to_self = to_self
        self._to_documents = to_documents
        self._to_fetch = to_fetch
        self._to_deferred = to_deferred
        self._to_complete = to_complete

    async def on_request(self, event: EventT[bytes]) -> Acted:
        """Answer one request, or see that it will be."""
        request = _decode_request(event.value)
        if isinstance(request, Sweep):
            return await self._sweep(event.message.partition, request)
        partition, key, now_ms = event.message.partition, request.url.encode(), self._now_ms()
        entry = self._load(partition, key)
        after, answer = urls.ask(entry, request, now_ms=now_ms, waiting_max=self._settings.waiting_max)
        if after is not entry:
            self._store.put(partition, key, after)
        match answer:
            case urls.Fetch(fetch):
                self._events.count("requests", "fetch")
                return Acted((await self._to_fetch(fetch.domain, fetch),))
            case urls.Known(document):
                self._events.count("requests", "known")
                return Acted(tuple(await self._answer(document, (request.waiter,), now_ms, cached=True)))
            case urls.Crowded():
                self._events.count("deferred", "crowded")
                later = Deferred(now_ms + int(_CROWDED_S * 1000), request=request)
                return Acted((await self._to_deferred(request.domain, later),))
            case urls.Attached():
                self._events.count("requests", "attached")
        return NOTHING

    async def give_up(self, raw: bytes, reason: str) -> "asyncio.Future[Any]":
        """End a request that a fault of ours kept from being answered."""
        request = msgspec.msgpack.decode(raw, type=UrlRequest)
        kind = "page" if request.waiter.parent is None else "image"
        document = Document(request.url, request.domain, "", kind, Outcome.FAILED, reason)
        return await self._to_complete(request.domain, Completion(document, (request.waiter,)))

    async def on_document(self, event: EventT[bytes]) -> Acted:
        """Remember how a fetch ended, and answer everybody who waited for it."""
        return await self._settle(event.message.partition, _decode_document(event.value))

    async def _settle(self, partition: int, document: Document) -> Acted:
        key, now_ms = document.url.encode(), self._now_ms()
        entry = self._load(partition, key)
        after, waiters = urls.settle(
            entry, document, now_ms=now_ms, window=lambda ended: window_s(ended, self._settings)
        )
        written = self._store.put(partition, key, after) if after is not entry else None
        if not waiters:
            return NOTHING
        timed = tuple(with_times(waiter, document.visit) for waiter in waiters)
        sent = await self._answer(document, timed, now_ms, cached=False)

        def forget() -> None:
            """Let go of those answered, of none that came since."""
            unchanged = written is not None and self._store.get(partition, key) == written
            present = after if unchanged else self._load(partition, key)
            self._store.put(partition, key, urls.released(present, waiters))

        return Acted(tuple(sent), forget)

    async def _answer(
        self, document: Document, waiters: tuple[Waiter, ...], now_ms: int, *, cached: bool
    ) -> "list[asyncio.Future[Any]]":
        if document.outcome is not Outcome.REDIRECTED:
            return [
                await self._to_complete(document.domain, message)
                for message in in_messages(document, waiters, cached=cached)
            ]
        sent = []
        for waiter in waiters:
            onward = follow(waiter, document, now_ms=now_ms, redirects_max=self._settings.redirects_max)
            if isinstance(onward, UrlRequest):
                self._events.count("requests", "follow")
                sent.append(await self._to_self(onward.domain, onward))
            else:
                sent.append(await self._to_complete(onward.domain, Completion(onward, (waiter,), cached)))
        return sent

    async def _sweep(self, partition: int, note: Sweep) -> Acted:
        """Forget what is past its window ("vultures"), and end what never came back; a slice at a time."""
        now_ms, sent, forgotten = self._now_ms(), [], 0
        cursor = b""
        for key, raw in self._store.scan(partition, note.cursor, _SWEEP_ENTRIES):
            cursor = key + b"\0"
            entry = urls.decode(raw)
            if urls.forgettable(entry, now_ms=now_ms, grace_s=self._settings.grace_s):
                self._store.drop(partition, key)
                forgotten += 1
            elif document := urls.expired(
                entry, key.decode(), now_ms=now_ms, pending_s_max=self._settings.pending_s_max
            ):
                # It ends like any other: through `documents`, in turn with what may yet arrive.
                sent.append(await self._to_documents(document.domain, document))
        self._events.count("swept", names.URLS, forgotten)
        if cursor:
            sent.append(await self._to_self.to_partition(partition, Sweep(cursor)))
        return Acted(tuple(sent))

    def _load(self, partition: int, key: bytes) -> urls.Entry:
        raw = self._store.get(partition, key)
        return urls.EMPTY if raw is None else urls.decode(raw)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def attach(
    app: AppT,
    *,
    requests: TopicT,
    documents: TopicT,
    decider: Decider,
    pump: Callable[[str], Pump],
) -> None:
    """Attach the two agents: one hears what is asked, the other how it ended."""

    @app.agent(requests, name=names.DECIDE)
    async def decide(stream: StreamT[bytes]) -> None:
        """Answer each request from the urls table, or have its URL fetched once for all."""
        await pump(names.DECIDE).run(stream, decider.on_request, decider.give_up)

    @app.agent(documents, name=names.SETTLE)
    async def settle(stream: StreamT[bytes]) -> None:
        """Remember how each fetch ended and answer everybody who waited."""
        await pump(names.SETTLE).run(stream, decider.on_document)
