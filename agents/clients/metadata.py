"""The metadata store: what is known of every URL, under every name it was shared by.

Four nouns. A *record* is the fields of one canonical URL. An *alias* is another URL that leads to it: the
form shared, the hops of its redirects. A *share* is one (tweet, URL) and what it was answered. An *ending*
carries all three, and is what `complete` writes before it announces anything.

The laws every implementation keeps; `tests/agents/test_metadata_store.py` holds each of them to it:

- Writing anything twice leaves the same state: same fields, same counts.
- Fields merge, one by one: what is not mentioned is kept, what is None is removed. So an ending does not wipe
  the archive's placement, and neither order of the two loses anything.
- Endings are applied in the order given; of two that claim an alias, the later wins. A URL that is written
  leads to itself again.
- An update names the URL it saw, canonical or not, before or after its ending: it ends in the record that URL
  leads to. An update alone makes nothing known; an ending does.
- A batch can be read when the call returns. After `StoreUnavailable` any part of it may be stored, and giving
  it again completes it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

READ_URLS_MAX: Final = 300
"""URLs that one `get_many` may ask for."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One (tweet, URL) and its answer, as by-tweet queries return it."""

    tweet_id: str
    url: str  # as shared
    day: str  # of the tweet, YYYY-MM-DD, UTC
    completed: Mapping[str, Any] | msgspec.Raw = field(default_factory=dict)  # JSON-able, or JSON already


@dataclass(frozen=True, slots=True)
class Ending:
    """How one fetch ended, and everybody it answers."""

    canonical_url: str
    fields: Mapping[str, Any]  # JSON-able values; None removes a field
    aliases: tuple[str, ...] = ()
    shares: tuple[Shared, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a canonical URL. A field that is not there is not known."""

    canonical_url: str
    fields: dict[str, Any]


_PLACED: Final = "content@"  # and the URL whose page stands there


def placement_of(url: str, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field that says where the page fetched from `url` is archived.

    A record may be reached through pages that are not it: one that only sends the reader on is archived too. So a
    place is kept under the URL that was fetched, and `with_content` finds the record's own.
    """
    return {_PLACED + url: dict(place)}


def with_content(record: Record) -> Record:
    """Return a record as readers know it: `content` is where the page it was read from is archived."""
    own = record.fields.get(f"{_PLACED}{record.fields.get('url')}")
    fields = {name: value for name, value in record.fields.items() if not name.startswith(_PLACED)}
    return Record(record.canonical_url, fields if own is None else fields | {"content": own})


@dataclass(frozen=True, slots=True)
class Answer:
    """One URL of a tweet, the canonical URL it was counted for, and what was answered."""

    url: str
    canonical_url: str
    completed: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShareCounts:
    """Distinct (tweet, URL) of one canonical URL."""

    total: int
    by_day: dict[str, int]  # YYYY-MM-DD, ascending


class MetadataStore(Protocol):
    """What the stages and the views ask of a metadata store. Every method may raise `StoreUnavailable`."""

    async def write(self, batch: Sequence[Ending]) -> None:
        """Store endings: records, aliases and shares. They can be read when this returns."""

    async def update(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Set a few fields of some records, by any of their URLs, and leave the other fields alone."""

    async def get_many(self, urls: Sequence[str], fields: Collection[str] | None = None) -> dict[str, Record | None]:
        """Read records through any of their URLs: one entry for each URL asked, None when it is not known.

        `fields` limits what is returned. More than `READ_URLS_MAX` URLs are a ValueError.
        """

    async def by_tweet(self, tweet_id: str) -> list[Answer]:
        """Say what was answered to each URL of a tweet, ordered by URL."""

    async def shares(self, canonical_url: str) -> ShareCounts:
        """Count the shares of a canonical URL; an alias has none of its own."""

    async def close(self) -> None:
        """Finish what was begun and let go of the store. Every later call is `StoreUnavailable`."""
