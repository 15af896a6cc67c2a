"""`embedded://DIR`: Faust's transport for one process and no servers, over the durable log of `embedded_log`.

Faust finds it through its `faust.transports` plug-in point. It does what the Kafka driver does, with one member in
the group: agents, tables, rebalance callbacks and web routing run unchanged. Three things Faust needs and does not
say: the app's own assignor has to make the assignment, `app.consumer_generation_id` has to be set before it, and
every message has to carry it, or streams drop the message without a word.

Records are delivered one by one, partition by partition in turn, and only while the stream they go to has room: a
stage that cannot keep up holds its own partitions and nobody else's.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

import faust
from faust.transport import base
from faust.types import TP, ConsumerMessage, RecordMetadata
from faust.types.transports import ConductorT, ConsumerT, ProducerT

from topology.commits import InOrderCommits
from topology.embedded_log import Log, Partition, Record, partition_of
from topology.runtime import LeanConductor

logger = logging.getLogger(__name__)

_MEMBER: Final = "embedded"
_TURN_RECORDS: Final = 32  # records one partition may deliver before the next has its turn
_MEMORY_BYTES_MAX: Final = 32 << 20  # undelivered records kept in memory, over all partitions
_FLUSH_EVERY_S: Final = 0.002
_HOLD_S: Final = 0.5  # between two tries to write to a disk that does not take it
_KEPT_RECORDS_MAX: Final = 1_000_000  # per partition of a topic without an agent


class _Cluster:
    """The little of aiokafka's cluster metadata that Faust's assignor asks for."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(self._log.partitions(topic) or 0))


