"""pages -> object storage (WARC), metadata store. Key: registered domain. Owns the open segments.

A page is acknowledged when it is safe in the archive and its place is in the metadata. Nobody waits for this: the
announcement goes its own way, and the place reaches the record as an update of a few fields.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from faust.types import AppT, EventT, StreamT, TopicT

from agents.archiving.archive import Archive
from agents.batches import Batches
from agents.clients.errors import StoreUnavailable
from agents.clients.metadata import MetadataStore, placement_of
from agents.pump import NOTHING, Acted, Pump
from topology import names
from topology.events import Events
from topology.records import Page, Placed

_BATCH_MAX: Final = 64
_LINGER_S: Final = 0.05
_TICK_S: Final = 1.0

_decode: Final = msgspec.msgpack.Decoder(Page).decode


def placement_fields(url: str, placed: Placed) -> dict[str, Any]:
    """Return what a record says of where its page is archived."""
    return placement_of(url, {"segment": placed.segment, "offset": placed.offset, "length": placed.length})


class Archivist:
    """Adds pages to the archive in batches, and says where they are."""

    def __init__(
        self, events: Events, clock: Callable[[], float], *, archive: Archive, metadata: MetadataStore
    ) -> None:
        self._events = events
        self._clock = clock
        self._archive = archive
        self._metadata = metadata
        self.batches: Batches[Page, Placed] = Batches(self._write, items_max=_BATCH_MAX, linger_s=_LINGER_S)

    async def on_page(self, event: EventT[bytes]) -> Acted:
        """Archive one page."""
        await self.batches.add(_decode(event.value))
        return NOTHING

    async def tick(self) -> None:
        """Close old segments and put what waits, for ever."""
        told = None
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                await self._archive.tick(self._clock())
            except StoreUnavailable as error:
                told = self.batches.trouble = str(error)
            else:
                if self.batches.trouble == told:  # ours; what a write that waits has said stands until it is through
                    self.batches.trouble = None

    async def _write(self, pages: list[Page]) -> list[Placed]:
        placed = await self._archive.add(pages, self._clock())
        # An image has no record of its own: its page's record has its type and size.
        both = zip(pages, placed, strict=True)
        places = {page.url: placement_fields(page.url, at) for page, at in both if page.kind == "page"}
        if places:
            await self._metadata.update(places)
        self._events.count("archived", "pages", len(pages))
        return placed


def attach(app: AppT, *, pages: TopicT, archivist: Archivist, pump: Callable[..., Pump]) -> None:
    """Attach the archive stage. It reads what parse reads: neither waits for the other."""

    @app.agent(pages, name=names.ARCHIVE)
    async def archive(stream: StreamT[bytes]) -> None:
        """Keep each page as it came."""
        await pump(names.ARCHIVE, concurrent=True).run(stream, archivist.on_page)

    app.task(archivist.tick)
