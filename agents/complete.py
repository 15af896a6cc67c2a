"""completions -> metadata store, then url-completed. Key: registered domain. Owns the rows it writes.

Read after notify: an announcement is sent when its row can be read, never before. Every write is idempotent, so a
replay leaves the same rows and the same share counts.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from faust.types import AppT, EventT, StreamT, TopicT

from agents.batches import Batches
from agents.clients.metadata import Ending, MetadataStore, Shared
from agents.pump import Acted, Pump
from topology import names
from topology.events import Events
from topology.outcomes import Outcome
from topology.outlets import Outlet
from topology.public import UrlCompleted, announcement, is_resolved, iso, own_ms, times
from topology.records import Completion, Document, Image, Share, Waiter
from topology.urls import canonical

_BATCH_MAX: Final = 500
_LINGER_S: Final = 0.004

_decode: Final = msgspec.msgpack.Decoder(Completion).decode
_json: Final = msgspec.json.Encoder().encode

Work = tuple[list[Ending], dict[str, dict[str, Any]]]  # endings to write, updates by URL


# -- thought


def record_fields(document: Document, completed_ms: int) -> dict[str, Any]:
    """Return the fields of a record that this ending knows. A failed refetch leaves what a page once said."""
    fields: dict[str, Any] = {
        "url": document.url,
        "outcome": document.outcome.value,
        "reason": document.reason,
        "fetched": iso(completed_ms),
        "http": document.http and _plain(document.http),
        "resolved": is_resolved(Completion(document, ())),
    }
    if document.metadata is not None:
        fields.update(_metadata_fields(document))
    return fields


def _metadata_fields(document: Document) -> dict[str, Any]:
    metadata = document.metadata
    assert metadata is not None  # noqa: S101 - asked for by the caller
    fields = {name: getattr(metadata, name) for name in metadata.__struct_fields__ if name != "image"}
    fields["provenance"] = dict(metadata.provenance) or None
    fields["extra"] = dict(metadata.extra) or None
    fields["image"] = metadata.image and _plain(metadata.image)
    fields["digest"] = document.digest
    return fields


def _plain(struct: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not None}


def ending_of(completion: Completion, answers: Mapping[Share, UrlCompleted], now_ms: int) -> Ending:
    """Return what the store has to know of this ending: its record, its aliases, and whom it answers."""
    document = completion.document
    key = document.canonical_url or canonical(document.url) or document.url
    aliases = {document.url}
    for waiter in completion.waiters:
        aliases.update(_ways(waiter))
    fields = {} if completion.cached else record_fields(document, now_ms)
    shares = tuple(
        Shared(share.tweet_id, share.url, day_of(share.tweeted, now_ms), msgspec.Raw(_json(answer)))
        for share, answer in answers.items()
    )
    return Ending(key, fields, tuple(sorted(aliases - {key})), shares)


def _ways(waiter: Waiter) -> Iterator[str]:
    """Every URL that led this waiter here."""
    yield from (hop.url for hop in waiter.hops)
    if waiter.share is not None:
        yield waiter.share.url
        yield from waiter.share.aliases


def day_of(tweeted: str | None, now_ms: int) -> str:
    """Return the UTC day of a tweet; of today when it does not say (v2: ISO 8601, v1.1: RFC 2822 like)."""
    return (_day(tweeted) if tweeted else None) or iso(now_ms)[:10]


@lru_cache(maxsize=4096)  # a tweet has several URLs, and a crowd tweets in the same second
def _day(tweeted: str) -> str | None:
    for read in (datetime.fromisoformat, _v1_date, parsedate_to_datetime):
        try:
            return read(tweeted).astimezone(UTC).date().isoformat()
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def _v1_date(text: str) -> datetime:
    return datetime.strptime(text, "%a %b %d %H:%M:%S %z %Y")


def image_update(document: Document) -> dict[str, Any]:
    """Return the fields a fetched image adds to its page's record."""
    image = document.metadata.image if document.metadata else None
    if document.outcome is Outcome.FETCHED and image is not None:
        return {"image_measured": _plain(image)}
    return {"image_measured": _plain(Image(document.url)) | {"outcome": document.outcome.value}}


# -- hands


class Completer:
    """Writes rows in batches, then announces."""

    def __init__(
        self,
        events: Events,
        clock: Callable[[], float],
        *,
        metadata: MetadataStore,
        to_listeners: Outlet,
    ) -> None:
        self._events = events
        self._clock = clock
        self._metadata = metadata
        self._to_listeners = to_listeners
        self.batches: Batches[Work, None] = Batches(self._write, items_max=_BATCH_MAX, linger_s=_LINGER_S)

    async def on_completion(self, event: EventT[bytes]) -> Acted:
        """Store one ending and tell everybody who waited for it."""
        return Acted(tuple(await self._complete(_decode(event.value))))

    async def give_up(self, raw: bytes, reason: str) -> "Future[Any]":
        """Tell everybody who waited that a fault of ours kept the ending from being stored as it was."""
        completion = _decode(raw)
        ended = completion.document
        failed = Document(ended.url, ended.domain, ended.fetch_id, ended.kind, Outcome.FAILED, reason)
        return asyncio.gather(*await self._complete(Completion(failed, completion.waiters)))

    async def _complete(self, completion: Completion) -> "list[Future[Any]]":
        began_s = self._clock()
        now_ms = int(began_s * 1000)
        shares = {w.share: w for w in completion.waiters if w.share is not None}
        answers = {share: announcement(completion, waiter, share, now_ms) for share, waiter in shares.items()}
        parents = [w.parent for w in completion.waiters if w.parent is not None]
        ending = [ending_of(completion, answers, now_ms)] if answers else []
        await self.batches.add((ending, {parent: image_update(completion.document) for parent in parents}))
        self._events.count("updated", "image", len(parents))
        self._events.took("store", (self._clock() - began_s) * 1000)
        return [await self._announce(share, waiter, answers[share]) for share, waiter in shares.items()]

    async def _announce(self, share: Share, waiter: Waiter, answer: UrlCompleted) -> Any:
        done_ms = int(self._clock() * 1000)
        self._events.count("completed", answer.outcome.value)
        self._events.took("total", done_ms - waiter.read_ms)
        self._events.took("own", own_ms(waiter, done_ms))
        now = msgspec.structs.replace(answer, times=times(waiter, share, done_ms))  # the write took its time too
        return await self._to_listeners.raw(share.tweet_id, _json(now))

    async def _write(self, works: list[Work]) -> list[None]:
        endings = [ending for work, _ in works for ending in work]
        updates: dict[str, dict[str, Any]] = {}
        for _, changes in works:
            for url, fields in changes.items():
                updates.setdefault(url, {}).update(fields)
        if endings:
            await self._metadata.write(endings)
        if updates:
            await self._metadata.update(updates)
        return [None] * len(works)


def attach(app: AppT, *, completions: TopicT, completer: Completer, pump: Callable[..., Pump]) -> None:
    """Attach the last stage."""

    @app.agent(completions, name=names.COMPLETE)
    async def complete(stream: StreamT[bytes]) -> None:
        """Store each ending, then announce it."""
        await pump(names.COMPLETE, concurrent=True).run(stream, completer.on_completion, completer.give_up)
