"""The map: which topics, tables and stages there are, in the order a tweet meets them. Read this file first.

    tweets ─> extract ─> url-requests ─> decide ─> fetch-requests ─> fetch ─> pages ─> parse ─> documents ─> settle
                              ^            │                         │  │       └─> archive         │        │   │
                              │            │ (known)     deferred <──┘  │ (no page)                 │        │   │
                              │            └───────────────┐            └──────> documents          │        │   │
                              └── redirects, images ───────│─────────────────────────────────<──────┘────────┘   │
                                                           └─> completions <─────────────────────────────────────┘
                                                                   └─> complete ─> url-completed

`build(settings)` makes the app of one worker; nothing is found by searching, and nothing is made on import.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import faust
from faust.transport.drivers import TRANSPORTS

from agents import archive, complete, decide, extract, fetch, parse
from agents.archiving.archive import Archive
from agents.clients.http import Asks
from agents.clients.metadata import MetadataStore
from agents.clients.packer import Pack, pack_here
from agents.clients.parser_pool import ParserPool
from agents.fetching.robots_desk import RobotsDesk
from agents.pump import Pump
from tables.store import Store
from topology import names
from topology.events import Events
from topology.outlets import Outlet
from topology.public import dead_letter
from topology.runtime import PromptTableManager, QuietMonitor, UnloggedTable
from topology.settings import Settings

Clock = Callable[[], float]

# How many messages of a topic may wait in a stage's buffer. Pages carry bodies: a few are enough.
_BUFFERS: Final = {names.PAGES: 64, names.TWEETS: 64}
_BUFFER: Final = 512
# How many messages a stage may have begun and not finished.
_IN_FLIGHT: Final = {names.EXTRACT: 64, names.PARSE: 96, names.ARCHIVE: 256}
_IN_FLIGHT_MAX: Final = 1024
_TABLE_OPTIONS: Final = {  # RocksDB's defaults through Faust: 2 GiB of block cache per partition per table
    "block_cache_size": 2 << 20,
    "write_buffer_size": 4 << 20,
    "max_write_buffer_number": 2,
    "max_open_files": 64,
}


@dataclass(frozen=True, slots=True)
class Stores:
    """The outside a worker's stages need. None: no stage of this worker needs it."""

    web: Asks | None = None
    pack: Pack = pack_here
    parsers: ParserPool | None = None
    metadata: MetadataStore | None = None
    archive: Archive | None = None


@dataclass(slots=True)
class Worker:
    """One worker: its Faust app, its counters, and its stages by name, for those who watch them."""

    app: Any
    settings: Settings
    events: Events
    topics: Mapping[str, Any]
    outlets: Mapping[str, Outlet]
    tables: Mapping[str, Store]
    stages: dict[str, Any] = field(default_factory=dict)


def build(settings: Settings, stores: Stores, *, clock: Clock = time.time) -> Worker:
    """Make the app of one worker and attach its stages."""
    app = make_app(settings)
    worker = Worker(app, settings, Events(), declare_topics(app, settings), outlets(app), declare_tables(app, settings))
    for stage in settings.stages:
        ATTACH[stage](worker, stores, clock)
    return worker


# -- stages, in the order a tweet meets them


def _extract(worker: Worker, _: Stores, clock: Clock) -> None:
    """Stands first: knows no domain yet, and gives every request its key."""
    extractor = extract.Extractor(
        worker.events,
        clock,
        to_requests=worker.outlets[names.URL_REQUESTS],
        to_complete=worker.outlets[names.COMPLETIONS],  # what is no URL ends here
        bury=bury(worker),
    )
    worker.stages[names.EXTRACT] = extractor
    extract.attach(worker.app, tweets=worker.topics[names.TWEETS], extractor=extractor, pump=pump(worker))


def _decide(worker: Worker, _: Stores, clock: Clock) -> None:
    """Stands before fetch: most shares are repeats. Hears how fetches ended, because it knows who waits."""
    decider = decide.Decider(
        worker.tables[names.URLS],
        worker.settings,
        worker.events,
        clock,
        to_self=worker.outlets[names.URL_REQUESTS],  # redirects, under the target's domain
        to_documents=worker.outlets[names.DOCUMENTS],
        to_fetch=worker.outlets[names.FETCH_REQUESTS],
        to_deferred=worker.outlets[names.DEFERRED],
        to_complete=worker.outlets[names.COMPLETIONS],
    )
    worker.stages[names.DECIDE] = decider
    decide.attach(
        worker.app,
        requests=worker.topics[names.URL_REQUESTS],
        documents=worker.topics[names.DOCUMENTS],
        decider=decider,
        pump=pump(worker),
    )


def _fetch(worker: Worker, stores: Stores, clock: Clock) -> None:
    """Stands alone before the web: reaches it and the log, and nothing else."""
    web = _needed(stores.web, "fetch", "the web")
    robots = RobotsDesk(worker.settings, worker.events, clock, web=web, rows=worker.tables[names.ROBOTS])
    fetcher = fetch.Fetcher(
        worker.settings,
        worker.events,
        clock,
        web=web,
        robots=robots,
        domain_rows=worker.tables[names.DOMAINS],
        to_pages=worker.outlets[names.PAGES],
        to_documents=worker.outlets[names.DOCUMENTS],
        to_deferred=worker.outlets[names.DEFERRED],
        pack=stores.pack,
    )
    alarm = fetch.Alarm(
        clock, to_fetch=worker.outlets[names.FETCH_REQUESTS], to_requests=worker.outlets[names.URL_REQUESTS]
    )
    worker.stages[names.FETCH] = fetcher
    fetch.attach(
        worker.app,
        orders=worker.topics[names.FETCH_REQUESTS],
        deferred=worker.topics[names.DEFERRED],
        fetcher=fetcher,
        alarm=alarm,
        pump=pump(worker),
    )


