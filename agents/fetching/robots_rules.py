"""Matching a URL against the rules of a robots.txt (RFC 9309 2.2.2, 2.2.3). Pure.

Paths and rules are compared byte by byte, so both are text with one character per byte, in one spelling: escapes
are undone, except those of `/`, `%`, `*` and `$`, which mean something else than the bare character and are kept
apart from it. `*` is matched from left to right and never tried twice, so a comparison is linear in the path
however the rule was written.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_LITERAL: Final = {character: chr(0x100 + ord(character)) for character in "/%*$"}
"""What an escaped `/`, `%`, `*` or `$` becomes: a character no byte can be."""
_STARS: Final = re.compile(r"\*+")

_PLAIN_FOOTPRINT_BYTES: Final = 150  # a dictionary entry and its text, measured with sys.getsizeof
_WILDCARD_FOOTPRINT_BYTES: Final = 400  # the same with the value, its tuple and its parts


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A rule with `*` in it or `$` at its end. `parts` is the text around the stars, `length` that of the rule."""

    length: int
    allow: bool
    parts: tuple[str, ...]
    anchored: bool

    def matches(self, path: str) -> bool:
        """Whether a path that begins with the first part matches. Taking each part at its first place is enough."""
        at = len(self.parts[0])
        if len(self.parts) == 1:
            return len(path) == at  # no star, so the anchor made it a wildcard
        for part in self.parts[1:-1]:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        last = self.parts[-1]
        if self.anchored:
            return len(path) - len(last) >= at and path.endswith(last)
        return path.find(last, at) >= 0


@dataclass(frozen=True, slots=True)
class Rules:
    """What one file says to one agent. `crawl_delay_s` is seconds between two requests, None when not stated."""

    crawl_delay_s: float | None = None
    plain: Mapping[str, bool] = field(default_factory=dict)  # the text of a rule: whether it allows
    plain_lengths: tuple[int, ...] = ()  # longest first, each once
    wildcards: Mapping[str, tuple[Wildcard, ...]] = field(default_factory=dict)  # by first part; longest first
    wildcard_lengths: tuple[int, ...] = ()  # of the first parts
    footprint_bytes: int = 0  # roughly what this value costs in memory

    def allowed(self, url: str) -> bool:
        """Whether the agent may fetch `url`; the longest matching rule decides. /robots.txt is always allowed."""
        if not self.plain and not self.wildcards:
            return True
        path = matched_part(url)
        if path == "/robots.txt":
            return True
        best = self._longest_plain(path)
        for length in self.wildcard_lengths:
            for rule in self.wildcards.get(path[:length], ()):
                rank = (rule.length, rule.allow)
                if rank <= best:
                    break
                if rule.matches(path):
                    best = rank
                    break
        return best[1]

    def _longest_plain(self, path: str) -> tuple[int, bool]:
        """The length of the longest plain rule the path begins with, and whether it allows."""
        for length in self.plain_lengths:
            allow = self.plain.get(path[:length])
            if allow is not None:
                return length, allow
        return 0, True


ALLOW_ALL: Final = Rules()
DISALLOW_ALL: Final = Rules(plain={"/": False}, plain_lengths=(1,))


def rules_of(patterns: Mapping[str, bool], crawl_delay_s: float | None = None) -> Rules:
    """Index rules for matching. `patterns`: each rule in its normal spelling, and whether it allows."""
    plain = {text: allow for text, allow in patterns.items() if "*" not in text and not text.endswith("$")}
    wildcards = [_wildcard(text, allow) for text, allow in patterns.items() if text not in plain]
    wildcards.sort(key=lambda rule: (rule.parts[0], -rule.length, not rule.allow))
    by_first = {first: tuple(rules) for first, rules in groupby(wildcards, key=lambda rule: rule.parts[0])}
    footprint = (
        sum(map(len, patterns)) + _PLAIN_FOOTPRINT_BYTES * len(plain) + _WILDCARD_FOOTPRINT_BYTES * len(wildcards)
    )
    return Rules(
        crawl_delay_s=crawl_delay_s,
        plain=plain,
        plain_lengths=_lengths(plain),
        wildcards=by_first,
        wildcard_lengths=_lengths(by_first),
        footprint_bytes=footprint,
    )


def _wildcard(text: str, allow: bool) -> Wildcard:
    """One rule with a meaning beyond its text."""
    bare = text.removesuffix("$")
    return Wildcard(len(text), allow, tuple(_STARS.sub("*", bare).split("*")), anchored=bare != text)


def _lengths(texts: Mapping[str, object]) -> tuple[int, ...]:
    """The lengths that occur, longest first."""
    return tuple(sorted({len(text) for text in texts}, reverse=True))


def matched_part(url: str) -> str:
    """The part of a URL that rules are compared with: path and query, without the fragment, in the normal spelling."""
    text = url.partition("#")[0]
    authority = text.find("//")
    if authority >= 0 and text.find("/") == authority:
        ends = [at for at in (text.find("/", authority + 2), text.find("?", authority + 2)) if at >= 0]
        text = text[min(ends) :] if ends else "/"
    if not text.isascii():
        text = text.encode("utf-8", "surrogatepass").decode("latin-1")
    path = normal(text).replace("*", _LITERAL["*"]).replace("$", _LITERAL["$"])
    return path if path.startswith("/") else f"/{path}"


def normal(text: str) -> str:
    """One spelling for equal paths (2.2.2): every escape undone, those of special characters to their literals."""
    return _ESCAPE.sub(_unescaped, text) if "%" in text else text


def normal_pattern(text: str) -> str:
    """The same for a rule, where `*` is any text and a last `$` the end; any other `$` is a character like others."""
    anchor = "$" if text.endswith("$") else ""
    return normal(text.removesuffix("$")).replace("$", _LITERAL["$"]) + anchor


def _unescaped(escape: re.Match[str]) -> str:
    """The character an escape stands for."""
    character = chr(int(escape.group(1), 16))
    return _LITERAL.get(character, character)
