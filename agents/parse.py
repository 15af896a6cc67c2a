"""pages -> documents, url-requests (the page's image). Key: registered domain. Owns nothing; works in processes.

A body becomes what it says of itself. A page that breaks the parser, a wall, a page that only sends the reader on:
each is an ending like any other.
"""

from asyncio import Future
from collections.abc import Callable
from typing import Any, Final

import msgspec
from faust.types import AppT, EventT, StreamT, TopicT

from agents.archiving.records import payload_digest
from agents.clients.parser_pool import ParserPool
from agents.clients.parser_process import Job, Result
from agents.pump import Acted, Pump
from agents.reading.page import Reading
from topology import names
from topology.events import Events
from topology.outcomes import Outcome
from topology.outlets import Outlet
from topology.records import Document, Page, UrlRequest, Waiter
from topology.settings import Settings
from topology.urls import Address, canonical, parse

_decode: Final = msgspec.msgpack.Decoder(Page).decode


# -- thought


def document_of(page: Page, result: Result, *, refresh_s_max: float) -> Document:
    """Say how the fetch of this page ended, by what was read in it."""
    document = Document(
        page.url,
        page.domain,
        page.fetch_id,
        page.kind,
        Outcome.FETCHED,
        http=page.http,
        visit=page.visit,
        canonical_url=canonical(page.url) or page.url,
        digest=payload_digest(page.body_sha1),
    )
    reading = result.reading
    if reading is None:
        return msgspec.structs.replace(
            document, outcome=Outcome.BROKEN, reason=f"the page could not be parsed: {result.error}"
        )
    if target := _sends_on(page, reading, refresh_s_max):
        return msgspec.structs.replace(
            document, outcome=Outcome.REDIRECTED, redirect_to=target, redirect_status=page.http.status
        )
    if reading.wall is not None:
        return msgspec.structs.replace(document, outcome=Outcome.WALL, reason=reading.wall)
    trusted = reading.canonical_url and canonical(reading.canonical_url)
    return msgspec.structs.replace(document, canonical_url=trusted or document.canonical_url, metadata=reading.metadata)


def _sends_on(page: Page, reading: Reading, refresh_s_max: float) -> str | None:
    """Return where a meta refresh leads, if it is quick enough to be a redirect and leads elsewhere."""
    if reading.refresh is None or page.kind != "page":
        return None
    delay_s, target = reading.refresh
    address = parse(target)
    elsewhere = isinstance(address, Address) and address.href != page.url
    return target if elsewhere and delay_s <= refresh_s_max else None


def image_request(document: Document, now_ms: int) -> UrlRequest | None:
    """Return the request for a page's representative image; None when it has none that can be asked for."""
    metadata = document.metadata
    if document.kind != "page" or metadata is None or metadata.image is None or document.canonical_url is None:
        return None
    address = parse(metadata.image.url)
    if not isinstance(address, Address):
        return None
    return UrlRequest(address.href, address.domain, Waiter(now_ms, now_ms, parent=document.canonical_url))


# -- hands


class Parser:
    """Has pages read, and passes on what they say."""

    def __init__(
        self,
        settings: Settings,
        events: Events,
        clock: Callable[[], float],
        *,
        pool: ParserPool,
        to_documents: Outlet,
        to_requests: Outlet,
    ) -> None:
        self._settings = settings
        self._events = events
        self._clock = clock
        self._pool = pool
        self._to_documents = to_documents
        self._to_requests = to_requests

    async def on_page(self, event: EventT[bytes]) -> Acted:
        """Read one page."""
        page, began_s = _decode(event.value), self._clock()
        job = Job(page.url, page.http.status, page.http.content_type, page.body, self._settings.parse_bytes_max)
        result = await self._pool.parse(job)
        document = document_of(page, result, refresh_s_max=self._settings.refresh_s_max)
        now_s = self._clock()
        self._events.count("parsed", document.outcome)
        self._events.took("parse", (now_s - began_s) * 1000)
        sent = [await self._to_documents(document.domain, document)]
        if self._settings.images and (request := image_request(document, int(now_s * 1000))):
            sent.append(await self._to_requests(request.domain, request))
        return Acted(tuple(sent))

    async def give_up(self, raw: bytes, reason: str) -> "Future[Any]":
        """End the fetch of a page that a fault of ours kept from being read."""
        page = _decode(raw)
        document = document_of(page, Result(error=reason), refresh_s_max=self._settings.refresh_s_max)
        return await self._to_documents(document.domain, document)


def attach(app: AppT, *, pages: TopicT, parser: Parser, pump: Callable[..., Pump]) -> None:
    """Attach the parser."""

    @app.agent(pages, name=names.PARSE)
    async def parse_pages(stream: StreamT[bytes]) -> None:
        """Read what each page says of itself."""
        await pump(names.PARSE, concurrent=True).run(stream, parser.on_page, parser.give_up)
