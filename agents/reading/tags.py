"""What the tags of a page declare: one walk over the parsed document, in document order.

The walk takes `meta`, `link`, `base`, `title`, `h1`, JSON-LD and microdata wherever they stand: pages with a
broken head leave half of them in the body, and browsers and link previews read them there too. The parser is
told that scripts run, so what stands in `<noscript>` is text and declares nothing.
"""

from dataclasses import dataclass, field
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from agents.reading.text import RAW_CHARS_MAX, web_url

HTML_BYTES_MAX: Final = 1024 * 1024
NODES_MAX: Final = 5_000
NAME_CHARS_MAX: Final = 100
RELS_MAX: Final = 10
ITEMPROPS_MAX: Final = 10
HEADINGS_MAX: Final = 3
LD_CHARS_MAX: Final = 512 * 1024

_SELECTOR: Final = "meta,link,title,base,h1,script[type],[itemprop]"

Attributes = dict[str, str | None]


@dataclass(slots=True)
class Tags:
    """The declarations of one page."""

    base: str  # what relative URLs are resolved against
    language: str | None = None  # of the html element
    title: str | None = None
    headings: list[str] = field(default_factory=list)  # h1
    metas: dict[str, list[str]] = field(default_factory=dict)  # property or name, lower case -> contents
    images: list[tuple[str, str]] = field(default_factory=list)  # og:image and its structured properties
    http_equiv: dict[str, str] = field(default_factory=dict)  # the first of each name
    links: dict[str, list[Attributes]] = field(default_factory=dict)  # rel token -> link elements
    itemprops: dict[str, list[LexborNode]] = field(default_factory=dict)
    ld: list[str] = field(default_factory=list)  # JSON-LD scripts

    def meta(self, *names: str) -> str | None:
        """The first content among these names."""
        return next((self.metas[name][0] for name in names if name in self.metas), None)

    def href(self, rel: str) -> str | None:
        """Where the first link of this relation leads, as written."""
        return next((link.get("href") for link in self.links.get(rel, ()) if link.get("href")), None)


def parse(markup: bytes) -> LexborHTMLParser:
    """Parse HTML, UTF-8, by the rules of the HTML Standard, as a browser that runs scripts would."""
    return LexborHTMLParser(markup, options=LexborDocumentOptions.WO_EVENTS, scripting=True)


def tags_of(tree: LexborHTMLParser, url: str) -> Tags:
    """Collect what the tags of a page declare. `url` is the page's own, absolute."""
    tags = Tags(base=url)
    root = tree.root
    if root is None:
        return tags
    tags.language = root.attrs.get("lang") or root.attrs.get("xml:lang")
    based = False
    for node in root.css(_SELECTOR)[:NODES_MAX]:
        attributes = node.attributes
        tag = node.tag
        if tag == "meta":
            _meta(tags, attributes)
        elif tag == "link":
            _link(tags, attributes)
        elif tag == "base" and not based:
            # Only the first counts (HTML Standard, 4.2.3), whatever it says.
            based = True
            tags.base = web_url(attributes.get("href"), url) or url
        else:
            _text_of(tags, node, tag, attributes)
        if prop := attributes.get("itemprop"):
            for name in prop.split()[:ITEMPROPS_MAX]:
                tags.itemprops.setdefault(name, []).append(node)
    return tags


def _link(tags: Tags, attributes: Attributes) -> None:
    for rel in (attributes.get("rel") or "").lower().split()[:RELS_MAX]:
        tags.links.setdefault(rel, []).append(attributes)


def _text_of(tags: Tags, node: LexborNode, tag: str | None, attributes: Attributes) -> None:
    """Keep the text of an element that is known by it."""
    if tag == "script":
        _script(tags, node, attributes)
    elif tag == "h1" and len(tags.headings) < HEADINGS_MAX:
        tags.headings.append(node.text(separator=" ")[:RAW_CHARS_MAX])
    elif tag == "title" and tags.title is None and not _in_svg(node):
        tags.title = node.text()[:RAW_CHARS_MAX]


def _meta(tags: Tags, attributes: Attributes) -> None:
    content = (attributes.get("content") or "")[:RAW_CHARS_MAX].strip()
    if not content:
        return
    if equiv := attributes.get("http-equiv"):
        tags.http_equiv.setdefault(equiv.lower(), content)
    for key in ("property", "name"):
        name = (attributes.get(key) or "").strip().lower()
        if 0 < len(name) <= NAME_CHARS_MAX:
            tags.metas.setdefault(name, []).append(content)
            if name.startswith("og:image"):
                tags.images.append((name, content))


def _script(tags: Tags, node: LexborNode, attributes: Attributes) -> None:
    if "ld+json" in (attributes.get("type") or "").lower():
        text = node.text()
        if sum(map(len, tags.ld)) + len(text) <= LD_CHARS_MAX:
            tags.ld.append(text)


def _in_svg(title: LexborNode) -> bool:
    parent = title.parent
    return parent is not None and parent.tag not in {"head", "html", "body"}
