"""Pacing: laws over generated interleavings, with a clock that is only a number."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agents.fetching.lanes import Full, Go, Lanes, Later, Queued, Wait, gate

DOMAINS = ("a.test", "b.test", "c.test")


def lanes(**changes):
    given_ = {"wait_s_max": 30.0, "queue_max": 1000, "under_way_max": 8, "horizon_s": 3600.0}
    return Lanes(**(given_ | changes))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), st.sampled_from(DOMAINS)),
        st.tuples(st.just("wait"), st.floats(0.0, 0.3)),
        st.tuples(st.just("take"), st.floats(0.0, 0.25)),  # the time connecting takes
        st.tuples(st.just("robots"), st.sampled_from(DOMAINS)),
        st.tuples(st.just("done"), st.integers(0, 5)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=120,
)


@given(steps, st.sampled_from([0.5, 3.0, 10.0, 1000.0]))
def test_no_domain_is_ever_asked_faster_than_its_rate(script, rate):
    """Any interleaving of arrivals, slow connections, robots.txt and restarts: requests stand an interval apart."""
    now, book, table = 1000.0, lanes(), {}
    sent = {domain: [] for domain in DOMAINS}
    pending = []  # (may send from, lane)

    def send(lane, at):
        while isinstance(verdict := gate(lane, at), Wait):
            at += verdict.wait_s + 1e-9
        assert isinstance(verdict, Go)
        if verdict.reserve_s is not None:
            table[lane.domain] = verdict.reserve_s
        sent[lane.domain].append(at)
        return at

    for step, argument in script:
        if step == "admit":
            lane = book.open(argument, rate_per_s=rate, resume_s=table.get(argument, 0.0), now_s=now)
            book.admit(lane, object(), now)
        elif step == "robots":
            lane = book.open(argument, rate_per_s=rate, resume_s=table.get(argument, 0.0), now_s=now)
            now = max(now, send(lane, now))
        elif step == "wait":
            now += argument
            book.forget(now)
        elif step == "take":
            turn = book.take(now)
            if turn is not None:
                pending.append(turn.lane)
                now = max(now, send(turn.lane, now + argument))
        elif step == "done" and pending:
            book.done(pending.pop(argument % len(pending)))
        elif step == "restart":
            book, pending = lanes(), []
    for times in sent.values():
        for earlier, later in itertools.pairwise(times):
            assert later - earlier >= 1 / rate - 1e-9


@given(st.lists(st.sampled_from(DOMAINS), max_size=60))
def test_every_queued_order_gets_its_turn(arrivals):
    now, book = 0.0, lanes()
    for number, domain in enumerate(arrivals):
        lane = book.open(domain, rate_per_s=10, resume_s=0.0, now_s=now)
        assert isinstance(book.admit(lane, number, now), Queued)
    served = []
    while (next_s := book.next_s()) is not None:
        now = max(now, next_s)
        turn = book.take(now)
        if turn is not None:
            served.append(turn.order)
            book.done(turn.lane)
    assert sorted(served) == list(range(len(arrivals)))
    assert book.waiting == book.under_way == 0


def test_a_slot_too_far_away_defers_and_the_deferred_come_back_one_interval_apart():
    book = lanes(wait_s_max=1.0)
    lane = book.open("a.test", rate_per_s=10, resume_s=0.0, now_s=0.0)
    verdicts = [book.admit(lane, n, 0.0) for n in range(14)]
    assert [type(v) for v in verdicts] == [Queued] * 11 + [Later] * 3
    dues = [v.due_s for v in verdicts[11:]]
    assert all(abs(b - a - 0.1) < 1e-9 for a, b in itertools.pairwise(dues))


def test_a_full_queue_is_an_answer_and_not_a_drop():
    book = lanes(queue_max=2)
    lane = book.open("a.test", rate_per_s=10, resume_s=0.0, now_s=0.0)
    assert [type(book.admit(lane, n, 0.0)) for n in range(3)] == [Queued, Queued, Full]


def test_a_slot_beyond_the_horizon_is_refused_at_once():
    book = lanes(wait_s_max=0.0, horizon_s=5.0)
    lane = book.open("a.test", rate_per_s=1, resume_s=0.0, now_s=0.0)
    verdicts = [book.admit(lane, n, 0.0) for n in range(8)]
    assert [type(v) for v in verdicts] == [Queued] + [Later] * 5 + [Full] * 2


def test_one_domain_cannot_hold_more_than_its_share_of_open_requests():
    book = lanes(under_way_max=2)
    lane = book.open("a.test", rate_per_s=1000, resume_s=0.0, now_s=0.0)
    for n in range(5):
        book.admit(lane, n, 0.0)
    taken = [turn for at in (1.0, 2.0, 3.0) if (turn := book.take(at)) is not None]
    assert [turn.order for turn in taken] == [0, 1]
    book.done(lane)
    assert book.take(4.0).order == 2


def test_memory_follows_the_busy_domains():
    book = lanes()
    for n in range(1000):
        lane = book.open(f"d{n}.test", rate_per_s=10, resume_s=0.0, now_s=0.0)
        book.admit(lane, n, 0.0)
    while (turn := book.take(1.0)) is not None:
        gate(turn.lane, 1.0)
        book.done(turn.lane)
    book.forget(1.5)
    assert len(book) == 1000  # their reservations have not passed
    book.forget(3.0)
    assert len(book) == 0


def test_a_lane_says_how_it_stands():
    book = lanes()
    lane = book.open("a.test", rate_per_s=10, resume_s=0.0, now_s=0.0)
    book.admit(lane, "order", 0.0)
    assert repr(lane) == "<Lane a.test: 1 waiting, 0 under way, every 0.1 s>"
