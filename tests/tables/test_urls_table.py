"""The urls table: laws over generated interleavings of requests, endings and crashes.

The model plays the decider: it keeps the entry as the table would, the messages as the log would, and counts who was
answered. A crash forgets what was in memory (whom to release) and delivers again what was not acknowledged.
"""

from collections import Counter
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tables import urls
from tables.urls import EMPTY, Attached, Crowded, Entry, Fetch, Known
from topology.outcomes import Outcome
from topology.records import Document, FetchRequest, Share, UrlRequest, Waiter

URL, DOMAIN = "http://a.test/", "a.test"
WINDOW_S = 10.0


def waiter(number):
    return Waiter(0, 0, Share(f"tweet{number}", URL))


def request(number):
    return UrlRequest(URL, DOMAIN, waiter(number))


def ending(fetch, outcome=Outcome.FETCHED):
    return Document(URL, DOMAIN, fetch.fetch_id, fetch.kind, outcome)


class World:
    """One URL's entry, its requests and fetches in the log, and a decider that may crash between any two steps."""

    def __init__(self, waiting_max=100):
        self.entry = EMPTY
        self.now_ms = 1_000_000
        self.waiting_max = waiting_max
        self.requests = []  # unacknowledged, oldest first
        self.orders = []  # fetches that were ordered, replays included
        self.documents = []  # endings in the log, unacknowledged
        self.to_release = []  # answered and not yet forgotten: in memory only
        self.answers = Counter()
        self.fetches = []
        self.crashes = 0
        self.asked = set()

    def handle_request(self):
        if not self.requests:
            return
        asked = self.requests[0]
        self.entry, answer = urls.ask(self.entry, asked, now_ms=self.now_ms, waiting_max=self.waiting_max)
        self.check()
        match answer:
            case Fetch(fetch):
                self.orders.append(fetch)
            case Known(_):
                self.answers[asked.waiter.share.tweet_id] += 1
            case Crowded():
                self.requests.append(asked)  # comes back later
            case Attached():
                pass
        del self.requests[0]

    def handle_order(self):
        """Fetch: a replay of what was fetched is dropped, as the fetcher does."""
        if self.orders:
            fetch = self.orders.pop(0)
            if fetch.fetch_id not in {done.fetch_id for done in self.fetches}:
                self.fetches.append(fetch)
                self.documents.append(ending(fetch))

    def handle_document(self, *, ack=True):
        """Settle, answer, and (unless it crashes first) acknowledge and forget."""
        if not self.documents:
            return
        document = self.documents[0]
        self.entry, waiters = urls.settle(self.entry, document, now_ms=self.now_ms, window=lambda _: WINDOW_S)
        self.check()
        for one in waiters:
            self.answers[one.share.tweet_id] += 1
        if ack:
            self.to_release.append(waiters)
            del self.documents[0]

    def release(self):
        if self.to_release:
            self.entry = urls.released(self.entry, self.to_release.pop(0))

    def crash(self, replayed):
        """Between sending the answers and forgetting who was answered, or anywhere else."""
        self.crashes += 1
        if self.to_release:  # not acknowledged before they are released: the document comes again
            self.documents = [ending_of_entry(self.entry), *self.documents] if self.entry.document else self.documents
        self.to_release = []
        for fetch in self.fetches[len(self.fetches) - replayed :]:
            self.documents.append(ending(fetch))
        self.requests = [request(number) for number in sorted(self.asked)][:replayed] + self.requests

    def finish(self):
        for _ in range(200):
            self.handle_request()
            self.handle_order()
            self.handle_document()
            self.release()
            if not (self.requests or self.orders or self.documents or self.to_release):
                break

    def check(self):
        """What the table holds is what it was given, encoded and decoded."""
        assert urls.decode(msgspec.msgpack.encode(self.entry)) == self.entry
        assert not (self.entry.waiting and self.entry.pending is None)
        assert len(self.entry.waiting) <= self.waiting_max


def ending_of_entry(entry):
    return entry.document


steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 8)),
        st.tuples(st.just("request"), st.just(0)),
        st.tuples(st.just("order"), st.just(0)),
        st.tuples(st.just("document"), st.booleans()),
        st.tuples(st.just("release"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 12_000)),
        st.tuples(st.just("crash"), st.integers(0, 3)),
    ),
    max_size=60,
)


def played(script, *, crashes, waiting_max=100):
    world, fresh = World(waiting_max), iter(range(10_000))
    for step, argument in script:
        if step == "ask":
            number = argument if crashes else next(fresh)  # without crashes everybody is somebody else
            world.asked.add(number)
            world.requests.append(request(number))
        elif step == "request":
            world.handle_request()
        elif step == "order":
            world.handle_order()
        elif step == "document":
            world.handle_document(ack=argument or not crashes)
        elif step == "release":
            world.release()
        elif step == "wait":
            world.now_ms += argument
        elif step == "crash" and crashes:
            world.crash(argument)
    world.finish()
    return world


