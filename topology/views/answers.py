"""What `/urls` answers, in the shape of a `url-completed`: an entry of the table, or a record of the store."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from agents.clients.metadata import Record, with_content
from topology.outcomes import Outcome
from topology.public import PublicHop, PublicHttp, PublicImage, PublicMetadata, announcement, iso
from topology.records import Completion, Document, Hop, Share, Waiter
from topology.urls import Refusal
from topology.views.http import problem

_NAMES: Final = frozenset(PublicMetadata.__struct_fields__)

Fields = frozenset[str] | None  # fields of the metadata that are wanted; None: all
State = Literal["known", "pending", "unknown"]


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """The archived body: its identity, and its response record in a WARC segment once that is safe."""

    digest: str | None = None
    segment: str | None = None
    offset: int | None = None
    length: int | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one URL.

    `known`: how its last fetch ended is known; `waiting` requests wait for a newer one when there are any.
    `pending`: its first fetch is on its way. `fresh_until`: until then a share is answered without a fetch.
    """

    url: str
    state: State
    source: Literal["table", "store"] | None = None
    outcome: str | None = None
    reason: str | None = None
    canonical_url: str | None = None
    resolved: bool = False
    hops: list[PublicHop] = []
    http: PublicHttp | None = None
    metadata: PublicMetadata | dict[str, Any] | None = None
    content: Content | None = None
    fetched: str | None = None
    fresh_until: str | None = None
    waiting: int = 0


def fields_of(names: Iterable[str] | None) -> Fields:
    """Check which fields of the metadata are wanted; 400 when one is unknown."""
    if names is None:
        return None
    wanted = frozenset(names)
    if strange := wanted - _NAMES:
        raise problem(400, f"fields: there is no {min(strange)[:80]!r}; there are {', '.join(sorted(_NAMES))}.")
    return wanted


def unknown(url: str, hops: tuple[Hop, ...] = ()) -> Answer:
    """Say that nothing is known of a URL, or of where it leads."""
    return Answer(url=url, state="unknown", hops=[PublicHop(hop.url, hop.status, hop.ms) for hop in hops])


def invalid(url: str, refusal: Refusal) -> Answer:
    """Say that a URL cannot be asked for: that much is known of it."""
    return Answer(url=url, state="known", outcome=Outcome.INVALID.value, reason=refusal.reason)


def pending(url: str, hops: tuple[Hop, ...], waiting: int) -> Answer:
    """Say that the first fetch of a URL, or of where it leads, is on its way."""
    return msgspec.structs.replace(unknown(url, hops), state="pending", source="table", waiting=waiting)


def from_table(
    url: str, document: Document, hops: tuple[Hop, ...], *, fresh_until_ms: int, waiting: int, fields: Fields
) -> Answer:
    """Say how a fetch ended, in the words it was announced with."""
    said = announcement(Completion(document, ()), Waiter(0, 0, hops=hops), Share("", url), 0)
    return Answer(
        url=url,
        state="known",
        source="table",
        outcome=said.outcome.value,
        reason=said.reason,
        canonical_url=said.canonical_url,
        resolved=said.resolved,
        hops=said.hops,
        http=said.http,
        metadata=_chosen(said.metadata, fields),
        content=Content(said.content.digest) if said.content else None,
        fetched=iso(document.visit.finished_ms) if document.visit.finished_ms else None,
        fresh_until=iso(fresh_until_ms),
        waiting=waiting,
    )


def from_record(url: str, record: Record, fields: Fields) -> Answer:
    """Say what the metadata store knows. It keeps no hops: they belong to whoever shared the URL."""
    known = with_content(record).fields
    return Answer(
        url=url,
        state="known",
        source="store",
        outcome=known.get("outcome"),
        reason=known.get("reason"),
        canonical_url=record.canonical_url,
        resolved=known.get("resolved", False),
        http=_http(known.get("http")),
        metadata=_chosen(_metadata(known), fields),
        content=_content(known),
        fetched=known.get("fetched"),
    )


def _chosen(metadata: PublicMetadata | None, fields: Fields) -> PublicMetadata | dict[str, Any] | None:
    if metadata is None or fields is None:
        return metadata
    return {name: getattr(metadata, name) for name in PublicMetadata.__struct_fields__ if name in fields}


def _metadata(known: Mapping[str, Any]) -> PublicMetadata | None:
    found = {name: known[name] for name in _NAMES if name in known}
    if not found:
        return None
    image = {**(known.get("image") or {}), **(known.get("image_measured") or {})}  # measured is better than declared
    return PublicMetadata(**{**found, "image": msgspec.convert(image, PublicImage) if "url" in image else None})


def _http(said: Mapping[str, Any] | None) -> PublicHttp | None:
    if said is None:
        return None
    body_bytes, truncated = said.get("body_bytes", 0), said.get("truncated", False)
    return PublicHttp(said["status"], said.get("content_type"), body_bytes, truncated)


def _content(known: Mapping[str, Any]) -> Content | None:
    place = known.get("content") or {}
    content = Content(known.get("digest"), place.get("segment"), place.get("offset"), place.get("length"))
    return None if content == Content() else content
