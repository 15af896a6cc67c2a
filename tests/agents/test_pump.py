"""The pump: a message is acknowledged when what follows from it is safe, and not before; a bug costs one message."""

import asyncio

import msgspec
import pytest

from agents.pump import NOTHING, Acted, Pump
from tests.doubles import Recorder, Stream, event, simulated
from topology.events import Events
from topology.outlets import Outlet
from topology.records import FetchRequest, Sweep


class Bench:
    """A pump with its stream, its dead letters and its counters."""

    def __init__(self, *, in_flight_max=10, concurrent=False):
        self.events = Events()
        self.letters = []
        self.letters_refused = 0
        self.stream = Stream()
        self.pump = Pump("stage", self.events, self._bury, in_flight_max=in_flight_max, concurrent=concurrent)

    async def _bury(self, raw, source, reason):
        if self.letters_refused:
            self.letters_refused -= 1
            raise OSError("the log refuses")
        self.letters.append((raw, source, reason))
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def during(self, handle, last_resort=None, *, seconds=1.0):
        running = asyncio.create_task(self.pump.run(self.stream, handle, last_resort))
        await asyncio.sleep(seconds)
        assert not running.done(), "the loop was left"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def messages(count):
    return [event(b"%d" % number, topic="t", offset=number) for number in range(count)]


def both(law):
    return pytest.mark.parametrize("concurrent", [False, True], ids=["in order", "concurrent"])(law)


@both
def test_the_acknowledgement_waits_for_every_send(concurrent):
    async def story():
        bench, out, order = Bench(concurrent=concurrent), Recorder(), []
        out.held = []
        (one,) = messages(1)
        bench.stream.put(one)

        async def handle(_):
            sent = tuple([await out("k", Sweep()) for _ in range(2)])
            return Acted(sent, lambda: order.append(("then", one.acked)))

        running = asyncio.create_task(bench.during(handle))
        await asyncio.sleep(0.1)
        out.held[1].set_result(None)
        await asyncio.sleep(0.1)
        assert (one.acked, order) == (0, [])
        out.held[0].set_result(None)
        await asyncio.sleep(0.1)
        assert (one.acked, order) == (1, [("then", 0)])  # before the acknowledgement, and after the sends
        await running

    simulated(story())


@both
def test_a_failing_send_is_tried_again_until_it_is_safe(concurrent):
    async def story():
        bench, out = Bench(concurrent=concurrent), Recorder(refusing=3)
        (one,) = messages(1)
        bench.stream.put(one)

        async def handle(_):
            return Acted((await out("k", Sweep()), await out("k", Sweep())))

        await bench.during(handle, seconds=5.0)
        assert one.acked == 1
        assert len(out.sent) == 3  # what went through beside a failure is sent twice: at least once
        assert bench.events.counts["resent"]["stage"] == 2  # not once per failed send
        assert bench.letters == []

    simulated(story())


def test_other_messages_go_on_while_one_is_tried_again():
    async def story():
        bench, out = Bench(), Recorder(refusing=1)
        first, second = messages(2)
        bench.stream.put(first, second)

        async def handle(_):
            return Acted((await out("k", Sweep()),))

        await bench.during(handle, seconds=0.1)
        assert (first.acked, second.acked) == (0, 1)

    simulated(story())


def test_a_cancelled_send_leaves_its_message_unacknowledged_whatever_else_was_sent():
    async def story():
        for cancelled in (0, 1):
            bench, out = Bench(), Recorder()
            out.held = []
            (one,) = messages(1)
            bench.stream.put(one)

            async def handle(_, out=out):
                return Acted((await out("k", Sweep()), await out("k", Sweep())))

            running = asyncio.create_task(bench.during(handle))
            await asyncio.sleep(0.1)
            out.held[cancelled].cancel()
            await asyncio.sleep(0.1)
            out.held[1 - cancelled].set_result(None)
            await running
            assert one.acked == 0

    simulated(story())


@both
def test_a_bug_costs_one_message_and_that_is_kept(concurrent, caplog):
    async def story():
        bench, ended = Bench(concurrent=concurrent), Recorder()
        good, bad, fine = messages(3)
        bench.stream.put(good, bad, fine)

        async def handle(one):
            if one is bad:
                raise ValueError("no such luck")
            return NOTHING

        async def last_resort(raw, reason):
            return await ended.raw(None, raw + reason.encode())

        await bench.during(handle, last_resort)
        assert [one.acked for one in (good, bad, fine)] == [1, 1, 1]
        ((raw, source, reason),) = bench.letters
        assert (raw, source) == (b"1", "t/0/1")
        assert "ValueError: no such luck" in reason
        assert ended.records == [b"1a fault of SpiderDuck: ValueError: no such luck"]
        assert bench.events.counts["poisoned"]["stage"] == 1

    simulated(story())
    assert "a message could not be handled" in caplog.text