def _parse(worker: Worker, stores: Stores, clock: Clock) -> None:
    """Stands after fetch, in processes: it costs CPU, and a page may break it."""
    parser = parse.Parser(
        worker.settings,
        worker.events,
        clock,
        pool=_needed(stores.parsers, "parse", "processes that parse"),
        to_documents=worker.outlets[names.DOCUMENTS],
        to_requests=worker.outlets[names.URL_REQUESTS],  # the page's image
    )
    worker.stages[names.PARSE] = parser
    parse.attach(worker.app, pages=worker.topics[names.PAGES], parser=parser, pump=pump(worker))


def _archive(worker: Worker, stores: Stores, clock: Clock) -> None:
    """Stands beside parse, on the same pages: an announcement does not wait for the archive."""
    archivist = archive.Archivist(
        worker.events,
        clock,
        archive=_needed(stores.archive, "archive", "the content store"),
        metadata=_needed(stores.metadata, "archive", "the metadata store"),
    )
    worker.stages[names.ARCHIVE] = archivist
    archive.attach(worker.app, pages=worker.topics[names.PAGES], archivist=archivist, pump=pump(worker))


def _complete(worker: Worker, stores: Stores, clock: Clock) -> None:
    """Stands last: announces only what can already be read."""
    completer = complete.Completer(
        worker.events,
        clock,
        metadata=_needed(stores.metadata, "complete", "the metadata store"),
        to_listeners=worker.outlets[names.URL_COMPLETED],
    )
    worker.stages[names.COMPLETE] = completer
    complete.attach(worker.app, completions=worker.topics[names.COMPLETIONS], completer=completer, pump=pump(worker))


ATTACH: Final[Mapping[str, Callable[[Worker, Stores, Clock], None]]] = {
    "extract": _extract,
    "decide": _decide,
    "fetch": _fetch,
    "parse": _parse,
    "archive": _archive,
    "complete": _complete,
}


# -- what stages stand on


def make_app(settings: Settings) -> Any:
    """Make the Faust app: embedded log or Kafka, tables on RocksDB, no autodiscovery."""
    TRANSPORTS.aliases.setdefault("embedded", "topology.embedded:Transport")  # for a checkout that is not installed
    embedded = settings.log_url == "embedded:"
    return faust.App(
        names.APP,
        broker=f"embedded://{settings.data.resolve() / 'log'}" if embedded else settings.log_url,
        datadir=str(settings.data / "state"),
        store="rocksdb://",
        autodiscover=False,
        topic_partitions=settings.partitions,
        topic_disable_leader=True,  # no timer of ours runs on one leader
        broker_commit_interval=settings.commit_interval_s,
        stream_wait_empty=False,  # a stopping worker waits in `run`, with a bound
        table_standby_replicas=0 if embedded else 1,
        TableManager=PromptTableManager,
        Monitor=QuietMonitor,
        Table=UnloggedTable if embedded else faust.Table,
        web_host=settings.web_host,
        web_bind=settings.web_host,
        web_port=settings.web_port,
    )


def declare_topics(app: Any, settings: Settings) -> dict[str, Any]:
    """Declare every topic: bytes in, bytes out; stages decode what they expect."""
    return {name: _topic(app, name, settings.partitions) for name in names.TOPICS}


def _topic(app: Any, name: str, partitions: int) -> Any:
    topic = app.topic(
        name,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        partitions=partitions,
        internal=True,
    )
    topic.maxsize = _BUFFERS.get(
        name, _BUFFER
    )  # `app.topic(maxsize=...)` forgets it: 4096 messages, and pages are large
    return topic


def declare_tables(app: Any, settings: Settings) -> dict[str, Store]:
    """Declare every table."""
    return {
        name: Store(
            app.Table(
                name, key_type=bytes, value_type=bytes, partitions=settings.partitions, options=dict(_TABLE_OPTIONS)
            )
        )
        for name in names.TABLES
    }


def outlets(app: Any) -> dict[str, Outlet]:
    """Return the sending end of every topic."""
    return {name: Outlet(app, name) for name in names.TOPICS}


def bury(worker: Worker) -> Any:
    """Return the function that puts something unreadable into dead-letters."""

    async def to_dead_letters(raw: bytes, source: str, reason: str) -> Any:
        logging.getLogger(__name__).warning("unreadable, now in %s: %s: %s", names.DEAD_LETTERS, source, reason)
        return await worker.outlets[names.DEAD_LETTERS].raw(source, dead_letter(raw, reason, source))

    return to_dead_letters


def pump(worker: Worker) -> Callable[..., Pump]:
    """Return the maker of pumps for this worker's stages."""
    limits = {
        **_IN_FLIGHT,
        names.FETCH: worker.settings.queued_urls_max,
        names.DEFER: worker.settings.deferred_urls_max,
    }

    def make(stage: str, *, concurrent: bool = False) -> Pump:
        return Pump(
            stage,
            worker.events,
            bury(worker),
            in_flight_max=limits.get(stage, _IN_FLIGHT_MAX),
            concurrent=concurrent,
        )

    return make


def _needed(thing: Any, stage: str, what: str) -> Any:
    if thing is None:
        raise ValueError(f"stage {stage} needs {what}, and none was given")
    return thing
