"""The `urls` table: what is known of each URL, and who waits for it. Owned by decide; key: the URL.

Theory of operation. An entry is *pending* while a fetch of its URL is under way, and *known* when it has a document.
Everything that asks for a pending URL is attached to it: one fetch for all. When the fetch ends, the entry becomes
known and its waiters move to `releasing`; they are dropped from there only when their answers are written to the
log. So at any instruction a waiter is in the table, or its answer is in the log, or both; a replay of the document
answers again only those whose answer may be missing.

A redirect is a fact about a URL like any other ending. Requests follow it one by one, each with its own trail, and
meet again at the target's entry.

The functions are pure: entry in, entry and what to do out. `now_ms` counts from the epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from topology.outcomes import Outcome
from topology.records import Document, FetchRequest, UrlRequest, Waiter, Wire


class Entry(Wire, frozen=True):
    """One URL. `pending` is the fetch under way; `document` the last ending known, and may be older."""

    pending: FetchRequest | None = None
    waiting: tuple[Waiter, ...] = ()
    document: Document | None = None
    fresh_until_ms: int = 0
    releasing: tuple[Waiter, ...] = ()


EMPTY: Final = Entry()


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask for a fetch. May be sent again after a replay: its `fetch_id` tells."""

    request: FetchRequest


@dataclass(frozen=True, slots=True)
class Attached:
    """Nothing to do: a fetch under way will answer."""


@dataclass(frozen=True, slots=True)
class Crowded:
    """Too many wait already: ask again later."""


@dataclass(frozen=True, slots=True)
class Known:
    """Answer from memory."""

    document: Document


Answer = Fetch | Attached | Crowded | Known
Window = Callable[[Document], float]  # seconds an ending is answered from memory


def ask(entry: Entry, request: UrlRequest, *, now_ms: int, waiting_max: int) -> tuple[Entry, Answer]:
    """Decide what becomes of a request for a URL."""
    waiter = request.waiter
    if entry.pending is not None:
        if any(same(waiter, other) for other in entry.waiting):
            return entry, Fetch(entry.pending)  # a replay: the order may not have been written
        if len(entry.waiting) >= waiting_max:
            return entry, Crowded()
        return msgspec.structs.replace(entry, waiting=(*entry.waiting, waiter)), Attached()
    if entry.document is not None and now_ms < entry.fresh_until_ms:
        return entry, Known(entry.document)
    kind = "page" if waiter.parent is None else "image"
    fetch = FetchRequest(request.url, request.domain, _fetch_id(entry, now_ms), kind, asked_ms=now_ms)
    return msgspec.structs.replace(entry, pending=fetch, waiting=(waiter,)), Fetch(fetch)


def _fetch_id(entry: Entry, now_ms: int) -> str:
    """Name a fetch: another name than the last one's, even in the same millisecond (a window may be nothing)."""
    name = f"{now_ms:x}"
    return name if entry.document is None or entry.document.fetch_id != name else f"{name}+"


def settle(entry: Entry, document: Document, *, now_ms: int, window: Window) -> tuple[Entry, tuple[Waiter, ...]]:
    """Take in how a fetch ended; return the entry and whom to answer now.

    A document of another fetch than the pending one is a replay: it answers only waiters still being released.
    """
    pending = entry.pending
    if pending is None or pending.fetch_id != document.fetch_id:
        known = entry.document
        replayed = known is not None and known.fetch_id == document.fetch_id
        return entry, entry.releasing if replayed else ()
    fresh_until_ms = now_ms + int(window(document) * 1000)
    releasing = (*entry.releasing, *entry.waiting)
    return Entry(None, (), document, fresh_until_ms, releasing), releasing


def released(entry: Entry, answered: tuple[Waiter, ...]) -> Entry:
    """Forget waiters whose answers are written."""
    left = tuple(waiter for waiter in entry.releasing if not any(same(waiter, done) for done in answered))
    return msgspec.structs.replace(entry, releasing=left)


def expired(entry: Entry, url: str, *, now_ms: int, pending_s_max: float) -> Document | None:
    """Return the ending of a fetch that was asked for too long ago and never came back."""
    pending = entry.pending
    if pending is None or now_ms - pending.asked_ms < pending_s_max * 1000:
        return None
    return Document(
        url,
        pending.domain,
        pending.fetch_id,
        pending.kind,
        Outcome.EXPIRED,
        f"no answer within {pending_s_max:g} s of asking",
    )


def forgettable(entry: Entry, *, now_ms: int, grace_s: float) -> bool:
    """Say whether an entry is past its window and grace, with nobody waiting."""
    return entry.pending is None and not entry.releasing and now_ms > entry.fresh_until_ms + grace_s * 1000


def same(one: Waiter, other: Waiter) -> bool:
    """Say whether two waiters are the same request: one (tweet, URL), or one parent's image."""
    if one.share is None or other.share is None:
        return one.share is other.share and one.parent == other.parent
    return one.share.tweet_id == other.share.tweet_id and one.share.url == other.share.url


decode: Final = msgspec.msgpack.Decoder(Entry).decode
