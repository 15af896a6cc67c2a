"""Faust's `app.topic(maxsize=...)` forgets the number: every stream held up to 4096 messages, pages included."""

import asyncio

import faust

from topology import names
from topology.settings import Settings
from topology.wiring import declare_topics, make_app


def test_stock_faust_still_forgets_the_size_of_a_buffer():
    """When this fails, Faust has mended it, and `wiring._topic` may say `maxsize=` again."""
    assert faust.App("t", broker="kafka://").topic("t", maxsize=16).maxsize is None


def test_the_buffer_of_every_stream_is_as_small_as_the_wiring_says(tmp_path):
    async def sizes():
        app = make_app(Settings.load(flags={"data": str(tmp_path)}, environ={}))
        topics = declare_topics(app, Settings())
        # What an agent reads is a clone of the topic it was given.
        return {name: topic.clone(is_iterator=False).queue.maxsize for name, topic in topics.items()}

    found = asyncio.run(sizes())
    assert found[names.PAGES] == 64
    assert all(0 < size <= 512 for size in found.values())
