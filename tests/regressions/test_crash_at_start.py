"""An app that crashed while it started was waited for, for ever: nothing said so, and nothing ended."""

import asyncio

import pytest

from topology.embedded import Consumer
from topology.service import running
from topology.settings import Settings


def test_a_crash_at_the_start_is_raised_and_the_directory_let_go(tmp_path, monkeypatch):
    settings = Settings.load(flags={"data": str(tmp_path), "stages": "extract"}, environ={})

    async def start():
        async with asyncio.timeout(20), running(settings, web=False):
            pass

    async def broken(*_):
        raise ValueError("no such luck")

    with monkeypatch.context() as patched:
        patched.setattr(Consumer, "_seek", broken)
        with pytest.raises(ValueError, match="no such luck"):
            asyncio.run(start())
    asyncio.run(start())