class Producer(base.Producer):
    """Appends to the log. A send is done when its record would survive the process."""

    transport: "Transport"
    _flush_at: asyncio.Handle | None = None  # an app that did not start is flushed too
    _flushed_s: float = 0.0  # when the log was last written, by the loop's clock

    async def on_start(self) -> None:
        """Open the log with the producer, which Faust starts first."""
        await super().on_start()
        self.transport.log  # noqa: B018 - opens it, or refuses, before anything else starts
        self._waiting: list[tuple[asyncio.Future[RecordMetadata], RecordMetadata]] = []
        self._turn = 0
        self._partition_of = lru_cache(maxsize=65536)(partition_of)

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> Awaitable[RecordMetadata]:
        """Append one record and return a future of where it stands, done once it is written."""
        log = self.transport.log
        if partition is None:
            partition = self._choose(topic, key)
        where = Partition(topic, partition)
        stamp = time.time() if timestamp is None else timestamp
        offset = log.append(where, key, value or b"", stamp)
        done: asyncio.Future[RecordMetadata] = self.loop.create_future()
        self._waiting.append((done, RecordMetadata(topic, partition, TP(topic, partition), offset, stamp, 0)))
        if self._flush_at is None:
            self._flush_at = self._flush_soon()
        return done

    def _flush_soon(self) -> asyncio.Handle:
        """Have everything sent by then written at once, in the next turn of the loop.

        When the last write was a moment ago, a moment after it: under load a write carries tens of records, and
        none waits long for company.
        """
        loop = self.loop
        wait_s = self._flushed_s + _FLUSH_EVERY_S - loop.time()
        return loop.call_later(wait_s, self._flush) if wait_s > 0 else loop.call_soon(self._flush)

    async def send_and_wait(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> RecordMetadata:
        """Append one record and wait until it is written."""
        return await (await self.send(topic, key, value, partition, timestamp, headers))

    def _choose(self, topic: str, key: bytes | None) -> int:
        partitions = self.transport.partitions(topic)
        chosen = self._partition_of(key, partitions)
        if chosen is None:
            self._turn += 1
            return self._turn % partitions
        return chosen

    def _flush(self) -> None:
        self._flush_at = None
        try:
            grown = self.transport.log.flush()
        except Exception:  # RocksDB's: nothing is lost, and who waits for these sends waits on
            logger.exception("the log cannot be written; what was sent is held, and tried again every %g s", _HOLD_S)
            self._flush_at = self.loop.call_later(_HOLD_S, self._flush)
            return
        self._flushed_s = self.loop.time()
        self.transport.wake(grown)
        waiting, self._waiting = self._waiting, []
        for done, metadata in waiting:
            if not done.done():
                done.set_result(metadata)

    async def flush(self) -> None:
        """Write everything sent so far, table changelogs included."""
        await self.buffer.flush()
        if self._flush_at is not None:
            self._flush_at.cancel()
            self._flush()

    async def on_stop(self) -> None:
        """Write what was sent last: after this nobody opens the log again."""
        await super().on_stop()
        await self.flush()
        if self._flush_at is not None:
            self._flush_at.cancel()

    async def create_topic(self, topic: str, partitions: int, replication: int, **_: Any) -> None:
        """Make a topic if it is not there; refuse when it has another number of partitions."""
        self.transport.log.create_topic(topic, partitions)

    def key_partition(self, topic: str, key: bytes) -> TP:
        """Return the partition this key belongs to."""
        return TP(topic, self._choose(topic, key))

    def supports_headers(self) -> bool:
        """No stage uses headers; the log has no room for them."""
        return False


class Consumer(InOrderCommits, base.Consumer):
    """Delivers every partition of the subscribed topics to this one process."""

    transport: "Transport"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._assigned: set[TP] = set()
        self._grown = asyncio.Event()
        self._ready: set[TP] = set()  # partitions that may have something to deliver
        self._generation = 0
        self.transport.consumer = self

    # -- the group: one member, one assignment

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Take all partitions of these topics."""
        log = self.transport.log
        for topic in topics:
            if log.partitions(topic) is None:
                log.create_topic(topic, self.app.conf.topic_partitions)
        self.add_future(self._rebalance(set(topics)))

    async def _rebalance(self, topics: set[str]) -> None:
        app: Any = self.app
        app.on_rebalance_start()
        await self.on_partitions_revoked(set())
        self._generation += 1
        app.consumer_generation_id = self._generation
        assignor = app.assignor
        members = {_MEMBER: assignor.metadata(topics)}
        assignment = assignor.assign(_Cluster(self.transport.log), members)[_MEMBER]
        assignor.on_assignment(assignment)
        self._assigned = {TP(topic, n) for topic, numbers in assignment.assignment for n in numbers}
        for tp in self._assigned:
            await self._seek(tp, self._start_of(tp))
        await self.on_partitions_assigned(self._assigned, self._generation)

    async def create_topic(self, topic: str, partitions: int, replication: int, **_: Any) -> None:
        """Make a topic if it is not there; refuse when it has another number of partitions."""
        self.transport.log.create_topic(topic, partitions)

    def assignment(self) -> set[TP]:
        """All there is."""
        return self._assigned

    def topic_partitions(self, topic: str) -> int | None:
        """Return the number of partitions, None for an unknown topic."""
        return self.transport.log.partitions(topic)

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        """Return the partition this key belongs to."""
        return partition_of(key, self.transport.partitions(topic)) if partition is None else partition

    # -- positions

    def _start_of(self, tp: TP) -> int:
        committed = self.transport.log.committed(Partition(*tp))
        return self.transport.log.begin(Partition(*tp)) if committed is None else committed

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Go to where every agent had come."""
        starts = {tp: self._start_of(tp) for tp in self._assigned}
        await self.seek_wait(starts)
        return starts

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Go to these offsets."""
        for tp, offset in partitions.items():
            await self._seek(tp, offset)

    async def _seek(self, partition: TP, offset: int) -> None:
        log, where = self.transport.log, Partition(*partition)
        log.follow(where, max(offset, log.begin(where)))
        self.wake([where])

    async def seek_to_beginning(self, *partitions: TP) -> None:
        """Go to the oldest records."""
        for tp in partitions:
            await self._seek(tp, 0)

    async def position(self, tp: TP) -> int | None:
        """Return the offset of the next record to deliver."""
        return self.transport.log.position(Partition(*tp))

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """Return the offsets of the oldest records."""
        return {tp: self.transport.log.begin(Partition(*tp)) for tp in partitions}

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """Return the offsets the next records will get."""
        return {tp: self.highwater(tp) for tp in partitions}

    def highwater(self, tp: TP) -> int:
        """Return the offset the next record will get."""
        return self.transport.log.end(Partition(*tp))

    # -- delivery

    def wake(self, grown: Iterable[Partition]) -> None:
        """Say that these partitions have something to deliver."""
        self._ready.update(TP(*where) for where in grown)
        self._grown.set()

    def on_buffer_drop(self, tp: TP) -> None:
        """Deliver again: the stream has room."""
        super().on_buffer_drop(tp)
        self._grown.set()

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Deliver these partitions again."""
        super().resume_partitions(tps)
        self._grown.set()

    async def _drain_messages(self, fetcher: Any) -> None:
        """Deliver until the fetcher is stopped. Faust's own loop makes two tasks for every message."""
        while not (self.should_stop or fetcher.should_stop):
            if not self.flow_active:
                await self.wait(self.can_resume_flow)  # type: ignore[arg-type]  # asyncio's Event will do
                continue
            self._grown.clear()
            if await self._deliver_one_turn():
                await asyncio.sleep(0)  # let the streams work on what they have
            else:
                await self._grown.wait()

    async def _deliver_one_turn(self) -> bool:
        delivered, log = False, self.transport.log
        for tp in tuple(self._ready):
            where = Partition(*tp)
            for _ in range(min(_TURN_RECORDS, self._room(tp))):
                if not self.flow_active or tp not in self._active_partitions:
                    break
                record = log.take(where)
                if record is None:
                    break
                delivered = True
                await self.callback(self._to_message(tp, record))
            if not log.has_next(where):
                self._ready.discard(tp)
        return delivered

    def _room(self, tp: TP) -> int:
        """Count records all streams of this partition can take. Faust would wait for them, and with it everybody."""
        room = _TURN_RECORDS
        topics: Any = self.app.topics
        for stream in topics._tp_index.get(tp, ()):  # noqa: SLF001 - nothing public says it
            queue = stream.queue
            room = min(room, queue.maxsize - queue.qsize())
        return room

    def _to_message(self, tp: TP, record: Record) -> ConsumerMessage:
        return ConsumerMessage(
            tp.topic,
            tp.partition,
            record.offset,
            record.timestamp,
            0,
            None,
            record.key,
            record.value,
            None,
            tp=tp,
            generation_id=self._generation,
        )

    async def verify_all_partitions_active(self) -> None:
        """Verify nothing: Faust looks for a broker that stopped answering, and takes a second of CPU doing so."""

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        try:
            self.transport.log.commit({Partition(*tp): offset for tp, offset in offsets.items()})
        except Exception:  # RocksDB's: the next commit says it again, a restart replays
            logger.exception("the log cannot be written; progress is committed later")
            return False
        return True

    def close(self) -> None:
        """Nothing to close: the transport owns the log."""

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109 - Faust names it
        raise NotImplementedError("delivery does not go through getmany")


class Transport(base.Transport):
    """The embedded log as Faust sees it. One log per transport, opened on first use."""

    Consumer: ClassVar[type[ConsumerT]] = Consumer
    Producer: ClassVar[type[ProducerT]] = Producer
    Conductor: ClassVar[type[ConductorT]] = LeanConductor

    driver_version = "embedded"
    default_port = 0

    def __init__(self, url: Sequence[Any], app: faust.types.AppT, loop: Any = None) -> None:
        super().__init__(list(url), app, loop)
        self.path = Path(self.url[0].path)
        self.consumer: Consumer | None = None
        self._log: Log | None = None

    @property
    def log(self) -> Log:
        """The log, opened on first use. Raises Refusal when it cannot be had."""
        if self._log is None:
            self._log = Log(self.path, memory_bytes_max=_MEMORY_BYTES_MAX, kept_records_max=_KEPT_RECORDS_MAX)
        return self._log

    def partitions(self, topic: str) -> int:
        """Return a topic's partitions, making the topic if nobody has."""
        known = self.log.partitions(topic)
        if known is None:
            known = int(self.app.conf.topic_partitions)
            self.log.create_topic(topic, known)
        return known

    def wake(self, grown: set[Partition]) -> None:
        """Tell the consumer of new records."""
        if grown and self.consumer is not None:
            self.consumer.wake(grown)

    def close(self) -> None:
        """Let go of the directory. The app must have stopped."""
        if self._log is not None:
            self._log.close()
            self._log = None
