"""One item a store cannot write failed the whole batch: hundreds of announcements went to dead-letters for it."""

import asyncio

from agents.batches import Batches
from tests.doubles import simulated


def test_only_the_bad_item_fails():
    async def write(items):
        if "bad" in items:
            raise ValueError("bad")
        return items

    async def story():
        together = Batches(write, items_max=10, linger_s=0.01)
        return await asyncio.gather(*map(together.add, ["a", "bad", "b"]), return_exceptions=True)

    a, bad, b = simulated(story())
    assert (a, b) == ("a", "b")
    assert isinstance(bad, ValueError)
