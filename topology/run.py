"""`spiderduck run`: a worker that lives as long as its input, and says how every request ended.

A run is over when nothing is left unacknowledged anywhere in the log: every message is acknowledged only when what
follows from it stands in the log, so an empty log is the proof that every request has ended.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from topology import names
from topology.embedded_log import Log, Partition
from topology.events import Events
from topology.feeding import Feed
from topology.service import backlog, drain, ensure_local, running
from topology.settings import Settings
from topology.wiring import Worker

_LOOK_S: Final = 0.02
_SHOW_S: Final = 0.2
_NOTE: Final = "run"  # where url-completed and dead-letters stood when the command was first given

Show = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """How a run stands."""

    requests: int
    completed: int
    outcomes: dict[str, int]
    fed_all: bool
    elapsed_s: float
    waiting: int
    deferred: int
    slowest: list[tuple[str, int]]  # domain, requests queued


@dataclass(frozen=True, slots=True)
class Summary:
    """What `--json` prints. Durations are milliseconds of this session; counts include the sessions it resumed."""

    tweets: int
    requests: int
    completed: int
    outcomes: dict[str, int]
    urls_per_s: float
    elapsed_s: float
    latency_ms: dict[str, float]
    own_ms: dict[str, float]
    stages_ms: dict[str, dict[str, float]]
    unreadable: list[str]  # FILE:LINE of what could not be read
    finished: bool
    resumed_lines: int
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


class _Count(msgspec.Struct):
    """As much of a url-completed as a summary needs."""

    tweet_id: str
    url: str
    outcome: str


class _Letter(msgspec.Struct):
    source: str


async def run(settings: Settings, sources: tuple[str, ...], *, stop: asyncio.Event, show: Show | None = None) -> Summary:
    """Crawl what the sources hold; on `stop`, finish what is in flight and return with `finished` false.

    Raises Refusal when a source cannot be read or the data directory cannot be had.
    """
    ensure_local(settings)
    async with running(settings, web=False) as worker:
        log = worker.app.transport.log
        starts = _starts(log, settings.partitions)
        feed = Feed(worker, sources)
        began_s = time.perf_counter()
        feeding = asyncio.create_task(feed.run(stop.is_set))
        try:
            await _until_done(worker, feeding, stop, show, began_s)
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        elapsed_s = time.perf_counter() - began_s
        finished = not stop.is_set() or not backlog(worker)
        if finished:
            feed.forget()
            log.note(_NOTE, None)
        else:
            await drain(worker)
        await worker.app.consumer.commit()
        log.flush()
        return _summary(worker, feed, starts, elapsed_s, finished=finished)


async def _until_done(
    worker: Worker, feeding: "asyncio.Task[None]", stop: asyncio.Event, show: Show | None, began_s: float
) -> None:
    shown_s = 0.0
    while True:
        if feeding.done():
            feeding.result()  # a source that cannot be read ends the run
            if not backlog(worker):
                break
        if stop.is_set():
            break
        now_s = time.perf_counter()
        if show is not None and now_s - shown_s >= _SHOW_S:
            show(progress(worker, fed_all=feeding.done(), elapsed_s=now_s - began_s))
            shown_s = now_s
        await asyncio.sleep(_LOOK_S)
    if show is not None:
        show(progress(worker, fed_all=feeding.done(), elapsed_s=time.perf_counter() - began_s))


def progress(worker: Worker, *, fed_all: bool, elapsed_s: float) -> Progress:
    """Say how a worker stands."""
    lanes = worker.stages[names.FETCH].lanes
    return Progress(
        worker.events.counts["shares"].total(),
        worker.events.counts["completed"].total(),
        dict(worker.events.counts["completed"]),
        fed_all,
        elapsed_s,
        lanes.waiting,
        backlog(worker, (names.DEFERRED,)),
        [(lane.domain, len(lane.queue)) for lane in lanes.busiest(5) if lane.queue],
    )


def _starts(log: Log, partitions: int) -> dict[str, list[int]]:
    """Return where the public topics stood when this command was first given, and remember it for a resumption."""
    raw = log.noted(_NOTE)
    if raw is not None:
        return msgspec.json.decode(raw, type=dict[str, list[int]])
    starts = {
        topic: [log.end(Partition(topic, number)) for number in range(partitions)]
        for topic in (names.URL_COMPLETED, names.DEAD_LETTERS)
    }
    log.note(_NOTE, msgspec.json.encode(starts))
    log.flush()
    return starts


def _summary(
    worker: Worker, feed: Feed, starts: dict[str, list[int]], elapsed_s: float, *, finished: bool
) -> Summary:
    log, events = worker.app.transport.log, worker.events
    outcomes, requests = dict(events.counts["completed"]), events.counts["shares"].total()
    if feed.resumed:
        ended = _since(log, names.URL_COMPLETED, starts[names.URL_COMPLETED], _Count)
        outcomes = dict(Counter(count.outcome for count in ended))
        requests = max(len({(count.tweet_id, count.url) for count in ended}), requests)
    completed = sum(outcomes.values())
    letters = _since(log, names.DEAD_LETTERS, starts[names.DEAD_LETTERS], _Letter)
    return Summary(
        events.counts["tweets_read"]["ok"],
        requests,
        completed,
        outcomes,
        round(events.counts["completed"].total() / max(elapsed_s, 1e-9), 1),
        round(elapsed_s, 3),
        _percentiles(events, "total", (50, 95, 99)),
        _percentiles(events, "own", (50, 99)),
        events.percentiles(),
        sorted(letter.source for letter in letters),
        finished,
        feed.resumed,
        {name: dict(counts) for name, counts in events.counts.items() if counts},
    )


def _percentiles(events: Events, stage: str, percents: tuple[int, ...]) -> dict[str, float]:
    return {f"p{percent}": events.stages[stage].percentile(percent) for percent in percents}


def _since(log: Log, topic: str, starts: list[int], kind: Any) -> list[Any]:
    decode = msgspec.json.Decoder(kind).decode
    found = []
    for number, start in enumerate(starts):
        offset = start
        while records := log.read(Partition(topic, number), offset, records_max=1000, bytes_max=8 << 20):
            found.extend(decode(record.value) for record in records)
            offset = records[-1].offset + 1
    return found
