"""A message one of whose sends was cancelled was acknowledged when another one was safe: at a stop, it was lost."""

import asyncio

from agents.pump import Acted, Pump
from tests.doubles import Stream, event, simulated
from topology.events import Events


def test_a_message_is_not_acknowledged_for_half_of_what_follows_from_it():
    async def story():
        loop, stream, one = asyncio.get_running_loop(), Stream(), event(b"x")
        cancelled, safe = loop.create_future(), loop.create_future()

        async def handle(_):
            return Acted((cancelled, safe))

        async def bury(*_):
            raise AssertionError

        pump = Pump("stage", Events(), bury, in_flight_max=1)
        running = asyncio.create_task(pump.run(stream, handle))
        stream.put(one)
        await asyncio.sleep(0.1)
        cancelled.cancel()
        safe.set_result(None)
        await asyncio.sleep(0.1)
        assert one.acked == 0
        running.cancel()

    simulated(story())
