"""Faust on the embedded log: what an app relies on when it is stopped, restarted, slow, or one of two."""

import asyncio
import contextlib
import time
from contextlib import asynccontextmanager

import faust
import pytest
from faust.transport.drivers import TRANSPORTS

from topology.embedded_log import Log, Partition
from topology.runtime import PromptTableManager, QuietMonitor

PARTITIONS = 2
BUFFER = 16


@pytest.fixture(autouse=True)
def plugged_in():
    TRANSPORTS.aliases.setdefault("embedded", "topology.embedded:Transport")


class Tiny:
    """An app with as many topics and agents as a test attaches."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.app = faust.App(
            "tiny",
            broker=f"embedded://{folder / 'log'}",
            datadir=str(folder / "state"),
            store="rocksdb://",
            autodiscover=False,
            topic_partitions=PARTITIONS,
            topic_disable_leader=True,
            broker_commit_interval=0.05,
            stream_wait_empty=False,
            TableManager=PromptTableManager,
            Monitor=QuietMonitor,
            web_enabled=False,
        )
        self.counts = self.app.Table("counts", key_type=bytes, value_type=bytes, partitions=PARTITIONS, default=bytes)

    def topic(self, name):
        topic = self.app.topic(
            name,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
            partitions=PARTITIONS,
            internal=True,
        )
        topic.maxsize = BUFFER
        return topic

    def collect(self, topic, name, handle=None):
        """Attach an agent that acknowledges by hand; return the list of what it got."""
        got = []

        @self.app.agent(self.topic(topic), name=name)
        async def agent(stream):
            async for event in stream.noack().events():
                got.append(event)
                if handle is None:
                    event.ack()
                else:
                    await handle(event)

        return got

    async def send(self, topic, *values, key=b"k"):
        sent = [await self.app.producer.send(topic, key, value, None, None, None) for value in values]
        for done in sent:
            await done

    @property
    def log(self):
        return self.app.transport.log

    @asynccontextmanager
    async def running(self):
        try:
            await self.app.start()
            await asyncio.wait_for(self.app.tables.recovery.completed.wait(), 10)
            yield self
        finally:
            await self.app.stop()
            self.app.transport.close()


async def until(said, seconds=8.0):
    end = time.monotonic() + seconds
    while not said():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


def values(got):
    return [event.value for event in got]


def partition(tiny, topic="t", key=b"k"):
    return Partition(topic, tiny.app.producer.key_partition(topic, key).partition)


def test_out_of_order_acknowledgements_are_committed_in_order_and_the_rest_is_delivered_again(tmp_path):
    async def story():
        tiny = Tiny(tmp_path)

        async def hold(_):
            """Nothing is acknowledged here."""

        got = tiny.collect("t", "agent", hold)
        async with tiny.running():
            await tiny.send("t", *[b"%d" % n for n in range(6)])
            await until(lambda: len(got) == 6)
            where = partition(tiny)
            for number in (1, 2, 4):  # 0, 3 and 5 are still being worked on
                got[number].ack()
            await asyncio.sleep(0.2)
            assert tiny.log.committed(where) is None
            got[0].ack()
            await until(lambda: tiny.log.committed(where) == 3)
            assert tiny.log.begin(where) == 3  # what is committed is deleted

        again = Tiny(tmp_path)
        got = again.collect("t", "agent")
        async with again.running():
            await until(lambda: len(got) == 3)
            assert values(got) == [b"3", b"4", b"5"]
            await until(lambda: again.log.committed(where) == 6)

        last = Tiny(tmp_path)
        got = last.collect("t", "agent")
        async with last.running():
            await last.send("t", b"6")
            await until(lambda: got)
            await asyncio.sleep(0.1)
            assert [event.message.offset for event in got] == [6]

    asyncio.run(story())


def test_an_app_can_be_started_and_stopped_again_and_again_in_one_process(tmp_path):
    async def once(number):
        tiny = Tiny(tmp_path)
        got = tiny.collect("t", "agent")
        async with tiny.running():
            await tiny.send("t", b"%d" % number)
            await until(lambda: got)
            await until(lambda: tiny.log.committed(partition(tiny)) == number + 1)
        assert values(got) == [b"%d" % number]

    for number in range(3):
        asyncio.run(once(number))


def test_what_is_sent_while_nobody_listens_is_there_later(tmp_path):
    async def story():
        deaf = Tiny(tmp_path)
        async with deaf.running():
            await deaf.send("t", b"a", b"b")
        tiny = Tiny(tmp_path)
        got = tiny.collect("t", "agent")
        async with tiny.running():
            await until(lambda: len(got) == 2)
            assert values(got) == [b"a", b"b"]

    asyncio.run(story())


def test_a_slow_agent_holds_its_own_partitions_and_nobody_elses(tmp_path):
    async def story():
        tiny = Tiny(tmp_path)
        gate = asyncio.Event()
        slow = tiny.collect("slow", "slow", lambda _: gate.wait())
        quick = tiny.collect("quick", "quick")
        async with tiny.running():
            for n in range(200):
                await tiny.send("slow", b"%d" % n, key=b"%d" % n)  # both partitions
            await until(lambda: slow)
            await tiny.send("quick", *[b"%d" % n for n in range(100)])
            await until(lambda: len(quick) == 100)
            assert len(slow) == 1
            gate.set()
            await until(lambda: len(slow) == 200)

    asyncio.run(story())


def test_a_slow_agent_beside_a_quick_one_on_its_topic_holds_no_other_topic(tmp_path):
    """The quick one's empty buffer asks for more while the slow one's is full: Faust would wait, and all with it."""

    async def story():
        tiny = Tiny(tmp_path)
        gate = asyncio.Event()
        slow = tiny.collect("t", "slow", lambda _: gate.wait())
        beside = tiny.collect("t", "beside")
        quick = tiny.collect("quick", "quick")
        async with tiny.running():
            await tiny.send("t", *[b"%d" % n for n in range(200)])  # at once: both buffers fill
            await until(lambda: len(beside) >= BUFFER)
            await asyncio.sleep(0.05)
            await tiny.send("quick", *[b"%d" % n for n in range(100)])
            await until(lambda: len(quick) == 100)
            gate.set()
            await until(lambda: len(slow) == len(beside) == 200)

    asyncio.run(story())


def test_two_agents_on_one_topic_get_everything_and_both_must_acknowledge(tmp_path):
    async def story():
        tiny = Tiny(tmp_path)

        async def hold(_):
            """Acknowledged below."""

        one = tiny.collect("t", "one")
        other = tiny.collect("t", "other", hold)
        async with tiny.running():
            await tiny.send("t", *[b"%d" % n for n in range(5)])
            await until(lambda: len(one) == len(other) == 5)
            assert sorted(values(one)) == sorted(values(other)) == [b"%d" % n for n in range(5)]
            await asyncio.sleep(0.2)
            assert tiny.log.committed(partition(tiny)) is None
            for event in other:
                event.ack()
            await until(lambda: tiny.log.committed(partition(tiny)) == 5)

    asyncio.run(story())


def test_tables_survive_a_restart_with_what_was_not_committed_done_again(tmp_path):
    async def run(*sent):
        tiny = Tiny(tmp_path)
        counted = []

        async def count(event):
            tiny.counts[event.key] = b"%d" % (int(tiny.counts[event.key] or b"0") + 1)
            counted.append(event)
            event.ack()

        tiny.collect("t", "agent", count)
        async with tiny.running():
            await tiny.send("t", *sent)
            await until(lambda: len(counted) == len(sent))
            await until(lambda: tiny.log.committed(partition(tiny)) == tiny.log.end(partition(tiny)))
            where = partition(tiny).partition
            return tiny.counts.data._db_for_partition(where).get(b"k")

    assert asyncio.run(run(b"a", b"b")) == b"2"
    assert asyncio.run(run(b"c")) == b"3"


def test_memory_is_bounded_when_the_consumer_is_slow(tmp_path, monkeypatch):
    monkeypatch.setattr("topology.embedded._MEMORY_BYTES_MAX", 100_000)

    async def story():
        tiny = Tiny(tmp_path)
        gate = asyncio.Event()
        got = tiny.collect("t", "agent", lambda _: gate.wait())
        async with tiny.running():
            for n in range(300):
                await tiny.send("t", b"%4d" % n + b"." * 5000)
            assert tiny.log._tail_bytes < 100_000 + 6000
            gate.set()
            await until(lambda: len(got) == 300)
            assert [int(event.value[:4]) for event in got] == list(range(300))

    asyncio.run(story())


def test_two_apps_on_two_directories_do_not_meet(tmp_path):
    async def story():
        here, there = Tiny(tmp_path / "here"), Tiny(tmp_path / "there")
        got_here, got_there = here.collect("t", "agent"), there.collect("t", "agent")
        async with here.running(), there.running():
            await here.send("t", b"here")
            await there.send("t", b"there", b"there")
            await until(lambda: got_here and len(got_there) == 2)
            await asyncio.sleep(0.05)
            assert (values(got_here), values(got_there)) == ([b"here"], [b"there"] * 2)

    asyncio.run(story())


def test_without_a_key_the_partitions_take_turns(tmp_path):
    async def story():
        tiny = Tiny(tmp_path)
        async with tiny.running():
            tiny.log.create_topic("t", PARTITIONS)
            await tiny.send("t", *[b"x"] * 10, key=None)
            assert [tiny.log.end(Partition("t", number)) for number in range(PARTITIONS)] == [5, 5]

    asyncio.run(story())


def test_the_last_thing_sent_before_the_stop_is_written_and_the_directory_is_let_go(tmp_path):
    async def story():
        tiny = Tiny(tmp_path)
        async with tiny.running():
            unsettled = await tiny.app.producer.send("t", b"k", b"last", None, None, None)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(unsettled, 1)
        assert tiny.app.transport._log is None
        log = Log(tmp_path / "log", memory_bytes_max=1, kept_records_max=1)
        assert sum(log.end(Partition("t", number)) for number in range(PARTITIONS)) == 1
        log.close()

    asyncio.run(story())
