"""How a URL can end, and what each ending means for the next request of the same URL.

A closed list: every stage ends a request in its next topic or in one of these words, and every word has a
policy (`POLICY` is total, a test proves it). Nothing ends in an exception or in silence.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """One word for how a request ended."""

    FETCHED = "fetched"  # the page was read; its metadata is in the store
    CACHED = "cached"  # answered from an earlier fetch, still inside its window
    GONE = "gone"  # 404 or 410
    DENIED = "denied"  # any other 4xx: the site will not show it to us
    REFUSED = "refused"  # robots.txt forbids it
    HALTED = "halted"  # the domain is halted by an operator or a breaker
    REJECTED = "rejected"  # a queue was full
    UNSAFE = "unsafe"  # its address is not public
    INVALID = "invalid"  # not a URL that can be fetched
    TOO_LARGE = "too-large"  # larger than a bound that makes a cut copy useless
    TOO_MANY_REDIRECTS = "too-many-redirects"
    REDIRECT_LOOP = "redirect-loop"
    WALL = "wall"  # a captcha, consent or log-in page stood where the page should be
    BROKEN = "broken"  # the page broke the parser, or took it too long
    EXPIRED = "expired"  # it waited longer than a request may
    FAILED = "failed"  # the network or the site failed, retries included
    REDIRECTED = "redirected"  # internal: this URL leads to another; requests follow it there


@dataclass(frozen=True, slots=True)
class Policy:
    """What an ending means for the next request of the same URL.

    `window` names the setting that says how long the ending is answered from memory.
    `answers_as_cached`: a repeat inside the window is announced as `cached`; otherwise under its own word.
    """

    window: str
    answers_as_cached: bool = False


_FETCHED = Policy("window_fetched_s", answers_as_cached=True)
_GONE = Policy("window_gone_s")
_TRANSIENT = Policy("window_failed_s")
_REFUSED = Policy("window_refused_s")

POLICY: Final[dict[Outcome, Policy]] = {
    Outcome.FETCHED: _FETCHED,
    Outcome.CACHED: _FETCHED,
    Outcome.REDIRECTED: _FETCHED,
    Outcome.GONE: _GONE,
    Outcome.DENIED: _GONE,
    Outcome.REFUSED: _REFUSED,
    Outcome.UNSAFE: _REFUSED,
    Outcome.INVALID: _REFUSED,
    Outcome.TOO_LARGE: _REFUSED,
    Outcome.TOO_MANY_REDIRECTS: _TRANSIENT,
    Outcome.REDIRECT_LOOP: _TRANSIENT,
    Outcome.HALTED: _TRANSIENT,
    Outcome.REJECTED: _TRANSIENT,
    Outcome.WALL: _TRANSIENT,
    Outcome.BROKEN: _GONE,
    Outcome.EXPIRED: _TRANSIENT,
    Outcome.FAILED: _TRANSIENT,
}
