"""The public topics' JSON: what users consume from `url-completed` and `dead-letters`.

The schemas are published in `topology/schemas/`; a test holds them against these classes. They only grow: a field
may be added with a default, never renamed, removed or given another meaning.
"""

import base64
import time
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

from topology.outcomes import POLICY, Outcome
from topology.records import Completion, Hop, Http, Image, Metadata, Share, Waiter

SCHEMA_VERSION: Final = 1


class PublicHop(msgspec.Struct, frozen=True):
    """One redirect that was followed; `ms` on the web. A status of 200 is a meta refresh."""

    url: str
    status: int
    ms: int


class PublicHttp(msgspec.Struct, frozen=True):
    """What the last server said; `bytes` of body after content decoding."""

    status: int
    content_type: str | None
    bytes: int
    truncated: bool


class PublicImage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The representative image; pixels as the page declares them (the record has them measured)."""

    url: str
    width: int | None = None
    height: int | None = None
    media_type: str | None = None
    alt: str | None = None


class PublicMetadata(msgspec.Struct, frozen=True):
    """What the page says of itself. `provenance` names the tag a field came from."""

    title: str | None = None
    description: str | None = None
    image: PublicImage | None = None
    language: str | None = None
    category: str | None = None
    media_type: str | None = None
    site_name: str | None = None
    author: str | None = None
    published: str | None = None
    icon: str | None = None
    provenance: dict[str, str] = {}
    extra: dict[str, Any] = {}


class PublicContent(msgspec.Struct, frozen=True):
    """The archived body's identity; where it stands is in the record, once its segment is safe."""

    digest: str


class PublicTimes(msgspec.Struct, frozen=True):
    """`tweeted`, `read`, `completed`: points in time, ISO 8601. The rest: milliseconds.

    `queued_ms` in the `tweets` topic; `waited_ms` for politeness; `web_ms` on the web; `own_ms` is what is left of
    the time from `read` to `completed`.
    """

    tweeted: str | None
    read: str
    queued_ms: int
    waited_ms: int
    web_ms: int
    own_ms: int
    completed: str


class UrlCompleted(msgspec.Struct, frozen=True):
    """How one (tweet, URL) ended. By the time it arrives the metadata store answers for the URL."""

    schema: int
    tweet_id: str
    url: str
    outcome: Outcome
    reason: str | None
    canonical_url: str | None
    resolved: bool
    hops: list[PublicHop]
    http: PublicHttp | None
    metadata: PublicMetadata | None
    content: PublicContent | None
    times: PublicTimes


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that could not be read, verbatim: as text, or in base64 when it is not UTF-8."""

    schema: int
    reason: str
    source: str  # FILE:LINE, or topic/partition/offset
    text: str | None = None
    base64: str | None = None


def announcement(completion: Completion, waiter: Waiter, share: Share, now_ms: int) -> UrlCompleted:
    """Say how one (tweet, URL) ended."""
    document = completion.document
    cached = completion.cached and POLICY[document.outcome].answers_as_cached
    return UrlCompleted(
        SCHEMA_VERSION,
        share.tweet_id,
        share.url,
        Outcome.CACHED if cached else document.outcome,
        document.reason,
        document.canonical_url,
        is_resolved(completion),
        [_hop(hop) for hop in waiter.hops],
        None if document.http is None else _http(document.http),
        None if document.metadata is None else _metadata(document.metadata),
        PublicContent(document.digest) if document.digest else None,
        times(waiter, share, now_ms),
    )


def is_resolved(completion: Completion) -> bool:
    """Say whether the last hop can be trusted: it answered 200, and was not cut, refused or a wall."""
    document = completion.document
    http = document.http
    whole = http is not None and http.status == HTTPStatus.OK and not http.truncated
    return document.outcome is Outcome.FETCHED and whole


def own_ms(waiter: Waiter, now_ms: int) -> int:
    """Return what a request cost us: from reading its tweet to now, less the web and politeness."""
    return max(0, now_ms - waiter.read_ms - waiter.waited_ms - waiter.web_ms)


def dead_letter(raw: bytes, reason: str, source: str) -> bytes:
    """Encode something unreadable so that it can be read again byte for byte."""
    try:
        letter = DeadLetter(SCHEMA_VERSION, reason, source, text=raw.decode())
    except UnicodeDecodeError:
        letter = DeadLetter(SCHEMA_VERSION, reason, source, base64=base64.b64encode(raw).decode())
    return msgspec.json.encode(letter)


def iso(at_ms: int) -> str:
    """Write a point in time (epoch ms) as ISO 8601 with milliseconds."""
    return f"{_second(at_ms // 1000)}.{at_ms % 1000:03d}Z"


@lru_cache(maxsize=256)
def _second(at_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s))  # every announcement writes three of these


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of every public topic that goes out, by topic."""
    completed = msgspec.json.schema(UrlCompleted)
    completed["$defs"]["Outcome"]["enum"].remove(Outcome.REDIRECTED)  # nobody's ending: requests follow it
    return {"url-completed": completed, "dead-letters": msgspec.json.schema(DeadLetter)}


def _hop(hop: Hop) -> PublicHop:
    return PublicHop(hop.url, hop.status, hop.ms)


def _http(said: Http) -> PublicHttp:
    return PublicHttp(said.status, said.content_type, said.body_bytes, said.truncated)


def _metadata(found: Metadata) -> PublicMetadata:
    return PublicMetadata(
        found.title,
        found.description,
        None if found.image is None else _image(found.image),
        found.language,
        found.category,
        found.media_type,
        found.site_name,
        found.author,
        found.published,
        found.icon,
        found.provenance,
        found.extra,
    )


def _image(image: Image) -> PublicImage:
    return PublicImage(image.url, image.width, image.height, image.media_type, image.alt)


def times(waiter: Waiter, share: Share, now_ms: int) -> PublicTimes:
    """Say where the time of one request went, were it announced now."""
    return PublicTimes(
        share.tweeted,
        iso(waiter.read_ms),
        waiter.queued_ms,
        waiter.waited_ms,
        waiter.web_ms,
        own_ms(waiter, now_ms),
        iso(now_ms),
    )
