"""URLs in the text of a tweet, by the rules Twitter itself links by (twitter-text 3).

How a URL is found: the text is cut into runs of characters a domain may hold. In a run with a dot, the longest
chain of labels that ends in a top-level domain is a domain, if the character before it allows one. After it
come a port, a path and a query, as far as they go without ending in punctuation. `http://` before it is part
of it; without, only the ASCII domains inside the chain count (`見てexample.comです` holds `example.com`).

twitter-text says this with one regular expression whose nested repetitions backtrack. Here every pattern is
possessive and every position is looked at a bounded number of times, so the time is linear in the text,
whatever the text. Four things differ from twitter-text: the public suffix list stands in for its table of
top-level domains, `xn--` top-level domains are not cut at their second hyphen, a path belongs to a bare domain
only if it follows it directly, and a full-width @ or # begins no domain.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from agents.extracting.domains import LABEL_CHARS_MAX, Chains
from topology import urls

URL_CHARS_MAX: Final = 4096  # Twitter's back end takes no longer one,
TCO_SLUG_CHARS_MAX: Final = 40  # nor a longer name under t.co

_DIRECTION: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_SPACE: Final = "\t-\r \x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_NEVER: Final = "\ufffe\ufeff\uffff"  # not characters of a tweet
_WIDE_SIGNS: Final = "\uff20\uff03"  # full-width @ and #
_ACCENTED: Final = (  # Latin letters, without the signs for times and divided by
    "\xc0-\xd6\xd8-\xf6\xf8-\u024f\u0253\u0254\u0256\u0257\u0259\u025b\u0263\u0268\u026f\u0272\u0289\u028b\u02bb"
    "\u0300-\u036f\u1e00-\u1eff"
)
_CYRILLIC: Final = "\u0400-\u052f\u1c80-\u1c88\u1d2b\u1d78\u2de0-\u2dff\ua640-\ua69f\ufe2e\ufe2f"
_DASHES: Final = (  # Unicode category Pd, without the hyphen-minus
    "\u058a\u05be\u1400\u1806\u2010-\u2015\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d\u301c\u3030\u30a0\ufe31\ufe32"
    "\ufe58\ufe63\uff0d\U00010ead"
)

# Of the ASCII punctuation, `-`, `_` and `.` may stand in a run.
_RUN: Final = re.compile(
    rf"[^\x00-\x1f\x7f!\"#$%&'()*+,/:;<=>?@\[\\\]^`{{|}}~{_SPACE}{_DIRECTION}{_NEVER}{_WIDE_SIGNS}\ud800-\udfff]++"
)
_NO_URL_AFTER: Final = re.compile(f"[A-Za-z0-9@$#{_WIDE_SIGNS}{_NEVER}]")
_NO_BARE_DOMAIN_AFTER: Final = frozenset("-_./")
_START_INSIDE: Final = re.compile(r"(?<=[^A-Za-z0-9])[^\-_.]")
_ASCII_PART: Final = re.compile(rf"[A-Za-z0-9_\-.{_ACCENTED}]++")

# What a path and a query may hold, and what they may end in. Balanced parentheses, two deep, are part of a
# path: /Primer_(film), /We_Up_(Album_Version_(Edited))/.
_PATH_ENDING: Final = rf"a-zA-Z0-9=_#/+\-{_CYRILLIC}{_ACCENTED}"
_PATH_INSIDE: Final = rf"!*';:,.$%\[\]~&|@{_DASHES}"
_PATH_CHAR: Final = f"[{_PATH_ENDING}{_PATH_INSIDE}]"
_NESTED: Final = rf"\({_PATH_CHAR}++\){_PATH_CHAR}*+"
_BALANCED: Final = rf"\((?:{_PATH_CHAR}++(?:{_NESTED})?+|{_NESTED})\)"
_PATH: Final = rf"/(?:[{_PATH_INSIDE}]*+(?:[{_PATH_ENDING}]++|{_BALANCED}))*+"
_QUERY: Final = r"\?(?:[!?*'();:+$%\[\].,~|@]*+[a-zA-Z0-9_&=#/\-]++)++"

_AFTER_DOMAIN: Final = re.compile(rf"(?::[0-9]++)?+(?P<path>{_PATH})?+(?:{_QUERY})?+")
_TCO: Final = re.compile(rf"https?://t\.co/([a-z0-9]++)(?:{_QUERY})?+", re.IGNORECASE)


class Found(NamedTuple):
    """A URL as it stands in a text: `text[start:end]`, positions in code points."""

    url: str
    start: int
    end: int

    @property
    def is_bare(self) -> bool:
        """Whether it was written without a scheme."""
        return not self.url[:8].lower().startswith(("http://", "https://"))

    @property
    def with_scheme(self) -> str:
        """The URL to ask for: a bare domain means http, as it does in an address bar."""
        return f"http://{self.url}" if self.is_bare else self.url


def urls_in_text(text: str) -> list[Found]:
    """Find the URLs in a text, in order, not overlapping; linear in the length of the text."""
    found: list[Found] = []
    taken = 0  # where the last match ended; a URL needs a character before it that is not part of that match
    for start, end in _runs_with_a_dot(text):
        if end > taken:
            taken = _read_run(text, start, end, taken, found)
    return found


def _runs_with_a_dot(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the runs with a dot inside, each met once: from that dot forwards, and in a mirror backwards."""
    dot = text.find(".")
    mirror = text[::-1] if dot >= 0 else ""
    while dot >= 0:
        before, after = _RUN.match(mirror, len(text) - dot), _RUN.match(text, dot)
        end = after.end() if after else dot + 1
        if end > dot + 1:  # otherwise it ends a sentence
            yield (dot - (before.end() - before.start()) if before else dot, end)
        dot = text.find(".", end)


