"""A run whose app had crashed waited for ever for a backlog nobody worked on."""

import asyncio
from types import SimpleNamespace

import pytest

from topology.errors import Crashed
from topology.run import _until_done


def test_a_run_whose_app_crashes_says_so():
    async def story():
        feeding = asyncio.create_task(asyncio.sleep(60))
        worker = SimpleNamespace(app=SimpleNamespace(should_stop=True, crash_reason=RuntimeError("the disk is gone")))
        try:
            with pytest.raises(Crashed, match="the disk is gone"):
                await asyncio.wait_for(_until_done(worker, feeding, asyncio.Event(), None, 0.0), 5)
        finally:
            feeding.cancel()

    asyncio.run(story())
