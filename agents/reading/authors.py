"""Who wrote a page: names out of declarations and bylines.

Sources, best first: `article:author`, JSON-LD, the `meta` elements publishers use, microdata, then the byline
itself. A name that is only the site's own comes last, whichever source it is from: many publishers declare
themselves and print the person.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from agents.reading.body import Candidate, of_this_page, short_text
from agents.reading.months import month_number
from agents.reading.tags import Tags
from agents.reading.text import NAME_CHARS_MAX, line

BYLINE_CHARS_MAX: Final = 160
NAME_WORDS_MAX: Final = 12  # two names joined by a word, titles included
NAME_CHARS_MIN: Final = 2
NAMES_MAX: Final = 20
AUTHORS_CHARS_MAX: Final = 500

Found = tuple[str, str]  # provenance, names

_META: Final = (
    "author",
    "citation_author",
    "byl",
    "parsely-author",
    "sailthru.author",
    "dc.creator",
    "dcterms.creator",
    "book:author",
)
_META_LIKE: Final = re.compile(r"(?:^|[.:_-])(?:authors?|author_?names?\d?|creator|byline)$")
_META_NOT: Final = re.compile(r"^(?:twitter|smartbanner|fb|al|article|og|msapplication)\b")

_BY: Final = re.compile(
    r"^\W*(?:(?:written|posted|published|reported|story|text|analysis|opinion|review|article|created|submitted)\s+)?"
    r"(?:by|von|par|por|di|da|door|av|af|przez|от|автор|autora?|auteur|autore|authors?|texte?)(?:\s*[:\uff1a]\s*|\s+)",
    re.IGNORECASE,
)
_UP_TO_BY: Final = re.compile(r"^.*\d.*\bby:?\s+", re.IGNORECASE)  # `17 January at 6 PM by Jane Doe`
_PARTICLES: Final = frozenset(
    (
        "van",
        "von",
        "de",
        "del",
        "der",
        "den",
        "di",
        "da",
        "do",
        "dos",
        "bin",
        "al",
        "la",
        "le",
        "and",
        "und",
        "og",
        "y",
        "e",
        "et",
        "&",
    )
)
_AND: Final = re.compile(r"\s+(?:and|und|og|och|et|&)\s+", re.IGNORECASE)
# What ends the name in a byline: a separator, a handle, an address, a date or a verb.
_AFTER: Final = re.compile(
    r"\s*(?:[|•·»\u203a/@(\[]|\s[\u2013\u2014-]+(?:\s|$)|https?:|\d|\s(?:on|in|updated|published|posted|follow)\s)",
    re.IGNORECASE,
)
_ROLE: Final = re.compile(
    r"\b(?:reporter|editor|correspondent|writer|analyst|staff|contributor|columnist|director|professor|redaktion|"
    r"journalist|producer|author|cnn|bbc)\b",
    re.IGNORECASE,
)
_NO_NAME: Final = re.compile(
    r"^(?:about|more|view|see|read|follow|share|comment|image|photo|foto|source|advert|subscribe|sign|log|home|"
    r"admin|administrator|guest|user|anonymous|profile|all|the author|name|by|authors?)\b|"
    r"\b(?:read|comments?|cookies)$",
    re.IGNORECASE,
)
_NAME_MARK: Final = re.compile(r"(?:author|byline)s?[_-]{0,2}(?:full)?(?:name|link)s?(?![a-z])", re.IGNORECASE)
_NO_MARK: Final = re.compile(
    r"comment|avatar|image|photo|img|bio|desc|social|twitter|follow|thumb|title|job|date|time|icon|share|button|"
    r"external|bread|reach",
    re.IGNORECASE,
)


def authors(
    tags: Tags,
    ld_names: tuple[str, ...],
    bylines: Iterable[Candidate],
    near_heading: Iterable[str],
    own_names: frozenset[str],
) -> Found | None:
    """The authors of a page and the source that names them. `own_names`: what the site calls itself, folded.

    `bylines` and the short texts `near_heading` are consumed only when no declaration names a person.
    """
    own: Found | None = None
    sources = chain(_declared(tags, ld_names), _shown(bylines), _near(near_heading), _handle(tags))
    for source, names in sources:
        if not names:
            continue
        if all(name.casefold() in own_names for name in names):
            own = own or (source, _joined(names))
        else:
            return source, _joined(names)
    return own


def own_names(tags: Tags, site_name: str | None, host: str) -> frozenset[str]:
    """What a site may call itself, folded: its declared names, its host and the labels of its host."""
    declared = (tags.meta("og:site_name"), tags.meta("application-name"), tags.meta("publisher"), site_name)
    return frozenset(name.casefold() for name in (*declared, host, host.removeprefix("www."), *host.split(".")) if name)


def _declared(tags: Tags, ld_names: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    yield "article:author", _names(tags.metas.get("article:author", ()))
    yield "og:article:author", _names(tags.metas.get("og:article:author", ()))
    yield "json-ld", list(ld_names)
    for name in _META:
        for content in _each(name, tags.metas.get(name, ())):
            yield name, content
    yield "itemprop=author", _microdata(tags)
    for name, contents in tags.metas.items():
        if _META_LIKE.search(name) and not _META_NOT.search(name):
            yield name, _names(contents[:1])


def _handle(tags: Tags) -> Iterator[tuple[str, list[str]]]:
    """The author's handle, when it is not the site's own."""
    creator = tags.meta("twitter:creator")
    if creator and creator != tags.meta("twitter:site"):
        yield "twitter:creator", _names([creator])


def _each(name: str, contents: Iterable[str]) -> list[list[str]]:
    """Citations list one author per element; elsewhere a second element is a second opinion."""
    names = [_names([content]) for content in contents]
    return [[n for found in names for n in found]] if name == "citation_author" else names


def _names(contents: Iterable[str]) -> list[str]:
    """Names out of attribute values: no addresses, no numbers, no `by`."""
    names: dict[str, None] = {}
    for content in contents:
        text = line(content, NAME_CHARS_MAX)
        if text and not text.startswith(("http:", "https:", "/", "www.")) and not text.isdigit():
            names[_BY.sub("", text) or text] = None
    return list(names)[:NAMES_MAX]


def _joined(names: list[str]) -> str:
    """One line of names; `Jane Doe and John Roe` are two of them, `Smith and Sons` is one."""
    apart: dict[str, None] = {}
    for name in names:
        parts = _AND.split(name)
        apart.update(dict.fromkeys(parts if all(" " in part for part in parts) else [name]))
    return ", ".join(apart)[:AUTHORS_CHARS_MAX].rstrip(", ")


def _microdata(tags: Tags) -> list[str]:
    for node in tags.itemprops.get("author", ())[:NAMES_MAX]:
        attributes = node.attributes
        if content := attributes.get("content"):
            names = _names([content])
        else:
            inner = node.css_first('[itemprop~="name"]') or node
            text = inner.attributes.get("content") or short_text(inner, BYLINE_CHARS_MAX)
            names = [name] if text and of_this_page(node) and (name := byline(text)) else []
        if names:
            return names
    return []


def _shown(bylines: Iterable[Candidate]) -> Iterator[tuple[str, list[str]]]:
    """Bylines of the page: elements marked as a name first, then any that read like one."""
    readable: list[tuple[str, list[str]]] = []
    for candidate in bylines:
        if _NO_MARK.search(_NAME_MARK.sub("", candidate.marks)) or not of_this_page(candidate.node):
            continue
        text = short_text(candidate.node, BYLINE_CHARS_MAX)
        name = byline(text) if text else None
        if not name:
            continue
        if "author" in (candidate.attributes.get("rel") or "").lower():
            yield "rel=author", [name]
            return
        readable.append(("byline", [name]))
    yield from readable[:1]


def _near(texts: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """A text that begins with `by`, and goes on with a name in capitals of at least two words."""
    for text in texts:
        if _BY.match(text) and (name := byline(text)) and _in_capitals(name.split()):
            yield "near heading", [name]
            return


def _in_capitals(words: list[str]) -> bool:
    return len(words) > 1 and all(word[0].isupper() or word in _PARTICLES for word in words)


def byline(text: str) -> str | None:
    """The names in the text of a byline: `By Jane Doe, Staff Writer | 3 May` is Jane Doe."""
    text = line(text, BYLINE_CHARS_MAX) or ""
    text = _BY.sub("", _UP_TO_BY.sub("", text))
    text = _AFTER.split(text, maxsplit=1)[0].strip(" ,;:.-\u2013\u2014\u3000")
    if text and month_number(text.split()[-1]):  # the date that follows was cut at its day
        text = text.rpartition(" ")[0]
    parts = [part for part in text.split(", ") if not _ROLE.search(part)] if ", " in text else [text]
    text = ", ".join(parts)
    if not NAME_CHARS_MIN <= len(text) <= NAME_CHARS_MAX or _NO_NAME.search(text) or not any(map(str.isalpha, text)):
        return None
    return text if all(len(part.split()) <= NAME_WORDS_MAX for part in parts) else None
