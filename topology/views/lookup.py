"""Looking URLs up: in the `urls` tables of their owners, following redirects, and then in the metadata store.

A URL is followed as a request follows it: a redirect is an entry that names the next URL, which may have another
owner. All URLs of a batch take a step together, so a batch asks each owner once per step, and there are at most
`redirects_max` + 1 steps. What the table does not know is looked for in the store, under any of its names.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec
from yarl import URL

from agents.clients.metadata import READ_URLS_MAX, MetadataStore, Record
from agents.decide import follow
from tables import urls
from topology import names
from topology.outcomes import Outcome
from topology.records import Document, UrlRequest, Waiter
from topology.urls import Address, parse
from topology.views.answers import Answer, Fields, from_record, from_table, invalid, pending
from topology.views.http import unavailable
from topology.views.owner import Owners
from topology.wiring import Worker

_SLICE: Final = 32  # entries read before the crawl has its turn


class Look(msgspec.Struct, frozen=True):
    """An entry of the urls table as its owner shows it to other workers: without those who wait."""

    document: Document | None
    pending: bool
    waiting: int
    fresh_until_ms: int


Looks = dict[str, Look | None]
_decode_looks: Final = msgspec.json.Decoder(Looks).decode


@dataclass(frozen=True, slots=True)
class Found:
    """Where following a URL came to: the last request, its entry, and how that ended."""

    last: UrlRequest
    look: Look | None
    document: Document | None


def step(at: UrlRequest, look: Look | None, redirects_max: int) -> UrlRequest | Found:
    """Follow a redirect to the next URL, or say where it ends."""
    document = None if look is None else look.document
    if document is None or document.outcome is not Outcome.REDIRECTED:
        return Found(at, look, document)
    onward = follow(at.waiter, document, now_ms=0, redirects_max=redirects_max)
    return onward if isinstance(onward, UrlRequest) else Found(at, look, onward)


class Lookup:
    """Looks URLs up: here, at their owners, in the store."""

    def __init__(self, worker: Worker, owners: Owners, metadata: MetadataStore | None) -> None:
        self._worker = worker
        self._owners = owners
        self._metadata = metadata

    async def answers(self, asked: Iterable[str], fields: Fields) -> dict[str, Answer | None]:
        """Return what is known of each URL; None of those nothing is known of."""
        answers: dict[str, Answer | None] = {}
        addresses: dict[str, Address] = {}
        for url in asked:
            address = parse(url)
            if isinstance(address, Address):
                addresses[url] = address
                answers[url] = None
            else:
                answers[url] = invalid(url, address)
        for url, found in (await self._follow(addresses)).items():
            answers[url] = _of_table(url, found, fields)
        missing = {url: addresses[url].href for url, answer in answers.items() if answer is None}
        for url, record in (await self._in_store(missing)).items():
            answers[url] = from_record(url, record, fields)
        return answers

    async def look(self, address: Address) -> Look | None:
        """Return the entry of one URL, wherever it is; redirects are not followed."""
        return (await self._looks([_asking(address)])).get(address.href)

    async def local(self, wanted: Iterable[str]) -> Looks:
        """Read entries this worker owns, letting the crawl have its turns in between."""
        looks: Looks = {}
        for number, url in enumerate(wanted, 1):
            address = parse(url)
            if isinstance(address, Address):
                self._owners.elsewhere(names.URLS, address.domain, routed=True)
                looks[url] = self._read(address)
            if number % _SLICE == 0:
                await asyncio.sleep(0)
        return looks

    def _read(self, address: Address) -> Look | None:
        raw = self._worker.tables[names.URLS].get(self._owners.partition(address.domain), address.href.encode())
        if raw is None:
            return None
        entry = urls.decode(raw)
        return Look(entry.document, entry.pending is not None, len(entry.waiting), entry.fresh_until_ms)

    async def _follow(self, addresses: Mapping[str, Address]) -> dict[str, Found]:
        going = {url: _asking(address) for url, address in addresses.items()}
        found: dict[str, Found] = {}
        while going:
            looks = await self._looks(going.values())
            for asked, at in list(going.items()):
                after = step(at, looks.get(at.url), self._worker.settings.redirects_max)
                if isinstance(after, UrlRequest):
                    going[asked] = after
                else:
                    found[asked] = after
                    del going[asked]
        return found

    async def _looks(self, requests: Iterable[UrlRequest]) -> Looks:
        """Read the entries of these URLs, each owner's in one go."""
        here: list[str] = []
        remote: dict[URL, list[str]] = {}
        for url, domain in {request.url: request.domain for request in requests}.items():
            owner = self._owners.elsewhere(names.URLS, domain, routed=False)
            (here if owner is None else remote.setdefault(owner, [])).append(url)
        looks = await self.local(here)
        for part in await asyncio.gather(*(self._ask(owner, part) for owner, part in remote.items())):
            looks.update(part)
        return looks

    async def _ask(self, owner: URL, wanted: Sequence[str]) -> Looks:
        status, body = await self._owners.post(owner, "/urls", msgspec.json.encode({"urls": wanted}))
        if status != HTTPStatus.OK:
            raise unavailable(f"The owner at {owner.origin()} answered {status}.")
        return _decode_looks(body)

    async def _in_store(self, missing: Mapping[str, str]) -> dict[str, Record]:
        """Look in the store for URLs ({as asked: as parsed}), under both spellings: an alias is kept as shared."""
        if self._metadata is None or not missing:
            return {}
        spellings = list(dict.fromkeys([*missing, *missing.values()]))
        records: dict[str, Record | None] = {}
        for start in range(0, len(spellings), READ_URLS_MAX):
            records.update(await self._metadata.get_many(spellings[start : start + READ_URLS_MAX]))
        found = {url: records[url] or records[href] for url, href in missing.items()}
        return {url: record for url, record in found.items() if record is not None}


def _asking(address: Address) -> UrlRequest:
    return UrlRequest(address.href, address.domain, Waiter(0, 0))


def _of_table(url: str, found: Found, fields: Fields) -> Answer | None:
    look, hops = found.look, found.last.waiter.hops
    if look is None:
        return None
    if found.document is None:
        return pending(url, hops, look.waiting) if look.pending else None
    return from_table(
        url, found.document, hops, fresh_until_ms=look.fresh_until_ms, waiting=look.waiting, fields=fields
    )
