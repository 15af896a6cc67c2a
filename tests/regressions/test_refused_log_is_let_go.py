"""A log that was refused (its format, its partitions) stayed open: the next try in the process met its lock."""

import asyncio

import pytest

from topology.embedded_log import Log
from topology.errors import Refusal
from topology.service import running
from topology.settings import Settings


def test_after_a_refusal_the_directory_can_be_opened(tmp_path):
    log = Log(tmp_path / "log", memory_bytes_max=1, kept_records_max=1)
    log.create_topic("tweets", 4)
    log.close()

    async def start(partitions):
        flags = {"data": str(tmp_path), "partitions": partitions, "stages": "extract"}
        async with running(Settings.load(flags=flags, environ={}), web=False):
            pass

    with pytest.raises(Refusal, match="has 4 partitions for topic 'tweets', the settings say 3"):
        asyncio.run(start(3))
    asyncio.run(start(4))
