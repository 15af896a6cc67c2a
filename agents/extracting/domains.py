"""Which stretch of a run of letters, digits, `-`, `_` and `.` is a domain (twitter-text's grammar).

    domain = *( subdomain "." ) name "." tld      subdomain may hold `_` inside, name may not, both may hold `-`

The top-level domain may be followed by any character but an ASCII letter, a digit, `@`, `+` or `-`: text in
scripts without spaces goes on directly (`example.comです`), an e-mail address does not end there.
"""

import re
from bisect import bisect_right
from functools import cache
from typing import Final

from topology import urls

LABEL_CHARS_MAX: Final = 63  # RFC 1035, 2.3.4; an internationalised label is longer still in punycode

_PUNYCODE_TLD: Final = re.compile(r"xn--[0-9a-z-]*[0-9a-z]", re.IGNORECASE)
_NO_TLD_BEFORE: Final = re.compile(r"[0-9A-Za-z@+\-]")
_EDGE: Final = frozenset("-_")


class Chains:
    """The labels of one run and, from each, how far a domain reaches. One pass, right to left.

    `possible` is False when no label can be a top-level domain: most runs with a dot end a sentence.
    """

    __slots__ = ("_full", "_labels", "_last_underscore", "_sound", "_starts", "_tlds", "possible")

    def __init__(self, text: str, start: int, end: int) -> None:
        """Read `text[start:end]`, a run: it holds no white space and of ASCII punctuation only `-`, `_`, `.`."""
        self._labels = labels = text[start:end].split(".")
        self._tlds = [0] + [_tld_length(label) for label in labels[1:]]  # by label: how long a TLD it begins with
        if self._tlds[-1] == len(labels[-1]) and _NO_TLD_BEFORE.match(text, end):
            self._tlds[-1] = 0
        self.possible = any(self._tlds)
        if self.possible:
            self._starts = _starts_of(labels, start)
            self._sound = [label != "" and label[-1] not in _EDGE for label in labels]
            self._last_underscore = [label.rfind("_") for label in labels]
            self._full = self._reach(labels)

    def end_of_domain(self, start: int) -> int:
        """Where the longest domain that begins at a position ends; 0 if none does."""
        if not self.possible:
            return 0
        index = bisect_right(self._starts, start) - 1
        within = start - self._starts[index]
        if not self._sound[index] or self._labels[index][within] in _EDGE or index + 1 == len(self._tlds):
            return 0
        last = self._full[index + 1]
        if not last and self._tlds[index + 1] and self._last_underscore[index] < within:
            last = index + 1
        return self._starts[last] + self._tlds[last] if last else 0

    def _reach(self, labels: list[str]) -> list[int]:
        """By label: the furthest label that can be the TLD of a domain in which this one is a whole label."""
        reach = [0] * len(labels)
        for index in range(len(labels) - 2, -1, -1):
            if self._sound[index] and labels[index][0] not in _EDGE:
                follows = self._tlds[index + 1] and self._last_underscore[index] < 0
                reach[index] = reach[index + 1] or (index + 1 if follows else 0)
        return reach


def _starts_of(labels: list[str], start: int) -> list[int]:
    starts = []
    for label in labels:
        starts.append(start)
        start += len(label) + 1
    return starts


def _tld_length(label: str) -> int:
    """How many characters at the start of a label are a top-level domain; 0 for none, the longest of several."""
    known, chars_max = _tlds()
    if label.isascii():
        lower = label.lower()
        if lower in known:
            return len(label)
        if not lower.startswith("xn--") and "_" not in lower:
            return 0
    if punycode := _PUNYCODE_TLD.match(label):
        return punycode.end()
    for length in range(min(len(label), chars_max), 0, -1):
        if label[:length].lower() in known and not _NO_TLD_BEFORE.match(label, length):
            return length
    return 0


@cache
def _tlds() -> tuple[frozenset[str], int]:
    known = urls.top_level_domains()
    return known, max(map(len, known))
