"""Batches: together when there are many, held while the store is away, apart when one of them is at fault."""

import asyncio

from agents.batches import Batches
from agents.clients.errors import StoreUnavailable
from tests.doubles import simulated


class Store:
    """A store that can be down, be slow, or choke on an item."""

    def __init__(self, *, down=0, took_s=0.0, poison=()):
        self.calls = []
        self.down = down
        self.took_s = took_s
        self.poison = set(poison)
        self.writing = self.most = 0

    async def write(self, items):
        self.calls.append(list(items))
        self.writing += 1
        self.most = max(self.most, self.writing)
        await asyncio.sleep(self.took_s)
        self.writing -= 1
        if self.down:
            self.down -= 1
            raise StoreUnavailable("the disk is full")
        if bad := self.poison & set(items):
            raise ValueError(f"cannot write {bad}")
        return [item * 10 for item in items]


def batches(store, items_max=4, linger_s=0.01):
    return Batches(store.write, items_max=items_max, linger_s=linger_s)


def added(together, count):
    return asyncio.gather(*(together.add(number) for number in range(count)), return_exceptions=True)


def test_each_gets_its_own_result_and_a_call_has_so_many_at_most():
    async def story():
        store = Store()
        assert await added(batches(store), 10) == [number * 10 for number in range(10)]
        assert [len(call) for call in store.calls] == [4, 4, 2]

    simulated(story())


def test_what_comes_during_a_write_goes_into_the_next_one_call_at_a_time():
    async def story():
        store = Store(took_s=1.0)
        together = batches(store)
        first = asyncio.create_task(together.add(1))
        await asyncio.sleep(0.5)
        later = [asyncio.create_task(together.add(number)) for number in (2, 3)]
        assert await asyncio.gather(first, *later) == [10, 20, 30]
        assert store.calls == [[1], [2, 3]]
        assert store.most == 1

    simulated(story())


def test_a_store_that_is_down_holds_the_batch_and_says_why_until_it_is_back():
    async def story():
        store = Store(down=5)
        together = batches(store)
        adding = asyncio.create_task(together.add(1))
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.sleep(0.1)
        assert together.trouble == "the disk is full"
        assert await adding == 10
        assert together.trouble is None
        assert store.calls == [[1]] * 6
        assert abs(loop.time() - began_s - (0.01 + 0.25 + 0.5 + 1 + 2 + 4)) < 1e-6  # it doubles

    simulated(story())


def test_the_pause_is_bounded():
    async def story():
        store = Store(down=12)
        loop = asyncio.get_running_loop()
        await batches(store).add(1)
        assert loop.time() < 0.5 * 32 + 15 * 7

    simulated(story())


def test_one_bad_item_is_alone_with_its_error():
    """It used to be every item's: hundreds of messages were buried for one."""

    async def story():
        store = Store(poison={2})
        results = await added(batches(store), 6)
        assert isinstance(results[2], ValueError)
        assert [r for r in results if not isinstance(r, ValueError)] == [0, 10, 30, 40, 50]

    simulated(story())


def test_who_stops_waiting_takes_nobody_with_it():
    async def story():
        store = Store(took_s=1.0)
        together = batches(store)
        leaving, staying = (asyncio.create_task(together.add(number)) for number in (1, 2))
        await asyncio.sleep(0.5)
        leaving.cancel()
        assert await staying == 20

    simulated(story())


def test_it_begins_again_after_it_has_been_idle():
    async def story():
        store = Store()
        together = batches(store)
        assert await together.add(1) == 10
        await asyncio.sleep(10)
        assert await together.add(2) == 20

    simulated(story())
