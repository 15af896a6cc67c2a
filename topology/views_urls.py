"""`GET /urls?url=...` and `POST /urls`: what is known of URLs, from the `urls` table and then the metadata store.

A URL is followed like a request follows it: a redirect is an entry that names the next URL, which may have another
owner. All URLs of a batch take a step together, so a batch asks each owner once per step, and there are at most
`redirects_max` + 1 steps. What the table does not know is looked for in the store, under any of its names.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
from aiohttp import web
from faust.web import View

from agents.clients.metadata import READ_URLS_MAX, MetadataStore
from agents.decide import follow
from tables import urls
from topology import names
from topology.records import Document, UrlRequest, Waiter
from topology.urls import Address, parse
from topology.views_answers import Answer, Fields, fields_of, from_record, from_table, invalid, plain, unknown
from topology.views_http import ROUTED, parameters, problem, read_body, reply, unavailable
from topology.views_owner import Owners
from topology.wiring import Worker

URLS_MAX: Final = 300
"""URLs one `POST /urls` may ask for."""
_BODY_BYTES_MAX: Final = 4 << 20  # 300 URLs of 8 kB and some quotes
_SLICE: Final = 32  # entries read before the crawl has its turn


class Look(msgspec.Struct, frozen=True):
    """An entry of the urls table as its owner shows it to other workers: without those who wait."""

    document: Document | None
    pending: bool
    waiting: int
    fresh_until_ms: int


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /urls`."""

    urls: list[str]
    fields: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Where following a URL came to: the last request, its entry, and how it ended."""

    last: UrlRequest
    look: Look | None
    document: Document | None


class Lookup:
    """Looks URLs up: here, at their owners, in the store."""

    def __init__(self, worker: Worker, owners: Owners, metadata: MetadataStore | None) -> None:
        self._worker = worker
        self._owners = owners
        self._metadata = metadata

    async def answers(self, asked: Iterable[str], fields: Fields) -> dict[str, Answer | None]:
        """Return what is known of each URL; None of those nothing is known of."""
        addresses = {url: parse(url) for url in asked}
        fetchable = {url: address for url, address in addresses.items() if isinstance(address, Address)}
        found = await self._follow(fetchable)
        answers: dict[str, Answer | None] = dict.fromkeys(addresses)
        for url, address in addresses.items():
            answers[url] = self._of_table(url, found[url], fields) if url in found else invalid(url, address)
        missing = [url for url, answer in answers.items() if answer is None]
        return answers | await self._of_store(missing, fetchable, fields)

    async def local(self, wanted: Sequence[str]) -> dict[str, Look | None]:
        """Read entries this worker owns, letting the crawl have its turns in between."""
        looks: dict[str, Look | None] = {}
        for number, url in enumerate(wanted):
            address = parse(url)
            if isinstance(address, Address):
                self._owners.elsewhere(names.URLS, address.domain, routed=True)
                looks[url] = self._read(url, address.domain)
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
        return looks

    def _read(self, url: str, domain: str) -> Look | None:
        raw = self._worker.tables[names.URLS].get(self._owners.partition(domain), url.encode())
        if raw is None:
            return None
        entry = urls.decode(raw)
        return Look(entry.document, entry.pending is not None, len(entry.waiting), entry.fresh_until_ms)

    async def _follow(self, addresses: Mapping[str, Address]) -> dict[str, Found]:
        redirects_max = self._worker.settings.redirects_max
        going = {url: UrlRequest(address.href, address.domain, Waiter(0, 0)) for url, address in addresses.items()}
        found: dict[str, Found] = {}
        while going:
            looks = await self._looks(going.values())
            for asked, at in list(going.items()):
                look = looks.get(at.url)
                step = _step(at, look, redirects_max)
                if isinstance(step, UrlRequest):
                    going[asked] = step
                else:
                    found[asked] = Found(at, look, step)
                    del going[asked]
        return found

    async def _looks(self, requests: Iterable[UrlRequest]) -> dict[str, Look | None]:
        """Read the entries of these URLs, each owner's in one go."""
        here: list[str] = []
        remote: dict[web.URL, list[str]] = {}
        for url, domain in {request.url: request.domain for request in requests}.items():
            owner = self._owners.elsewhere(names.URLS, domain, routed=False)
            (here if owner is None else remote.setdefault(owner, [])).append(url)
        looks = await self.local(here)
        for part in await asyncio.gather(*(self._ask(owner, part) for owner, part in remote.items())):
            looks.update(part)
        return looks
