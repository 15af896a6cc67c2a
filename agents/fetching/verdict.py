"""What an answer of the web means for a request: a page, an ending, or another try. Pure."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from agents.clients.http import Reply, Trouble, TroubleKind
from topology.outcomes import Outcome
from topology.urls import join

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})  # RFC 9110, 15.4
TRANSIENT: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class GotPage:
    """A body worth reading."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """It is elsewhere."""

    target: str
    status: int


@dataclass(frozen=True, slots=True)
class Ending:
    """It ends here."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Again:
    """It may go better later. `reason` is how it ends when there is no try left."""

    why: str
    reason: str


Verdict = GotPage | Redirect | Ending | Again

_TROUBLE_OUTCOMES: Final = {
    TroubleKind.UNSAFE: Outcome.UNSAFE,
    TroubleKind.TOO_LARGE_HEADERS: Outcome.TOO_LARGE,
}


def verdict(answer: Reply | Trouble, url: str) -> Verdict:
    """Read an answer to a request for `url`."""
    if isinstance(answer, Trouble):
        if answer.transient:
            return Again(answer.kind.value, answer.reason)
        return Ending(_TROUBLE_OUTCOMES.get(answer.kind, Outcome.FAILED), answer.reason)
    status = answer.status
    if 200 <= status < 300:  # noqa: PLR2004 - the class of success, RFC 9110, 15.3
        return GotPage()
    if status in REDIRECTS:
        return _redirect(answer, url)
    if status in _GONE:
        return Ending(Outcome.GONE, f"the site says {_phrase(status)}")
    if status in TRANSIENT or status >= 500:  # noqa: PLR2004 - server errors, RFC 9110, 15.6
        return Again(str(status), f"the site says {_phrase(status)}")
    if 400 <= status < 500:  # noqa: PLR2004 - client errors, RFC 9110, 15.5
        return Ending(Outcome.DENIED, f"the site says {_phrase(status)}")
    return Ending(Outcome.FAILED, f"the site answers with a status that means nothing here, {_phrase(status)}")


def _redirect(reply: Reply, url: str) -> Verdict:
    location = header(reply, "location")
    target = join(url, location) if location else None
    if target is None:
        said = "without a Location" if not location else f"to what cannot be followed: {location[:200]}"
        return Ending(Outcome.FAILED, f"the site redirects ({reply.status}) {said}")
    return Redirect(target, reply.status)


def header(reply: Reply, name: str) -> str | None:
    """Return the first header of this (lower-case) name."""
    return next((value for key, value in reply.headers if key.lower() == name), None)


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
