"""Dates as pages write them, as ISO 8601.

Read: ISO 8601 and its careless variants, RFC 5322 dates, compact and epoch numbers in tags, and dates in words
with the month names of twenty languages. A time is kept only where its zone or its ISO form makes it certain.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import chain
from typing import Final

from agents.reading.months import month_number

YEAR_MIN: Final = 1900
YEAR_MAX: Final = 2100
TEXT_CHARS_MAX: Final = 400

_ISO: Final = re.compile(
    r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)"
    r"(?:[Tt ]{1,2}(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s?(Z|UTC|GMT|[+-]\d{2}:?\d{2})?(?![\d:]))?"
)
_YEAR_FIRST: Final = re.compile(
    r"(?<!\d)(\d{4})(?:[/.]\s?(\d{1,2})[/.]\s?(\d{1,2})(?!\d)|\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일])"
)
_YEAR_LAST: Final = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?!\d)")
_DAY_MONTH: Final = re.compile(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|\.|º|ª)?\s+(?:de\s+|of\s+|d['\u2019])?([^\W\d_]{3,13})\.?,?\s+(?:del?\s+)?(\d{4})(?!\d)"
)
_MONTH_DAY: Final = re.compile(r"(?<![^\W\d_])([^\W\d_]{3,13})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?!\d)")
_COMPACT: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T?\d{4}(?:\d{2})?Z?)?")
_EPOCH: Final = re.compile(r"(\d{10})(?:\d{3})?")
_IN_URL: Final = re.compile(
    r"(?<!\d)((?:19|20)\d{2})(?:([/._-])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])|(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))(?!\d)"
)


def date_in_text(text: str, *, month_first: bool = False) -> str | None:
    """The date a short human text gives, as ISO 8601. `month_first`: 4/5/2019 is the fifth of April."""
    text = text[:TEXT_CHARS_MAX]
    for found in chain(_iso(text), _year_first(text), _in_words(text), _year_last(text, month_first=month_first)):
        return found
    return None


def date_in_tag(value: str) -> str | None:
    """The date a machine-readable value gives: what `date_in_text` reads, and 20190421 or epoch numbers."""
    value = value.strip()[:TEXT_CHARS_MAX]
    if (compact := _COMPACT.fullmatch(value)) and (found := _written(*compact.groups())):
        return found
    if epoch := _EPOCH.fullmatch(value):
        moment = datetime.fromtimestamp(int(epoch[1]), tz=UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return date_in_text(value, month_first=True)


def date_in_url(url: str) -> str | None:
    """The day an address names: /2019/04/21/, /2019-04-21-title or 20190421."""
    path = url.split("?", 1)[0]
    found = _IN_URL.search(path)
    return _written(found[1], found[3] or found[5], found[4] or found[6]) if found else None


def _written(year: str, month: str, day: str) -> str | None:
    """A calendar day as ISO 8601; None when the calendar has no such day, or nobody wrote for the web then."""
    if not YEAR_MIN <= int(year) <= YEAR_MAX:
        return None
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _iso(text: str) -> Iterator[str]:
    for match in _ISO.finditer(text):
        year, month, day, hour, minute, second, zone = match.groups()
        if not (written := _written(year, month, day)):
            continue
        if hour and int(hour) < 24 and int(minute) < 60 and int(second or 0) < 60:  # noqa: PLR2004  # a clock
            zone = {"UTC": "Z", "GMT": "Z"}.get(zone, zone or "")
            if len(zone) == len("+0000"):
                zone = f"{zone[:3]}:{zone[3:]}"
            written += f"T{int(hour):02}:{int(minute):02}:{int(second or 0):02}{zone}"
        yield written


def _year_first(text: str) -> Iterator[str]:
    for match in _YEAR_FIRST.finditer(text):
        if written := _written(match[1], match[2] or match[4], match[3] or match[5]):
            yield written


def _year_last(text: str, *, month_first: bool) -> Iterator[str]:
    """Day and month as numbers: a dot means day first everywhere, a slash depends on who writes."""
    for match in _YEAR_LAST.finditer(text):
        first, mark, second, year = match.groups()
        day, month = (second, first) if month_first and mark != "." else (first, second)
        if written := _written(year, month, day) or _written(year, day, month):
            yield written


def _in_words(text: str) -> Iterator[str]:
    for pattern, month, day in ((_DAY_MONTH, 2, 1), (_MONTH_DAY, 1, 2)):
        for match in pattern.finditer(text):
            number = month_number(match[month])
            if number and (written := _written(match[3], str(number), match[day])):
                yield written
