"""`spiderduck run`: a worker that lives as long as its input, and says how every request ended.

A run is over when nothing is left unacknowledged anywhere in the log: every message is acknowledged only when what
follows from it stands in the log, so an empty log is the proof that every request has ended.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from topology import names
from topology.embedded_log import Log, Partition
from topology.errors import Crashed, Refusal
from topology.events import Events
from topology.feeding import Feed
from topology.service import backlog, drain, ensure_local, running
from topology.settings import STAGES, Settings
from topology.sources import check
from topology.wiring import Worker

_LOOK_S: Final = 0.02
_SHOW_S: Final = 0.2
_UNREADABLE_MAX: Final = 1000  # named one by one in a summary; dead-letters has them all
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


class Unread(msgspec.Struct, frozen=True):
    """One input that could not be read: where it stood (FILE:LINE), and why. A dead letter without its text."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What `--json` prints.

    Durations are milliseconds of this session. `requests`, `completed` and `outcomes` include the sessions it
    resumed, and then count each (tweet, URL) once; `tweets` are this session's, `resumed_lines` were read before it.
    """

    tweets: int
    requests: int
    completed: int
    outcomes: dict[str, int]
    urls_per_s: float
    elapsed_s: float
    latency_ms: dict[str, float]
    own_ms: dict[str, float]
    stages_ms: dict[str, dict[str, float]]
    unreadable: list[Unread]  # the first thousand
    unreadable_total: int
    finished: bool
    resumed_lines: int
    data: str
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


class _Count(msgspec.Struct):
    """As much of a url-completed as a summary needs."""

    tweet_id: str
    url: str
    outcome: str


async def run(
    settings: Settings, sources: tuple[str, ...], *, stop: asyncio.Event, show: Show | None = None
) -> Summary:
    """Crawl what the sources hold; on `stop`, finish what is in flight and return with `finished` false.

    Raises Crashed when a service of the worker does, and Refusal when a source cannot be opened or the data directory
    cannot be had.
    """
    ensure_local(settings)
    _ensure_whole(settings)
    check(sources)
    async with running(settings, web=False) as worker:
        log = worker.app.transport.log
        starts, resumes = _starts(log, settings.partitions)
        feed = Feed(worker, sources)
        began_s = time.perf_counter()
        feeding = asyncio.create_task(feed.run(stop.is_set))
        try:
            await _until_done(worker, feeding, stop, show, began_s)
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        elapsed_s = time.perf_counter() - began_s
        if backlog(worker):
            await drain(worker)
        finished = feed.has_fed_all and not backlog(worker)
        if finished:
            feed.forget()
            log.note(_NOTE, None)
        await worker.app.consumer.commit()
        log.flush()
        return _summary(worker, feed, starts, elapsed_s, resumes=resumes, finished=finished)


async def _until_done(
    worker: Worker, feeding: "asyncio.Task[None]", stop: asyncio.Event, show: Show | None, began_s: float
) -> None:
    shown_s = 0.0
    while True:
        if worker.app.should_stop:  # a service of it crashed: what is left would never be done
            reason = worker.app.crash_reason
            raise Crashed(f"the worker crashed: {reason!r}") from reason
        if feeding.done():
            feeding.result()  # a fault of ours is seen
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


def _ensure_whole(settings: Settings) -> None:
    if missing := set(STAGES) - set(settings.stages):
        raise Refusal(f"a run needs every stage, or no request would end: stages lacks {', '.join(sorted(missing))}")


def _starts(log: Log, partitions: int) -> tuple[dict[str, list[int]], bool]:
    """Return where the public topics stood when this command was first given, and whether that was earlier."""
    raw = log.noted(_NOTE)
    if raw is not None:
        return msgspec.json.decode(raw, type=dict[str, list[int]]), True
    starts = {
        topic: [log.end(Partition(topic, number)) for number in range(partitions)]
        for topic in (names.URL_COMPLETED, names.DEAD_LETTERS)
    }
    log.note(_NOTE, msgspec.json.encode(starts))
    log.flush()
    return starts, False


def _summary(
    worker: Worker, feed: Feed, starts: dict[str, list[int]], elapsed_s: float, *, resumes: bool, finished: bool
) -> Summary:
    log, events = worker.app.transport.log, worker.events
    outcomes, requests = dict(events.counts["completed"]), events.counts["shares"].total()
    if resumes:
        ended = {
            hash((count.tweet_id, count.url)): count.outcome
            for count in _since(log, names.URL_COMPLETED, starts[names.URL_COMPLETED], _Count)
        }
        outcomes = dict(Counter(ended.values()))
        requests = max(len(ended), requests)
    letters = set(_since(log, names.DEAD_LETTERS, starts[names.DEAD_LETTERS], Unread))
    return Summary(
        events.counts["tweets_read"]["ok"],
        requests,
        sum(outcomes.values()),
        outcomes,
        round(events.counts["completed"].total() / max(elapsed_s, 1e-9), 1),
        round(elapsed_s, 3),
        _percentiles(events, "total", (50, 95, 99)),
        _percentiles(events, "own", (50, 99)),
        events.percentiles(),
        sorted(letters, key=_in_order)[:_UNREADABLE_MAX],
        len(letters),
        finished,
        feed.resumed,
        str(worker.settings.data),
        {name: dict(counts) for name, counts in events.counts.items() if counts},
    )


def _in_order(letter: Unread) -> tuple[str, int, str]:
    """Sort by file, then by line as a number."""
    source, _, number = letter.source.rpartition(":")
    return (source, int(number), letter.reason) if number.isdigit() else (letter.source, 0, letter.reason)


def _percentiles(events: Events, stage: str, percents: tuple[int, ...]) -> dict[str, float]:
    return {f"p{percent}": events.stages[stage].percentile(percent) for percent in percents}


def _since(log: Log, topic: str, starts: list[int], kind: Any) -> Iterator[Any]:
    decode = msgspec.json.Decoder(kind).decode
    for number, start in enumerate(starts):
        offset = start
        while records := log.read(Partition(topic, number), offset, records_max=1000, bytes_max=8 << 20):
            yield from (decode(record.value) for record in records)
            offset = records[-1].offset + 1
