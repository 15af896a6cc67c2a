"""The card of a page: title, description, image, site, category and icon, each from its best source.

One order for all: OpenGraph (https://ogp.me), Twitter card, JSON-LD, microdata, plain HTML. A source that says
nothing, or something that cannot be true (an empty title, `undefined`, a data: URL), gives way to the next.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from agents.reading.body import short_text
from agents.reading.jsonld import Linked
from agents.reading.tags import Tags
from agents.reading.text import DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, TITLE_CHARS_MAX, line, web_url
from topology.records import Image

PIXELS_MAX: Final = 100_000  # a declared side longer than this is a mistake
PIXEL_MIN: Final = 2  # an image of one pixel counts visits
ALT_CHARS_MAX: Final = 500
SHOWN_MAX: Final = 40
SHOWN_CHARS_MAX: Final = 1000
SHOWN_PIXELS_MIN: Final = 150
HEADINGS_MAX: Final = 3
HEADING_CHARS_MIN: Final = 8

Found = tuple[str, str]  # provenance, text

_NUMBER: Final = re.compile(r"\s*(\d{1,6})(?:\.\d+)?\s*(?:px)?\s*")
_PIXEL: Final = re.compile(
    r"(?:^|[/_.-])(?:1x1|pixel|spacer|blank|transparent|clear)\.(?:gif|png)|scorecardresearch", re.IGNORECASE
)
_DECORATION: Final = re.compile(
    r"logo|icon|avatar|sprite|emoji|smil(?:ey|ies)|badge|button|gravatar|author|banner|\.svg", re.IGNORECASE
)
_MEDIA_TYPE: Final = re.compile(r"image/[a-z0-9.+-]{2,40}")
# What stands between a headline and the name of its site.
_BOUNDARY: Final = r"(?:\s+(?:[|•·»\u203a\uff5c]|[\u2013\u2014-]{1,2}|::?)\s+|:\s+)"
_AT_END: Final = re.compile(rf"{_BOUNDARY}$")
_AT_START: Final = re.compile(_BOUNDARY)

_OG_CATEGORIES: Final = {
    "article": "article",
    "blog": "website",
    "book": "book",
    "books": "book",
    "event": "event",
    "movie": "video",
    "music": "music",
    "news": "article",
    "object": None,
    "og": None,
    "podcast": "audio",
    "post": "article",
    "product": "product",
    "profile": "profile",
    "recipe": "recipe",
    "song": "music",
    "tv_show": "video",
    "tweet": "article",
    "video": "video",
    "website": "website",
    "audio": "audio",
    "game": "product",
}


def title(tags: Tags, ld: Linked, site_name: str | None) -> Found | None:
    """The headline, without the site's name that many pages append to it."""
    for source, value in (
        ("og:title", tags.meta("og:title")),
        ("twitter:title", tags.meta("twitter:title")),
        ("json-ld", ld.headline),
        ("itemprop=headline", _microdata(tags, "headline")),
        ("title", tags.title),
        ("h1", tags.headings[0] if tags.headings else None),
        ("meta title", tags.meta("title", "dc.title", "dcterms.title", "citation_title")),
    ):
        if text := line(value, TITLE_CHARS_MAX):
            return source, _visible(without_site(text, site_name), tags.headings)
    return None


def _visible(title: str, headings: list[str]) -> str:
    """The heading a title consists of, but for an addition: the section, the year, the site under another name.

    The addition must be the shorter part, or a heading that names the site would pass for the headline.
    """
    for heading in headings[:HEADINGS_MAX]:
        shown = line(heading, TITLE_CHARS_MAX)
        if not shown or not HEADING_CHARS_MIN <= len(shown) < len(title) < 2 * len(shown):
            continue
        before, after = title[: -len(shown)], title[len(shown) :]
        if title.startswith(shown) and not after[0].isalnum():
            return shown
        if title.endswith(shown) and not before.rstrip()[-1:].isalnum():
            return shown
    return title


def without_site(text: str, site_name: str | None) -> str:
    """A title without the site's name at its end or start; the whole title when nothing else would be left."""
    size = len(site_name or "")
    if site_name is None or not 0 < size < len(text):
        return text
    name = site_name.casefold()
    if text[-size:].casefold() == name and (found := _AT_END.search(text[:-size])):
        return text[: found.start()] or text
    if text[:size].casefold() == name and (found := _AT_START.match(text[size:])):
        return text[size + found.end() :] or text
    return text


def description(tags: Tags, ld: Linked) -> Found | None:
    """The summary a page gives of itself."""
    for source, value in (
        ("og:description", tags.meta("og:description")),
        ("twitter:description", tags.meta("twitter:description")),
        ("description", tags.meta("description")),
        ("json-ld", ld.description),
        ("itemprop=description", _microdata(tags, "description")),
        (
            "dc.description",
            tags.meta("dc.description", "dcterms.description", "dcterms.abstract", "sailthru.description"),
        ),
    ):
        if text := line(value, DESCRIPTION_CHARS_MAX):
            return source, text
    return None


