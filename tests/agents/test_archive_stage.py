"""Archive: a page is acknowledged when it is safe, its record says where it is, and an absent store is waited for."""

import asyncio

from agents.archive import Archivist, placement_fields
from agents.clients.errors import StoreUnavailable
from agents.clients.metadata import Record, with_content
from tests.doubles import FakeClock, event, simulated
from topology.events import Events
from topology.records import Http, Page, Placed, Visit


def page(number=0, kind="page"):
    return Page(f"http://a.test/{number}", "a.test", "f", kind, Http(200), Visit(), b"", 0, b"")


class Store:
    """An archive and a metadata store in one."""

    def __init__(self):
        self.added, self.updates, self.ticks = [], [], 0
        self.down = 0

    def _maybe(self):
        if self.down:
            self.down -= 1
            raise StoreUnavailable("no space")

    async def add(self, pages, _):
        self._maybe()
        self.added += pages
        return [Placed("segment", number, 10) for number, _ in enumerate(pages)]

    async def tick(self, _):
        self.ticks += 1
        self._maybe()

    async def update(self, changes):
        self.updates.append(dict(changes))


def archivist():
    store = Store()
    return store, Archivist(Events(), FakeClock(), archive=store, metadata=store)


def test_pages_are_archived_together_and_their_records_say_where():
    async def story():
        store, stage = archivist()
        kinds = ["page", "image", "page"]
        acted = await asyncio.gather(*(stage.on_page(event(page(n, kind))) for n, kind in enumerate(kinds)))
        assert all(one.sent == () for one in acted)
        assert [one.url for one in store.added] == [f"http://a.test/{n}" for n in range(3)]
        assert store.updates == [  # one call; an image has no record of its own
            {f"http://a.test/{n}": placement_fields(f"http://a.test/{n}", Placed("segment", n, 10)) for n in (0, 2)}
        ]

    simulated(story())


def test_only_images_update_nothing():
    async def story():
        store, stage = archivist()
        await stage.on_page(event(page(kind="image")))
        assert (len(store.added), store.updates) == (1, [])

    simulated(story())


def test_a_page_waits_for_a_store_that_is_away_and_the_trouble_is_told():
    async def story():
        store, stage = archivist()
        store.down = 3
        adding = asyncio.create_task(stage.on_page(event(page())))
        await asyncio.sleep(0.5)
        assert (adding.done(), stage.batches.trouble) == (False, "no space")
        await adding
        assert (len(store.added), stage.batches.trouble) == (1, None)

    simulated(story())


def test_the_tick_goes_on_when_the_store_is_away_and_the_trouble_ends_with_it():
    """It used to be told until the next page, which may be a long time."""

    async def story():
        store, stage = archivist()
        store.down = 2
        ticking = asyncio.create_task(stage.tick())
        await asyncio.sleep(2.5)
        assert (store.ticks, stage.batches.trouble) == (2, "no space")
        await asyncio.sleep(1)
        assert (store.ticks, stage.batches.trouble) == (3, None)
        stage.batches.trouble = "the disk is full"  # a batch that waits says why, whatever the tick finds
        await asyncio.sleep(1)
        assert stage.batches.trouble == "the disk is full"
        ticking.cancel()

    simulated(story())


def test_a_placement_is_a_content_field():
    fields = {"url": "http://a.test/", **placement_fields("http://a.test/", Placed("s", 1, 2))}
    assert with_content(Record("c", fields)).fields["content"] == {"segment": "s", "offset": 1, "length": 2}
