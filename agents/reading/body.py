"""What the visible page says where its tags say nothing: the elements that may hold a byline or a date.

A page is asked only when its declarations have left a question open. An element is a candidate by its class,
its relation or its tag; what stands in comments, teasers, side bars and navigation speaks of other pages.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from agents.reading.text import RAW_CHARS_MAX, line

CANDIDATES_MAX: Final = 60
NODES_MAX: Final = 5_000  # below one element
SIBLINGS_MAX: Final = 60
ANCESTORS_MAX: Final = 25
CLASS_CHARS_MAX: Final = 300
NEAR_TEXTS_MAX: Final = 40
NEAR_CHARS_MAX: Final = 60
PARAGRAPHS_MAX: Final = 40
SUMMARY_CHARS_MIN: Final = 50
SUMMARY_CHARS_MAX: Final = 500

_AUTHORS: Final = "[class*=author i],[class*=byline i],[class*=autor i],[class*=writer i],a[rel~=author i]"
_DATES: Final = "time,[class*=date i],[class*=publish i],[class*=posted i],[class*=time i],[class*=datum i]"
_NO_DATE: Final = re.compile(r"(?:up|vali|candi|man)dates?|date(?:picker|line|base)|times|sometime|timer|timeline")
_DATE_WORD: Final = re.compile(r"date|publish|posted|timestamp|datum|(?<![a-z])time(?![a-z])")
_ELSEWHERE: Final = re.compile(
    r"(?:^|[\s_-])(?:comments?|commentlist|related\w*|recirc\w*|recommend\w*|teasers?|promo\w*|popular|trending|"
    r"newsletter|carousel|widget_\w+|most-?read|read-?more|more-?from|latest|newest|breadcrumbs?|archive)(?:$|[\s_-])"
    r"|(?:^|\s)sidebar|comment-|-comment|respond",
    re.IGNORECASE,
)
_ELSEWHERE_TAGS: Final = frozenset(("aside", "nav", "blockquote", "figure", "figcaption", "form"))


@dataclass(slots=True)
class Candidate:
    """An element that may say who or when, with its class as written."""

    node: LexborNode
    marks: str
    attributes: dict[str, str | None]


def bylines(tree: LexborHTMLParser) -> Iterator[Candidate]:
    """The elements that may hold a byline, in document order."""
    for node in tree.css(_AUTHORS)[:CANDIDATES_MAX]:
        attributes = node.attributes
        yield Candidate(node, (attributes.get("class") or "")[:CLASS_CHARS_MAX], attributes)


def dates(tree: LexborHTMLParser) -> Iterator[Candidate]:
    """The elements that may hold a date, in document order."""
    for node in tree.css(_DATES)[:CANDIDATES_MAX]:
        attributes = node.attributes
        marks = (attributes.get("class") or "")[:CLASS_CHARS_MAX]
        if node.tag == "time" or _DATE_WORD.search(_NO_DATE.sub("", marks.lower())):
            yield Candidate(node, marks, attributes)


def near_heading(tree: LexborHTMLParser) -> Iterator[str]:
    """Short texts that follow the first heading, in document order: where bylines without a class stand."""
    heading = tree.css_first("h1") or tree.css_first("h2")
    texts = (text for node in _after(heading) for text in _texts(node)) if heading is not None else ()
    for text in islice(texts, NEAR_TEXTS_MAX):
        if len(text) <= NEAR_CHARS_MAX:
            yield " ".join(text.split())


def _after(node: LexborNode) -> Iterator[LexborNode]:
    """The elements that follow an element in document order, each with all it holds."""
    ancestor: LexborNode | None = node
    for _ in range(ANCESTORS_MAX):
        if ancestor is None or ancestor.tag == "body":
            return
        following = ancestor.next
        for _ in range(SIBLINGS_MAX):
            if following is None:
                break
            yield following
            following = following.next
        ancestor = ancestor.parent


def first_paragraph(tree: LexborHTMLParser) -> tuple[str, str] | None:
    """The first paragraph with something to say, for pages that do not summarise themselves."""
    for node in (tree.css("article p,main p") or tree.css("p"))[:PARAGRAPHS_MAX]:
        said = line(node.text()[:RAW_CHARS_MAX], SUMMARY_CHARS_MAX)
        if said and len(said) >= SUMMARY_CHARS_MIN and of_this_page(node):
            return "p", said
    return None


def of_this_page(node: LexborNode) -> bool:
    """Whether an element stands in the page's own content, judged by what it stands in."""
    ancestor: LexborNode | None = node
    for _ in range(ANCESTORS_MAX):
        # The document itself is no element: a byline in the head leads up to it.
        if ancestor is None or not ancestor.is_element_node or ancestor.tag in {"body", "article", "main"}:
            return True
        if ancestor.tag in _ELSEWHERE_TAGS:
            return False
        marks = f"{ancestor.attrs.get('class') or ''} {ancestor.attrs.get('id') or ''}"[:CLASS_CHARS_MAX]
        if _ELSEWHERE.search(marks):
            return False
        ancestor = ancestor.parent
    return True


def short_text(node: LexborNode, chars_max: int) -> str | None:
    """The text of a small element, one line; None for an element that holds much."""
    parts: list[str] = []
    length = 0
    for text in _texts(node):
        parts.append(text)
        length += len(text)
        if length > chars_max:
            return None
    return " ".join(" ".join(parts).split()) or None


def visible_text(tree: LexborHTMLParser, chars_max: int) -> str:
    """The beginning of what a reader sees: all text but that of scripts and styles, one line."""
    parts: list[str] = []
    length = 0
    for text in _texts(tree.body) if tree.body is not None else ():
        parts.append(" ".join(text.split()))
        length += len(parts[-1]) + 1
        if length > chars_max:
            break
    return " ".join(parts)[:chars_max]


def _texts(node: LexborNode) -> Iterator[str]:
    for child in islice(node.traverse(include_text=True, skip_empty=True), NODES_MAX):
        if child.tag == "-text" and (text := child.text()).strip():
            parent = child.parent
            if parent is None or parent.tag not in {"script", "style", "noscript", "template"}:
                yield text