def test_a_message_nobody_can_read_is_buried_and_ends_nothing():
    async def story():
        bench = Bench()
        (one,) = messages(1)
        bench.stream.put(one)

        async def handle(told):
            return msgspec.msgpack.decode(told.value, type=FetchRequest)

        async def last_resort(raw, _):
            return msgspec.msgpack.decode(raw, type=FetchRequest)

        await bench.during(handle, last_resort)
        assert (one.acked, len(bench.letters)) == (1, 1)

    simulated(story())


@both
def test_a_last_resort_that_fails_itself_leaves_the_dead_letter(concurrent):
    """It used to leave the loop (in order), or to keep the message and its place for ever (concurrent)."""

    async def story():
        bench = Bench(in_flight_max=1, concurrent=concurrent)
        one, other = messages(2)
        bench.stream.put(one, other)

        async def broken(*_):
            raise ValueError("twice")

        await bench.during(broken, broken)
        assert (one.acked, other.acked, len(bench.letters)) == (1, 1, 2)

    simulated(story())


@both
def test_a_dead_letter_that_is_refused_is_tried_again(concurrent):
    async def story():
        bench = Bench(concurrent=concurrent)
        bench.letters_refused = 2
        (one,) = messages(1)
        bench.stream.put(one)

        async def broken(_):
            raise ValueError("always")

        await bench.during(broken, seconds=5.0)
        assert (one.acked, len(bench.letters)) == (1, 1)

    simulated(story())


def test_a_message_of_an_earlier_assignment_is_left_to_its_present_owner():
    async def story():
        bench = Bench()
        old, new = messages(2)
        old.message.generation_id -= 1
        bench.stream.put(old, new)

        async def handle(_):
            return NOTHING

        await bench.during(handle)
        assert (old.acked, new.acked) == (0, 1)

    simulated(story())


@both
def test_no_more_than_so_many_are_in_flight(concurrent):
    async def story():
        bench, out = Bench(in_flight_max=3, concurrent=concurrent), Recorder()
        out.held = []
        told = messages(10)
        bench.stream.put(*told)

        async def handle(_):
            return Acted((await out("k", Sweep()),))

        running = asyncio.create_task(bench.during(handle))
        await asyncio.sleep(0.1)
        assert len(out.held) == 3
        out.held[1].set_result(None)
        await asyncio.sleep(0.1)
        assert len(out.held) == 4
        assert [one.acked for one in told[:4]] == [0, 1, 0, 0]
        for _ in range(10):
            for done in [done for done in out.held if not done.done()]:
                done.set_result(None)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await running
        assert [one.acked for one in told] == [1] * 10

    simulated(story())


def test_concurrent_handlers_do_not_wait_for_each_other_and_others_do():
    async def story(concurrent):
        bench, gate = Bench(concurrent=concurrent), asyncio.Event()
        slow, quick = messages(2)
        bench.stream.put(slow, quick)

        async def handle(one):
            if one is slow:
                await gate.wait()
            return NOTHING

        await bench.during(handle)
        return slow.acked, quick.acked

    assert simulated(story(True)) == (0, 1)
    assert simulated(story(False)) == (0, 0)


def test_stopping_cancels_what_is_under_way_and_acknowledges_nothing():
    async def story():
        bench, ended = Bench(concurrent=True), []
        (one,) = messages(1)
        bench.stream.put(one)

        async def handle(_):
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        await bench.during(handle)
        await asyncio.sleep(0)
        assert (one.acked, ended, bench.letters) == (0, ["cancelled"], [])

    simulated(story())


def test_an_outlet_writes_the_key_where_it_sends():
    class Producer:
        def __init__(self):
            self.sent = []

        async def send(self, *what):
            self.sent.append(what)
            return "future"

    class App:
        producer = Producer()

    async def story():
        outlet = Outlet(App, "t")
        assert await outlet("d.test", Sweep(b"x")) == "future"
        await outlet.raw(None, b"{}")
        await outlet.to_partition(3, Sweep())
        (topic, key, value, partition, *_), raw, note = App.producer.sent
        assert (topic, key, partition) == ("t", b"d.test", None)
        assert value == b"\x92\xa5sweep\xc4\x01x"
        assert raw[1:4] == (None, b"{}", None)
        assert (note[1], note[3]) == (None, 3)

    asyncio.run(story())