def _read_run(text: str, start: int, end: int, taken: int, found: list[Found]) -> int:
    """Add the URLs that begin in one run; return where the last match ended."""
    chains = Chains(text, start, end)
    if not chains.possible:
        return taken
    scheme = _scheme_length(text, start)
    if scheme and _may_start(text, start - scheme, taken) and (stop := chains.end_of_domain(start)):
        taken = _take_with_scheme(text, start - scheme, start, stop, found)
    if _may_start(text, start, taken) and (stop := chains.end_of_domain(start)):
        taken = _take_bare(text, start, stop, found)
    for inside in _START_INSIDE.finditer(text, start + 1, end):
        candidate = inside.start()
        if candidate > taken and (stop := chains.end_of_domain(candidate)):
            taken = _take_bare(text, candidate, stop, found)
    return taken


def _scheme_length(text: str, start: int) -> int:
    """How many characters of `http://` or `https://` stand before a position."""
    if text[max(start - 3, 0) : start] != "://":
        return 0
    for scheme in ("http://", "https://"):
        if text[max(start - len(scheme), 0) : start].lower() == scheme:
            return len(scheme)
    return 0


def _may_start(text: str, position: int, taken: int) -> bool:
    """Whether the character before a position lets a URL begin there."""
    return position == 0 or (position > taken and not _NO_URL_AFTER.match(text, position - 1))


def _end_of_url(text: str, stop: int) -> tuple[int, bool]:
    """Where port, path and query after a domain end, and whether there is a path."""
    after = _AFTER_DOMAIN.match(text, stop)
    return (after.end(), after["path"] is not None) if after else (stop, False)


def _take_with_scheme(text: str, start: int, domain: int, stop: int, found: list[Found]) -> int:
    end, _ = _end_of_url(text, stop)
    url = text[start:end]
    if tco := _TCO.match(url):  # what Twitter shortened has no more to its path: `http://t.co/pbY2NfTZ's`
        url = "" if len(tco[1]) > TCO_SLUG_CHARS_MAX else tco[0]
    if url and len(url) <= URL_CHARS_MAX and _is_encodable(text[domain:stop]):
        found.append(Found(url, start, start + len(url)))
    return end


def _take_bare(text: str, start: int, stop: int, found: list[Found]) -> int:
    """Add the ASCII domains inside a domain written without a scheme; the path belongs to the last."""
    end, has_path = _end_of_url(text, stop)
    if start > 0 and text[start - 1] in _NO_BARE_DOMAIN_AFTER:
        return end
    for part in _ascii_domains(text, start, stop):
        last = end if has_path and part[1] == stop else part[1]
        url = text[part[0] : last]
        if len("https://") + len(url) <= URL_CHARS_MAX and _is_encodable(text[slice(*part)]):
            found.append(Found(url, part[0], last))
    return end


def _ascii_domains(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Spans of the domains in ASCII and accented Latin letters inside a domain of any script."""
    whole = _ASCII_PART.match(text, start, stop)
    if whole and whole.end() == stop:
        return [(start, stop)]
    spans = []
    for part in _ASCII_PART.finditer(text, start, stop):
        first = part.start() + len(part[0]) - len(part[0].lstrip("-_."))
        if end := Chains(text, first, part.end()).end_of_domain(first):
            spans.append((first, end))
    return spans


def _is_encodable(domain: str) -> bool:
    """Whether DNS has a name for every label (RFC 1035, RFC 5891)."""
    if len(domain) > LABEL_CHARS_MAX and max(map(len, domain.split("."))) > LABEL_CHARS_MAX:
        return False
    return domain.isascii() or isinstance(urls.parse(f"http://{domain}/"), urls.Address)
