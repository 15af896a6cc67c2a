"""What a page says of itself in JSON-LD (https://www.w3.org/TR/json-ld11/, schema.org vocabulary).

Not a JSON-LD processor: contexts are not resolved, terms are taken as schema.org's. Pages embed it carelessly,
so CDATA wrappers, comments, control characters, trailing commas and escaped quotes are forgiven; and bounded,
because it is somebody else's data: `tags.LD_CHARS_MAX` characters, `NODES_MAX` nodes, `DEPTH_MAX` levels.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from agents.reading.text import NAME_CHARS_MAX, RAW_CHARS_MAX, line

NODES_MAX: Final = 500
DEPTH_MAX: Final = 6
AUTHORS_MAX: Final = 20
TYPE_CHARS_MAX: Final = 200

Node = dict[str, Any]

_AROUND: Final = " \t\r\n/*;\ufeff"  # what may stand around the JSON, and around what it is wrapped in
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")
_DECODER: Final = json.JSONDecoder(strict=False)  # control characters inside strings are forgiven

# Containers that are looked into for the thing a page is about.
_CONTAINERS: Final = ("@graph", "mainEntity", "mainEntityOfPage", "itemReviewed", "video", "subjectOf")

# What a page is about, most telling first: a type's rank is the first of these it matches.
_CATEGORIES: Final = (
    ("article", re.compile(r"Article$|Posting$|^(?:Report|Review|CriticReview|Question|QAPage)$")),
    ("video", re.compile(r"^(?:VideoObject|Movie|TVSeries|TVEpisode|Clip|MovieClip|TVClip|BroadcastEvent)$")),
    (
        "product",
        re.compile(
            r"^(?:Product|ProductGroup|IndividualProduct|Offer|SoftwareApplication|MobileApplication"
            r"|WebApplication|VideoGame|Vehicle|Car)$"
        ),
    ),
    ("music", re.compile(r"^Music(?:Recording|Album|Playlist|Group|Release|VideoObject)$")),
    ("audio", re.compile(r"^(?:AudioObject|Audiobook|PodcastEpisode|PodcastSeries|RadioEpisode|RadioSeries|Episode)$")),
    ("book", re.compile(r"^Book$")),
    ("recipe", re.compile(r"^Recipe$")),
    ("event", re.compile(r"Event$")),
    ("course", re.compile(r"^Course$")),
    ("dataset", re.compile(r"^Dataset$")),
    ("profile", re.compile(r"^ProfilePage$")),
    (
        "website",
        re.compile(
            r"^(?:WebPage|WebSite|CollectionPage|AboutPage|ContactPage|FAQPage|ItemPage|SearchResultsPage"
            r"|CheckoutPage|MedicalWebPage|HealthTopicContent)$"
        ),
    ),
)


@dataclass(slots=True)
class Linked:
    """The page's own description of itself, in strings as they came."""

    category: str | None = None
    headline: str | None = None
    description: str | None = None
    image: Node | None = None  # {"url", "width", "height"}
    authors: tuple[str, ...] = ()
    published: str | None = None
    modified: str | None = None
    language: str | None = None
    site_name: str | None = None


def linked(scripts: list[str]) -> Linked:
    """Read the JSON-LD scripts of a page. What cannot be read says nothing; never raises."""
    every = (node for script in scripts for root in _roots(script) for node in _nodes(root, 0))
    nodes = list(islice(every, NODES_MAX))
    by_id = {str(node["@id"]): node for node in reversed(nodes) if "@id" in node and "name" in node}
    ranked = sorted(((_rank(node), node) for node in nodes), key=lambda pair: pair[0])
    about = [node for rank, node in ranked if rank < len(_CATEGORIES)]
    found = Linked()
    for node in about:
        _merge(found, node, by_id)
    if about:
        found.category = _CATEGORIES[_rank(about[0])][0]
    found.site_name = found.site_name or next(
        (_name(node) for node in nodes if "WebSite" in _types(node) and _name(node)), None
    )
    return found


def _roots(script: str) -> list[Any]:
    text = script.strip(_AROUND)
    for opening in ("<!--", "<![CDATA["):
        text = text.removeprefix(opening).lstrip(_AROUND)
    for closing in ("-->", "]]>"):
        text = text.removesuffix(closing).rstrip(_AROUND)
    for attempt in (str, _repaired):
        try:
            return list(_values(attempt(text)))
        except (ValueError, RecursionError):  # RecursionError: nested deeper than the decoder goes
            continue
    return []


