"""A worker of two stages that is meant to be killed: `in` to `middle` to `out`, acknowledged out of order."""

import asyncio
import random
import sys
from asyncio import Future
from pathlib import Path
from typing import Any

import faust
from faust.transport.drivers import TRANSPORTS

from agents.pump import Acted, Pump
from topology.embedded_log import Partition
from topology.events import Events
from topology.runtime import PromptTableManager, QuietMonitor

PARTITIONS = 2


def make(folder: Path) -> Any:
    """Make the app."""
    TRANSPORTS.aliases.setdefault("embedded", "topology.embedded:Transport")
    return faust.App(
        "chaotic",
        broker=f"embedded://{folder / 'log'}",
        datadir=str(folder / "state"),
        autodiscover=False,
        topic_partitions=PARTITIONS,
        topic_disable_leader=True,
        broker_commit_interval=0.02,
        stream_wait_empty=False,
        TableManager=PromptTableManager,
        Monitor=QuietMonitor,
        web_enabled=False,
    )


def attach(app: Any, source: str, sink: str, chance: random.Random) -> None:
    """Attach a stage that takes its time with each message."""
    topic = app.topic(
        source,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        partitions=PARTITIONS,
        internal=True,
    )
    topic.maxsize = 32

    async def bury(raw: bytes, _: str, reason: str) -> "Future[Any]":
        raise AssertionError(reason, raw)

    async def handle(event: Any) -> Acted:
        await asyncio.sleep(chance.expovariate(200))
        return Acted((await app.producer.send(sink, event.key, event.value, None, None, None),))

    @app.agent(topic, name=source)
    async def stage(stream: Any) -> None:
        await Pump(source, Events(), bury, in_flight_max=50, concurrent=True).run(stream, handle)


async def feed(app: Any, count: int) -> None:
    """Feed what was not fed before; how far is noted in the same write."""
    log = app.transport.log
    for number in range(int(log.noted("fed") or 0), count):
        await app.producer.send("in", b"%d" % (number % 7), b"%d" % number, None, None, None)
        log.note("fed", b"%d" % (number + 1))
        if number % 20 == 0:
            await asyncio.sleep(0.001)


async def main(folder: Path, count: int, seed: int) -> None:
    """Work until everything is committed, or until somebody kills us."""
    app, chance = make(folder), random.Random(seed)
    attach(app, "in", "middle", chance)
    attach(app, "middle", "out", chance)
    await app.start()
    await app.tables.recovery.completed.wait()
    print("at work", flush=True)  # noqa: T201 - the test listens
    await feed(app, count)
    log = app.transport.log
    places = [Partition(topic, number) for topic in ("in", "middle") for number in range(PARTITIONS)]
    while any((log.committed(where) or 0) < log.end(where) for where in places):  # noqa: ASYNC110 - the log has no event for it
        await asyncio.sleep(0.02)
    await app.stop()
    app.transport.close()
    print("done", flush=True)  # noqa: T201
    await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
