"""When a page was published: the day out of declarations, the address, or what is printed.

Sources, best first: what the page declares as its publication, JSON-LD, microdata, a marked `time` element, the
address, printed dates in the page's own content, and last the declared modification: close to the truth, and
named as such in the provenance. The day an address names is given the time of a `time` element that agrees.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from agents.reading.body import Candidate, of_this_page, short_text
from agents.reading.dates import date_in_tag, date_in_text, date_in_url
from agents.reading.tags import Tags

DATE_CHARS_MAX: Final = 120

Found = tuple[str, str]  # provenance, ISO 8601

_META: Final = (
    "article:published_time",
    "og:published_time",
    "article:published",
    "datepublished",
    "parsely-pub-date",
    "sailthru.date",
    "dc.date.issued",
    "dcterms.issued",
    "citation_publication_date",
    "citation_online_date",
    "citation_date",
    "cxenseparse:recs:publishtime",
    "date",
    "dc.date",
    "dcterms.date",
    "dcterms.created",
    "dc.date.created",
    "publish_date",
    "book:release_date",
    "video:release_date",
    "music:release_date",
)
_META_LIKE: Final = re.compile(
    r"pub(?:lish(?:ed)?|lication)?[._:-]?(?:date|time|on)|(?:date|time)[._:-]?(?:published|posted|created)|^published$|"
    r"original[._-]?(?:publication)?[._-]?date|release[._-]?date|posted[._-]?(?:date|on)|article[._:-]?(?:date|created)|^pdate$",
)
_MODIFIED: Final = ("article:modified_time", "og:updated_time", "dcterms.modified", "last-modified", "lastmod")
_FIRST: Final = re.compile(r"publi|pubdate|entry-date|post-?date|posted|created|dateline|issued", re.IGNORECASE)
_LATER: Final = re.compile(r"modif|(?<!\w)updated?(?!\w)|accessed|retriev|copyright|expire|birth|event", re.IGNORECASE)


def published(
    tags: Tags,
    ld_published: str | None,
    ld_modified: str | None,
    shown: Iterable[Candidate],
    near_heading: Iterable[str],
    *,
    url: str,
) -> Found | None:
    """The publication date of a page and the source that gives it.

    `shown`, the elements that may hold a printed date, and the short texts `near_heading` are consumed only
    when no declaration has one.
    """
    month_first = (tags.language or "en-US").lower() in {"en", "en-us"}
    declared = next(_declared(tags, ld_published), None)
    if declared:
        return declared
    printed = list(_printed(shown, month_first=month_first))
    in_url = date_in_url(url)
    if in_url:
        agreeing = (found for found in printed if found[1].startswith(in_url))
        return next(agreeing, ("url", in_url))
    near = (("near heading", iso) for text in near_heading if (iso := date_in_text(text, month_first=month_first)))
    return next(chain(printed, near, _modified(tags, ld_modified)), None)


def _declared(tags: Tags, ld_published: str | None) -> Iterator[Found]:
    yield from _read("article:published_time", tags.meta("article:published_time"))
    yield from _read("json-ld", ld_published)
    for name in _META:
        yield from _read(name, tags.meta(name))
    for prop in ("datePublished", "uploadDate", "dateCreated"):
        for node in tags.itemprops.get(prop, ())[:3]:
            attributes = node.attributes
            value = attributes.get("content") or attributes.get("datetime")
            yield from _read(f"itemprop={prop}", value or short_text(node, DATE_CHARS_MAX))
    for name, contents in tags.metas.items():
        if _META_LIKE.search(name):
            yield from _read(name, contents[0])


def _modified(tags: Tags, ld_modified: str | None) -> Iterator[Found]:
    yield from _read("json-ld dateModified", ld_modified)
    for name in _MODIFIED:
        yield from _read(name, tags.meta(name) or tags.http_equiv.get(name))


def _read(source: str, value: str | None) -> Iterator[Found]:
    if value and (found := date_in_tag(value)):
        yield source, found


def _printed(shown: Iterable[Candidate], *, month_first: bool) -> Iterator[Found]:
    """Dates printed in the page's own content: those marked as a publication first."""
    unmarked: list[Found] = []
    for candidate in shown:
        attributes, node = candidate.attributes, candidate.node
        is_time = node.tag == "time"
        datetime = attributes.get("datetime") if is_time else attributes.get("title")
        text = datetime or short_text(node, DATE_CHARS_MAX)
        iso = date_in_text(text, month_first=month_first) if text else None
        if iso is None or _LATER.search(candidate.marks) or not of_this_page(node):
            continue
        found = ("time" if is_time else "printed date", iso)
        if _FIRST.search(candidate.marks) or "pubdate" in attributes:
            yield found
        else:
            unmarked.append(found)
    yield from unmarked