def _values(text: str) -> Iterator[Any]:
    """Each JSON value of a text: some pages put several into one script."""
    at = 0
    while at < len(text):
        value, at = _DECODER.raw_decode(text, at)
        yield value
        while at < len(text) and (text[at].isspace() or text[at] in ",;"):
            at += 1


def _repaired(text: str) -> str:
    if "&quot;" in text:
        text = html.unescape(text)
    return _TRAILING_COMMA.sub(r"\1", text)


def _nodes(value: Any, depth: int) -> Iterator[Node]:
    """Every object that may describe the page: roots, and what stands in containers."""
    if depth > DEPTH_MAX:
        return
    if isinstance(value, list):
        for item in value[:NODES_MAX]:
            yield from _nodes(item, depth + 1)
    elif isinstance(value, dict):
        yield value
        for key in _CONTAINERS:
            if isinstance(value.get(key), dict | list):
                yield from _nodes(value[key], depth + 1)


def _types(node: Node) -> list[str]:
    kinds = node.get("@type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return [re.split(r"[/#:]", kind[:TYPE_CHARS_MAX])[-1] for kind in kinds[:8] if isinstance(kind, str)]


def _rank(node: Node) -> int:
    """How telling a node is of the page: the index of its category, or their number for none."""
    kinds = _types(node)
    for rank, (_, pattern) in enumerate(_CATEGORIES):
        if any(pattern.search(kind) for kind in kinds):
            return rank
    return len(_CATEGORIES)


def _merge(found: Linked, node: Node, by_id: dict[str, Node]) -> None:
    """Fill what is still unknown from one more node."""
    if "WebSite" not in _types(node):
        found.headline = found.headline or _string(node.get("headline")) or _name(node)
        found.description = found.description or _string(node.get("description"))
        found.image = found.image or _image(node.get("image") or node.get("thumbnailUrl"))
    found.authors = found.authors or _names(node.get("author") or node.get("creator"), by_id)
    found.published = found.published or _first_string(node, "datePublished", "uploadDate", "dateCreated")
    found.modified = found.modified or _first_string(node, "dateModified")
    found.language = found.language or _string(node.get("inLanguage"))
    found.site_name = found.site_name or next(iter(_names(node.get("publisher"), by_id)), None)


def _string(value: Any) -> str | None:
    """The text of a value: a string, the first of a list, or a language-tagged `@value`."""
    for _ in range(DEPTH_MAX):
        if isinstance(value, str):
            return value[:RAW_CHARS_MAX].strip() or None
        if isinstance(value, list):
            value = value[0] if value else None
        elif isinstance(value, dict):
            value = value.get("@value") or value.get("name")
    return None


def _first_string(node: Node, *keys: str) -> str | None:
    return next((text for key in keys if (text := _string(node.get(key)))), None)


def _name(node: Node) -> str | None:
    return _string(node.get("name"))


def _names(value: Any, by_id: dict[str, Node]) -> tuple[str, ...]:
    """Names of people or organisations: strings, objects, references to objects, or lists of them."""
    names: dict[str, None] = {}
    for item in (value if isinstance(value, list) else [value])[:AUTHORS_MAX]:
        if isinstance(item, dict) and "name" not in item:
            item = by_id.get(str(item.get("@id")), item)  # noqa: PLW2901  # a reference stands for what it names
        inner = item.get("name") if isinstance(item, dict) else item
        for raw in inner[:AUTHORS_MAX] if isinstance(inner, list) else [inner]:
            if name := line(_string(raw), NAME_CHARS_MAX):
                names[name] = None
    return tuple(names)


def _image(value: Any) -> Node | None:
    """The first image of a value, as an object with a `url`."""
    for item in (value if isinstance(value, list) else [value])[:AUTHORS_MAX]:
        node = {"url": item} if isinstance(item, str) else item
        if isinstance(node, dict):
            url = _string(node.get("url")) or _string(node.get("contentUrl")) or _string(node.get("@id"))
            if url:
                return {"url": url, "width": node.get("width"), "height": node.get("height")}
    return None
