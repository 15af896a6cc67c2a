"""Faust commits past a message that is still being worked on, when that message is the first: ours does not."""

import asyncio
from collections import defaultdict

import faust
from faust.transport.consumer import Consumer as Stock
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st
from intervaltree import IntervalTree

from topology.commits import InOrderCommits
from topology.embedded_log import Partition

PLACE = TP("t", 0)


class Book:
    """The bookkeeping of a consumer, without its consumer."""

    def __init__(self, committed):
        self._acked = defaultdict(list)
        self._acked_index = defaultdict(set)
        self._committed_offset = defaultdict(lambda: None, {PLACE: committed})
        self._gap = defaultdict(IntervalTree)

    def acknowledge(self, *offsets):
        self._acked[PLACE] += offsets
        self._acked_index[PLACE] |= set(offsets)

    def commit(self):
        offset = self._new_offset(PLACE)
        if offset is not None:
            self._committed_offset[PLACE] = offset
        return offset


class StockBook(Book):
    _new_offset = Stock._new_offset


class OurBook(InOrderCommits, Book):
    def __init__(self, committed, start=0):
        Book.__init__(self, committed)
        self.start = start

    def _start_of(self, _):
        return self.start


def test_stock_faust_still_commits_past_an_unacknowledged_head():
    """When one of these fails, Faust has mended it: see whether `topology/commits.py` is still needed."""
    book = StockBook(committed=5)
    book.acknowledge(6, 7)  # 5, the next after what is committed, is still being worked on
    assert book.commit() == 8  # a stock bug: a kill now loses 5
    book = StockBook(committed=None)
    book.acknowledge(3)  # 0, 1 and 2 are still being worked on
    assert book.commit() == 4  # a stock bug: nothing was committed yet, so the check is skipped


def test_ours_waits_for_the_head():
    book = OurBook(committed=5)
    book.acknowledge(6, 7)
    assert book.commit() is None
    book.acknowledge(5)
    assert book.commit() == 8
    book = OurBook(committed=None)
    book.acknowledge(3)
    assert book.commit() is None
    book.acknowledge(2, 0, 1)
    assert book.commit() == 4


def test_reading_may_begin_where_records_are_no_longer_kept():
    book = OurBook(committed=None, start=500)
    book.acknowledge(501)
    assert book.commit() is None
    assert book.done_until(PLACE) == 500
    assert book.done_beyond(PLACE) == 1
    book.acknowledge(500)
    assert book.commit() == book.done_until(PLACE) == 502


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)), st.booleans(), st.integers(0, 3))
def test_nothing_unacknowledged_is_ever_committed_and_everything_acknowledged_is(order, pauses, resumed, start):
    book = OurBook(committed=start if resumed else None, start=start)
    acked = set()
    for step, number in enumerate(order):
        book.acknowledge(start + number)
        acked.add(start + number)
        if step in pauses:
            book.commit()
            assert set(range(start, book.done_until(PLACE))) <= acked
            assert book.done_until(PLACE) not in acked  # as far as it goes
            assert book.done_until(PLACE) + book.done_beyond(PLACE) == start + len(acked)
    book.commit()
    assert book.done_until(PLACE) == start + 12
    assert book._acked[PLACE] == []
    assert book._acked_index[PLACE] == set()


def test_the_embedded_consumer_begins_with_the_oldest_record_there_is(tmp_path):
    """Nothing committed, and the oldest records trimmed: without this their offsets were waited for, for ever."""

    async def story():
        app = faust.App("t", broker=f"embedded://{tmp_path}", autodiscover=False, datadir=str(tmp_path / "state"))
        transport = app.transport
        log = transport.log
        log.kept_records_max = 1
        log.create_topic("t", 1)
        for _ in range(1001):
            log.append(Partition("t", 0), None, b"", 1.0)
        log.flush()
        assert log.begin(Partition("t", 0)) == 1000
        consumer = app.consumer
        assert consumer._start_of(PLACE) == 1000
        consumer._acked[PLACE].append(1000)
        assert consumer._new_offset(PLACE) == 1001
        transport.close()

    from faust.transport.drivers import TRANSPORTS  # noqa: PLC0415 - only here

    TRANSPORTS.aliases.setdefault("embedded", "topology.embedded:Transport")
    asyncio.run(story())
