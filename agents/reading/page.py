"""Read a body: the one function the rest of the topology calls, and what it answers.

Everything here is pure and bounded, runs in a process pool, and never raises on what the web sends.
"""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from agents.reading import authors, canonical, cards, media, published
from agents.reading.body import bylines, dates, first_paragraph, near_heading
from agents.reading.charset import decode, encoding_of
from agents.reading.images import read_image
from agents.reading.jsonld import Linked, linked
from agents.reading.language import language
from agents.reading.refresh import parse_refresh
from agents.reading.rules import SiteRules, apply
from agents.reading.tags import HTML_BYTES_MAX, Tags, parse, tags_of
from agents.reading.taming import tamed
from agents.reading.text import web_url
from agents.reading.walls import wall
from topology.records import Image, Metadata

_NOINDEX: Final = frozenset(("noindex", "none"))
_ROBOTS: Final = ("robots", "googlebot", "spiderduck")


class Reading(msgspec.Struct, frozen=True):
    """What a body says. `refresh` is (seconds, absolute URL); `wall` is the reason the page is not the page."""

    metadata: Metadata
    canonical_url: str | None = None
    refresh: tuple[float, str] | None = None
    noindex: bool = False
    wall: str | None = None
    encoding: str = ""  # WHATWG name; empty for what is not text of a page


def read(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    rules: SiteRules | None = None,
    status: int = 200,
    same_site: canonical.SameSite = canonical.same_site,
) -> Reading:
    """Read a response body as what it is. `url` is the address it came from, after redirects. Never raises."""
    media_type = media.media_type_of(content_type, body)
    kind = media.kind_of(media_type)
    if kind == "html":
        return _read_html(body, url=url, content_type=content_type, rules=rules, status=status, same_site=same_site)
    if kind == "image":
        image = read_image(body, content_type=media_type, url=url)
        return Reading(Metadata(image=image, media_type=kind, provenance={"image": "header"}))
    return Reading(Metadata(media_type=kind))


def noindex(robots: str) -> bool:
    """Whether a robots meta element or an X-Robots-Tag header forbids showing the page.

    A header may name the agent it is for before a colon; what is for another agent is not for us.
    """
    agent, colon, rest = robots.partition(":")
    if colon and "," not in agent and agent.strip().lower() not in {"unavailable_after", *_NOINDEX}:
        if agent.strip().lower() not in _ROBOTS:
            return False
        robots = rest
    return any(directive.strip().lower() in _NOINDEX for directive in robots.split(","))


def _read_html(
    body: bytes,
    *,
    url: str,
    content_type: str | None,
    rules: SiteRules | None,
    status: int,
    same_site: canonical.SameSite,
) -> Reading:
    encoding = encoding_of(body, content_type)
    body = body[:HTML_BYTES_MAX]
    # UTF-8 goes to the parser as it is: it decodes, with replacements, only what is asked for.
    markup = tamed(body if encoding == "utf-8" else decode(body, encoding).encode("utf-8", "replace"))
    try:
        tree = parse(markup)
    except SelectolaxError:
        return Reading(Metadata(media_type="html"), encoding=encoding)
    tags = tags_of(tree, url)
    host = (urlsplit(url).hostname or "").lower()
    ruled = rules.for_host(host) if rules else {}
    said = apply(ruled, decode(body, encoding)) if ruled else {}
    return Reading(
        metadata=_metadata(tree, tags, said, url=url, host=host),
        canonical_url=canonical.canonical_url(tags, url=url, same_site=same_site),
        refresh=_refresh(tags, url),
        noindex=any(noindex(content) for name in _ROBOTS for content in tags.metas.get(name, ())),
        wall=wall(tags, tree, body=body, url=url, status=status),
        encoding=encoding,
    )


def _refresh(tags: Tags, url: str) -> tuple[float, str] | None:
    """Where the page sends its reader; a page that reloads itself sends nobody anywhere."""
    value = tags.http_equiv.get("refresh")
    found = parse_refresh(value, tags.base) if value else None
    return found if found and _page_of(found[1]) != _page_of(url) else None


def _page_of(url: str) -> str:
    return url.partition("#")[0]


def _metadata(tree: LexborHTMLParser, tags: Tags, said: dict[str, str], *, url: str, host: str) -> Metadata:
    """Put the fields together: site rules first, then what the page declares, then what it shows."""
    ld = linked(tags.ld)
    site = cards.site_name(tags, ld)
    values: dict[str, Any] = {}
    provenance: dict[str, str] = {}
    for field, found in (
        ("title", cards.title(tags, ld, site[1] if site else None)),
        ("description", cards.description(tags, ld) or first_paragraph(tree)),
        ("image", cards.image(tags, ld) or cards.shown_image(tree, tags)),
        ("site_name", site),
        *_who_and_when(tree, tags, ld, url=url, host=host),
        ("language", language(tags, ld.language, tree)),
        ("category", cards.category(tags, ld)),
        ("icon", cards.icon(tags)),
    ):
        if found:
            provenance[field], values[field] = found
    extra = _ruled(said, values, provenance, base=tags.base)
    return Metadata(**values, media_type="html", provenance=provenance, extra=extra)


def _who_and_when(
    tree: LexborHTMLParser, tags: Tags, ld: Linked, *, url: str, host: str
) -> Iterator[tuple[str, tuple[str, str] | None]]:
    own = authors.own_names(tags, ld.site_name, host)
    yield "author", authors.authors(tags, ld.authors, bylines(tree), near_heading(tree), own)
    shown = (candidate for find in (dates, bylines) for candidate in find(tree))  # a byline may hold the date
    yield "published", published.published(tags, ld.published, ld.modified, shown, near_heading(tree), url=url)


def _ruled(said: dict[str, str], values: dict[str, Any], provenance: dict[str, str], *, base: str) -> dict[str, Any]:
    """Let site rules overwrite fields; what they say of other names is returned."""
    extra: dict[str, Any] = {}
    for field, text in said.items():
        value: Any = text
        if field in {"image", "icon"}:
            url = web_url(text, base)
            value = Image(url) if url and field == "image" else url
        if field in _RULED and value:
            values[field], provenance[field] = value, "rule"
        elif field not in _RULED:
            extra[field] = text
    return extra


_RULED: Final = frozenset(
    ("title", "description", "image", "site_name", "author", "published", "language", "category", "icon")
)