@given(steps, st.sampled_from([1, 2, 100]))
def test_every_waiter_is_answered_at_least_once_whatever_is_replayed(script, waiting_max):
    world = played(script, crashes=True, waiting_max=waiting_max)
    assert {f"tweet{number}" for number in world.asked} <= set(world.answers)
    assert (world.entry.waiting, world.entry.releasing) == ((), ())


@given(steps, st.sampled_from([1, 2, 100]))
def test_every_waiter_is_answered_exactly_once_when_nothing_crashes(script, waiting_max):
    world = played(script, crashes=False, waiting_max=waiting_max)
    assert world.answers == Counter(f"tweet{number}" for number in world.asked)


@given(st.integers(1, 30), st.lists(st.integers(0, 9_999), max_size=10))
def test_one_fetch_per_window_however_many_ask(count, later_ms):
    world = World()
    for number in range(count):
        world.requests.append(request(number))
        world.handle_request()
    world.handle_order()
    world.handle_document()
    world.release()
    known_ms = world.now_ms
    for number, at_ms in enumerate(later_ms):
        world.now_ms = known_ms + at_ms
        world.requests.append(request(1000 + number))
        world.handle_request()
    assert len(world.fetches) == len({fetch.fetch_id for fetch in world.orders + world.fetches}) == 1
    world.now_ms = known_ms + 10_000  # the window is over
    world.requests.append(request(2000))
    world.handle_request()
    assert len(world.orders) == 1


def test_a_replayed_request_orders_its_fetch_again_under_the_same_id():
    entry, first = urls.ask(EMPTY, request(1), now_ms=5, waiting_max=9)
    again, second = urls.ask(entry, request(1), now_ms=99, waiting_max=9)
    assert first == second
    assert again is entry


def test_two_fetches_of_one_url_never_share_an_id_even_within_a_millisecond():
    """With a window of nothing the second was taken for a replay of the first, and never made."""
    ids, entry = [], EMPTY
    for number in range(4):
        entry, answer = urls.ask(entry, request(number), now_ms=7, waiting_max=9)
        ids.append(answer.request.fetch_id)
        entry, _ = urls.settle(entry, ending(answer.request), now_ms=7, window=lambda _: 0.0)
    assert all(one != other for one, other in pairwise(ids))


def test_an_ending_of_another_fetch_answers_nobody_who_waits_now():
    entry, _ = urls.ask(EMPTY, request(1), now_ms=5, waiting_max=9)
    stale = ending(FetchRequest(URL, DOMAIN, "other"))
    assert urls.settle(entry, stale, now_ms=6, window=lambda _: 1.0) == (entry, ())


def test_an_image_is_asked_for_as_an_image_and_one_parent_waits_once():
    asking = UrlRequest(URL, DOMAIN, Waiter(0, 0, parent="http://p.test/"))
    entry, answer = urls.ask(EMPTY, asking, now_ms=5, waiting_max=9)
    assert answer.request.kind == "image"
    assert urls.ask(entry, asking, now_ms=6, waiting_max=9) == (entry, answer)
    _, other = urls.ask(entry, UrlRequest(URL, DOMAIN, Waiter(0, 0, parent="http://q.test/")), now_ms=6, waiting_max=9)
    assert other == Attached()


@given(st.integers(0, 10**7), st.integers(1, 1000))
def test_a_fetch_expires_when_it_was_asked_for_too_long_ago_and_only_then(waited_ms, limit_s):
    pending = FetchRequest(URL, DOMAIN, "f", asked_ms=1000)
    document = urls.expired(Entry(pending, (waiter(1),)), URL, now_ms=1000 + waited_ms, pending_s_max=limit_s)
    assert (document is not None) == (waited_ms >= limit_s * 1000)
    if document is not None:
        assert (document.outcome, document.fetch_id) == (Outcome.EXPIRED, "f")
        after, answered = urls.settle(Entry(pending, (waiter(1),)), document, now_ms=9, window=lambda _: 0.0)
        assert answered == (waiter(1),)
        # The real answer may yet come: it answers nobody twice.
        late, nobody = urls.settle(urls.released(after, answered), ending(pending), now_ms=10, window=lambda _: 0.0)
        assert nobody == ()
        assert late.document.outcome is Outcome.EXPIRED


@given(st.integers(0, 10**6), st.integers(0, 1000), st.integers(0, 10**7))
def test_an_entry_is_forgotten_past_its_window_and_grace_and_never_while_somebody_waits(fresh_ms, grace_s, now_ms):
    document = ending(FetchRequest(URL, DOMAIN, "f"))
    known = Entry(None, (), document, fresh_ms)
    assert urls.forgettable(known, now_ms=now_ms, grace_s=grace_s) == (now_ms > fresh_ms + grace_s * 1000)
    releasing = msgspec.structs.replace(known, releasing=(waiter(1),))
    pending = msgspec.structs.replace(known, pending=FetchRequest(URL, DOMAIN, "g"))
    assert not urls.forgettable(releasing, now_ms=now_ms, grace_s=grace_s)
    assert not urls.forgettable(pending, now_ms=now_ms, grace_s=grace_s)