def site_name(tags: Tags, ld: Linked) -> Found | None:
    """What the site calls itself."""
    for source, value in (
        ("og:site_name", tags.meta("og:site_name")),
        ("json-ld", ld.site_name),
        ("application-name", tags.meta("application-name", "apple-mobile-web-app-title")),
        ("publisher", tags.meta("publisher", "dc.publisher", "dcterms.publisher")),
    ):
        text = line(value, NAME_CHARS_MAX)
        if text and not text.startswith(("http:", "https:")):
            return source, text
    return None


def category(tags: Tags, ld: Linked) -> Found | None:
    """What kind of thing a page shows. `website` is what templates say of everything: JSON-LD may know better."""
    og_type = (tags.meta("og:type") or "").lower()
    named = _OG_CATEGORIES.get(re.split(r"[.:]", og_type)[-1]) or _OG_CATEGORIES.get(re.split(r"[.:]", og_type)[0])
    if named and named != "website":
        return "og:type", named
    if ld.category and ld.category != "website":
        return "json-ld", ld.category
    if named:
        return "og:type", named
    return ("json-ld", ld.category) if ld.category else None


def icon(tags: Tags) -> Found | None:
    """The site's icon, as a page links to it."""
    for rel in ("icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"):
        if url := web_url(tags.href(rel), tags.base):
            return f"link rel={rel}", url
    return None


def image(tags: Tags, ld: Linked) -> tuple[str, Image] | None:
    """The image that stands for the page, with what is declared of it."""
    return next(_images(tags, ld), None)


def _images(tags: Tags, ld: Linked) -> Iterator[tuple[str, Image]]:
    for group in _og_groups(tags.images):
        yield from _picture("og:image", tags.base, **group)
    for name in ("twitter:image", "twitter:image:src", "twitter:image0"):
        yield from _picture(name, tags.base, url=tags.meta(name), alt=tags.meta("twitter:image:alt"))
    if ld.image:
        yield from _picture("json-ld", tags.base, **ld.image)
    for prop in ("image", "thumbnailUrl"):
        for node in tags.itemprops.get(prop, ())[:3]:
            yield from _picture(f"itemprop={prop}", tags.base, url=_microdata_url(node))
    yield from _picture("link rel=image_src", tags.base, url=tags.href("image_src"))
    yield from _picture("thumbnail", tags.base, url=tags.meta("thumbnail", "sailthru.image.full", "parsely-image-url"))


def shown_image(tree: LexborHTMLParser, tags: Tags) -> tuple[str, Image] | None:
    """The first image of the page's own content that is large enough to stand for it, or says nothing of size."""
    for node in tree.css("article img,main img,[itemprop~=articleBody] img,figure img")[:SHOWN_MAX]:
        attributes = node.attributes
        marks = f"{attributes.get('class')} {attributes.get('src')} {attributes.get('alt')}"[:SHOWN_CHARS_MAX]
        sides = _side(attributes.get("width")), _side(attributes.get("height"))
        if _DECORATION.search(marks) or any(side is not None and side < SHOWN_PIXELS_MIN for side in sides):
            continue
        url = next(filter(None, map(attributes.get, ("data-src", "data-original", "data-lazy-src", "src"))), None)
        for found in _picture("img", tags.base, url=url, width=sides[0], height=sides[1], alt=attributes.get("alt")):
            return found
    return None


def _og_groups(declared: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """OpenGraph arrays: a structured property belongs to the image declared before it (ogp.me, "Arrays")."""
    groups: list[dict[str, Any]] = []
    for name, content in declared:
        key = {
            "": "url",
            ":url": "url",
            ":secure_url": "url",
            ":width": "width",
            ":height": "height",
            ":alt": "alt",
            ":type": "media_type",
        }.get(name.removeprefix("og:image"))
        if key is None:
            continue
        if key == "url" and (name == "og:image" or not groups):
            groups.append({"url": content})
        elif groups and key == "url":
            groups[-1]["url"] = groups[-1]["url"] or content
        elif groups:
            groups[-1].setdefault(key, content)
    return groups


def _picture(
    source: str,
    base: str,
    *,
    url: str | None,
    width: Any = None,
    height: Any = None,
    alt: str | None = None,
    media_type: str | None = None,
) -> Iterator[tuple[str, Image]]:
    absolute = web_url(url, base)
    if absolute is None or _PIXEL.search(absolute):
        return
    sides = _side(width), _side(height)
    if any(side is not None and side < PIXEL_MIN for side in sides):
        return
    kind = _MEDIA_TYPE.fullmatch(media_type.strip().lower()) if media_type else None
    yield source, Image(absolute, *sides, kind[0] if kind else None, line(alt, ALT_CHARS_MAX))


def _side(value: Any) -> int | None:
    """A length in pixels; None for what is not one."""
    if isinstance(value, dict):
        value = value.get("value")  # schema.org QuantitativeValue
    found = _NUMBER.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    pixels = int(found[1]) if found else 0
    return pixels if 0 < pixels <= PIXELS_MAX else None


def _microdata(tags: Tags, prop: str) -> str | None:
    for node in tags.itemprops.get(prop, ())[:3]:
        if text := node.attributes.get("content") or short_text(node, DESCRIPTION_CHARS_MAX):
            return text
    return None


def _microdata_url(node: LexborNode) -> str | None:
    attributes = node.attributes
    return attributes.get("content") or attributes.get("src") or attributes.get("href")
