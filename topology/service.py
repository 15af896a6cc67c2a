"""Running a worker in this process: start it, know when it is idle, stop it without losing or hurrying anything."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from faust.types import TP

from topology import names, views
from topology.embedded_log import Partition
from topology.errors import Refusal
from topology.records import Sweep
from topology.settings import Settings
from topology.stores import open_stores
from topology.wiring import Worker, build

log = logging.getLogger(__name__)

_DRAIN_LOOK_S: Final = 0.05
# What a fetched page still has to pass before it is announced.
_AFTER_FETCH: Final = (names.PAGES, names.DOCUMENTS, names.COMPLETIONS)


@asynccontextmanager
async def running(settings: Settings, *, web: bool) -> AsyncIterator[Worker]:
    """Run a worker: its stores are open and its stages at work inside, and everything is closed after.

    `web`: open the web views' port. Raises Refusal when the log, a store or the port cannot be had.
    """
    if web:
        _refuse_taken_port(settings)
    async with open_stores(settings) as stores:
        worker = build(settings, stores)
        if web:
            views.attach(worker, metadata=stores.metadata, backlogs=lambda: backlogs(worker))
        async with at_work(worker, web=web):
            yield worker


@asynccontextmanager
async def at_work(worker: Worker, *, web: bool) -> AsyncIterator[Worker]:
    """Start a worker that was built, and stop it after. Its stores are the caller's."""
    quiet_logs()
    worker.settings.data.mkdir(parents=True, exist_ok=True)
    worker.app.conf.web_enabled = web
    _refuse_early(worker)
    try:
        await worker.app.start()
        if (await worker.app.wait(worker.app.tables.recovery.completed)).stopped:
            raise worker.app.crash_reason or RuntimeError("the app stopped before it was at work")
        vultures = asyncio.create_task(_send_vultures(worker))
        try:
            yield worker
        finally:
            vultures.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await vultures
    finally:
        await worker.app.stop()
        close = getattr(worker.app.transport, "close", None)
        if close is not None:
            close()


def quiet_logs() -> None:
    """Set log levels on the loggers: Faust's handler level does not stop records from being made."""
    for name in ("faust", "mode", "aiokafka", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _refuse_taken_port(settings: Settings) -> None:
    """Try the web port before anything starts: Faust would find out last, and crash half of a running worker."""
    host, port = settings.web_host, settings.web_port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # `create_server` adds the address again
        raise Refusal(
            f"the web views cannot listen on {host} port {port}: {reason}. "
            "Choose another port with --web-port, or another address with --web-host"
        ) from error


def _refuse_early(worker: Worker) -> None:
    """Open the log before Faust starts: a Refusal says more than a crashed service."""
    transport = worker.app.transport
    if hasattr(transport, "log"):
        try:
            for topic in names.TOPICS:
                transport.log.create_topic(topic, worker.settings.partitions)
        except Refusal:
            transport.close()
            raise


# Every topic a stage reads. When nothing in them is unacknowledged, every request has ended.
CONSUMED: Final = (
    names.TWEETS,
    names.URL_REQUESTS,
    names.FETCH_REQUESTS,
    names.DEFERRED,
    names.PAGES,
    names.DOCUMENTS,
    names.COMPLETIONS,
)


def backlog(worker: Worker, topics: Iterable[str] = CONSUMED) -> int:
    """Count messages of these topics that are not acknowledged: waiting, or being worked on."""
    consumer = worker.app.consumer
    left = 0
    for topic in topics:
        for number in range(worker.settings.partitions):
            tp = TP(topic, number)
            if tp in consumer.assignment():
                left += consumer.highwater(tp) - consumer.done_until(tp) - consumer.done_beyond(tp)
    return left


def backlogs(worker: Worker) -> dict[str, int]:
    """Count messages that are not acknowledged, for every topic a stage reads."""
    return {topic: backlog(worker, (topic,)) for topic in CONSUMED}


def undelivered(worker: Worker, topics: Iterable[str]) -> int:
    """Count messages of these topics that no stage has taken yet."""
    log_ = worker.app.transport.log
    left = 0
    for topic in topics:
        for number in range(worker.settings.partitions):
            where = Partition(topic, number)
            left += log_.end(where) - (log_.position(where) or 0)
    return left


async def drain(worker: Worker) -> bool:
    """Stop beginning fetches, and let what has begun reach its announcement, within `drain_s_max`.

    Returns whether it did. What was not begun stays in the log.
    """
    until_s = time.monotonic() + worker.settings.drain_s_max
    fetcher = worker.stages.get(names.FETCH)
    if fetcher is not None:
        fetcher.draining = True
    while time.monotonic() < until_s:
        if (fetcher is None or not fetcher.lanes.under_way) and not backlog(worker, _AFTER_FETCH):
            return True
        await asyncio.sleep(_DRAIN_LOOK_S)
    return False


async def _send_vultures(worker: Worker) -> None:
    """Tell the owner of each partition, now and then, to forget what is past its window."""
    while True:
        await asyncio.sleep(worker.settings.sweep_interval_s)
        for stage, topic in (("decide", names.URL_REQUESTS), ("fetch", names.FETCH_REQUESTS)):
            if stage not in worker.settings.stages:
                continue
            for tp in worker.app.consumer.assignment():
                if tp.topic == topic:
                    await worker.outlets[topic].to_partition(tp.partition, Sweep())


def ensure_local(settings: Settings) -> None:
    """Refuse what only works on the embedded log."""
    if settings.log_url != "embedded:":
        raise Refusal(f"this needs log_url = embedded: (it is {settings.log_url}); with Kafka use its own clients")
