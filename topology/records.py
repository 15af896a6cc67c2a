"""What travels between the stages: msgspec structs, and the trail each request carries.

Structs are array-like on the wire (no field names): a field may be appended with a default, never moved.
Times ending in `_ms` that are points in time count from the epoch; durations say so in their comment.
"""

from typing import Any

import msgspec

from topology.outcomes import Outcome


class Wire(msgspec.Struct, array_like=True, omit_defaults=True, gc=False, frozen=True):
    """Base of everything internal that is written to the log or to a table."""


class Hop(Wire, frozen=True):
    """One redirect followed on the way to a page. `ms` is the time it took on the web."""

    url: str
    status: int
    ms: int


class Share(Wire, frozen=True):
    """One (tweet, URL): who asked. Exactly one `url-completed` answers it."""

    tweet_id: str
    url: str  # as shared: case kept, never rewritten
    aliases: tuple[str, ...] = ()  # other spellings in the tweet, such as the t.co form
    tweeted: str | None = None  # the tweet's created_at, as it came


class Waiter(Wire, frozen=True):
    """A request on its way: what has to be answered, and the trail so far.

    Exactly one of `share` and `parent` is set: a share is announced, a dependent fetch (an image) updates
    the record of its parent.
    """

    read_ms: int  # when the tweet was read (epoch)
    attached_ms: int  # when it began to wait at the present URL (epoch)
    share: Share | None = None
    parent: str | None = None  # canonical URL of the page whose image this is
    hops: tuple[Hop, ...] = ()
    waited_ms: int = 0  # duration in politeness waits, hops included
    web_ms: int = 0  # duration on the web, hops included
    queued_ms: int = 0  # duration the tweet waited in `tweets` before it was read


class UrlRequest(Wire, frozen=True, tag="url"):
    """A URL somebody wants to know about. Key: `domain`."""

    url: str  # what is fetched and the identity in the urls table: WHATWG-parsed, fragment removed
    domain: str
    waiter: Waiter


class Sweep(Wire, frozen=True, tag="sweep"):
    """A note to the owner of one partition: forget what is past its window, from `cursor` on."""

    cursor: bytes = b""


class FetchRequest(Wire, frozen=True, tag="fetch"):
    """One fetch to make. Key: `domain`."""

    url: str
    domain: str
    fetch_id: str  # the same for a replay of the same decision, another for the next window
    kind: str = "page"  # or "image"
    asked_ms: int = 0  # when it was decided (epoch)
    attempt: int = 0  # how often it has been tried
    waited_ms: int = 0  # durations of earlier attempts and deferrals
    web_ms: int = 0
    returning: bool = False  # it has been deferred, and waited its time


class Deferred(Wire, frozen=True):
    """Something that may not happen before `due_ms`. Key: `domain`. Exactly one of the two is set."""

    due_ms: int
    fetch: FetchRequest | None = None
    request: UrlRequest | None = None


class Visit(Wire, frozen=True):
    """When and how one fetch went. Points in time are epoch ms; they are zero when nothing was asked."""

    admitted_ms: int = 0  # queued at its domain
    started_ms: int = 0  # the request was sent
    finished_ms: int = 0  # the last byte was read, or the attempt given up
    address: str = ""  # the address connected to
    waited_ms: int = 0  # duration of politeness: waiting for slots, retries included
    web_ms: int = 0  # duration on the web: robots.txt, connecting, asking, reading


class Http(Wire, frozen=True):
    """What the server said."""

    status: int
    content_type: str | None = None
    body_bytes: int = 0  # after content decoding, as kept
    truncated: bool = False


class Page(Wire, frozen=True):
    """A response with a body. Key: `domain`. Read by parse and by archive."""

    url: str
    domain: str
    fetch_id: str
    kind: str
    http: Http
    visit: Visit
    body: bytes  # a raw deflate stream (RFC 1951) of the decoded body; ends in a sync flush, without a final block
    body_crc32: int  # of the decoded body
    body_sha1: bytes  # of the decoded body
    reason_phrase: str = ""
    request_headers: tuple[tuple[str, str], ...] = ()
    response_headers: tuple[tuple[str, str], ...] = ()


class Image(Wire, frozen=True):
    """The representative image of a page. Sizes are pixels; None until declared or measured."""

    url: str
    width: int | None = None
    height: int | None = None
    media_type: str | None = None
    alt: str | None = None


class Metadata(Wire, frozen=True):
    """What a page says of itself. `provenance` names the tag each field came from."""

    title: str | None = None
    description: str | None = None
    image: Image | None = None
    site_name: str | None = None
    author: str | None = None
    published: str | None = None  # ISO 8601
    language: str | None = None  # BCP 47
    category: str | None = None  # article, video, product ... from og:type or JSON-LD
    media_type: str | None = None  # html, image, pdf, audio, video, json, text, other
    icon: str | None = None
    provenance: dict[str, str] = {}
    extra: dict[str, Any] = {}  # fields of site rules


class Document(Wire, frozen=True):
    """How the fetch of one URL ended. Key: `domain`. The urls table remembers it."""

    url: str
    domain: str
    fetch_id: str
    kind: str
    outcome: Outcome
    reason: str | None = None
    http: Http | None = None
    visit: Visit = Visit()
    canonical_url: str | None = None
    metadata: Metadata | None = None
    digest: str | None = None  # sha1:<base32> of the decoded body, as in the WARC record
    redirect_to: str | None = None  # with outcome redirected
    redirect_status: int = 0  # 200 for a meta refresh


class Completion(Wire, frozen=True):
    """An ending and everybody it answers. Key: `domain`."""

    document: Document
    waiters: tuple[Waiter, ...]
    cached: bool = False  # answered from memory, no fetch was made


class Placed(Wire, frozen=True):
    """Where a page was archived: `length` bytes of `segment` from `offset` are its response record."""

    segment: str
    offset: int
    length: int


def encode(record: Wire) -> bytes:
    """Encode a record for the log or a table."""
    return _encode(record)


_encode = msgspec.msgpack.Encoder().encode
