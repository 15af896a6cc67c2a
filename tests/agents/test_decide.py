"""Decide: redirects with their trail, windows by outcome and by domain, crowds, sweeping."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.decide import Decider, follow, in_messages, window_s, with_times
from tables import urls
from tests.doubles import FakeClock, MemoryStore, Recorder, event, simulated
from topology.events import Events
from topology.outcomes import POLICY, Outcome
from topology.records import (
    Completion,
    Deferred,
    Document,
    FetchRequest,
    Hop,
    Http,
    Metadata,
    Share,
    Sweep,
    UrlRequest,
    Visit,
    Waiter,
)
from topology.settings import DomainSettings, Settings

URL, DOMAIN = "http://a.test/", "a.test"


def waiter(number=0, attached_ms=0, **changes):
    return Waiter(0, attached_ms, Share(f"tweet{number}", URL), **changes)


def document(outcome=Outcome.FETCHED, **changes):
    given_ = {"url": URL, "domain": DOMAIN, "fetch_id": "f", "kind": "page", "outcome": outcome}
    return Document(**(given_ | changes))


def redirected(target, **changes):
    return document(Outcome.REDIRECTED, redirect_to=target, redirect_status=301, **changes)


def followed(target, hops=(), redirects_max=10, url=URL):
    return follow(
        waiter(hops=hops), redirected(target, url=url, visit=Visit(web_ms=7)), now_ms=99, redirects_max=redirects_max
    )


# -- thought


def test_every_outcome_has_a_policy_whose_window_is_a_setting_and_a_domain_may_have_its_own():
    assert set(POLICY) == set(Outcome)
    for policy in POLICY.values():
        assert isinstance(getattr(Settings(), policy.window), float)
        assert getattr(DomainSettings(), policy.window) is None


@pytest.mark.parametrize("outcome", Outcome)
def test_a_window_is_the_domains_own_where_it_has_one(outcome):
    name = POLICY[outcome].window
    own = Settings.load(flags={"domains": {DOMAIN: {name: 17}}}, environ={})
    assert window_s(document(outcome), own) == 17.0
    assert window_s(document(outcome, domain="b.test"), own) == getattr(Settings(), name)
    none = Settings.load(flags={"domains": {DOMAIN: {name: 0}}}, environ={})
    assert window_s(document(outcome), none) == 0.0  # nothing is a window too


def test_a_redirect_sends_the_waiter_on_with_its_trail():
    onward = followed("https://b.test/x#part", hops=(Hop("http://s.test/", 302, 3),))
    assert isinstance(onward, UrlRequest)
    assert (onward.url, onward.domain) == ("https://b.test/x", "b.test")
    assert onward.waiter.hops == (Hop("http://s.test/", 302, 3), Hop(URL, 301, 7))
    assert onward.waiter.attached_ms == 99
    assert onward.waiter.share == waiter().share


@pytest.mark.parametrize(
    "target", [URL, "http://a.test", "http://a.test/#top", "HTTP://A.test/", "http://s.test/1", "http://s.test/1#x"]
)
def test_a_circle_is_seen_however_its_target_is_spelt(target):
    """A fragment or another spelling used to hide it until the redirects were too many."""
    ended = followed(target, hops=(Hop("http://s.test/1", 302, 3),))
    assert ended.outcome is Outcome.REDIRECT_LOOP
    assert (ended.url, ended.redirect_to) == (URL, None)


def test_so_many_redirects_are_followed_and_no_more():
    hops = tuple(Hop(f"http://s.test/{n}", 302, 1) for n in range(3))
    assert isinstance(followed("http://b.test/", hops, redirects_max=4), UrlRequest)
    ended = followed("http://b.test/", hops, redirects_max=3)
    assert (ended.outcome, ended.reason) == (Outcome.TOO_MANY_REDIRECTS, "more than 3 redirects")
    assert followed("http://b.test/", redirects_max=0).outcome is Outcome.TOO_MANY_REDIRECTS


@pytest.mark.parametrize(
    "target", ["ftp://b.test/", "javascript:alert(1)", "mailto:a@b.test", "http://", "", "x" * 9000]
)
def test_what_cannot_be_fetched_is_an_ending_that_says_so(target):
    ended = followed(target)
    assert ended.outcome is Outcome.INVALID
    assert target[:200] in ended.reason
    assert len(ended.reason) < 500


@given(st.integers(0, 500))
def test_a_crowd_is_cut_into_messages_and_nobody_is_left_out(count):
    crowd = tuple(waiter(number) for number in range(count))
    cut = list(in_messages(document(), crowd, cached=True))
    assert tuple(one for message in cut for one in message.waiters) == crowd
    assert all(0 < len(message.waiters) <= 200 and message.cached for message in cut)


instants = st.integers(0, 100_000)


@given(instants, instants, instants, st.integers(0, 50_000), st.integers(0, 50_000))
def test_nobody_is_charged_more_than_passed_while_it_waited(attached, admitted, finished, web_ms, waited_ms):
    visit = Visit(admitted_ms=admitted, finished_ms=finished, web_ms=web_ms, waited_ms=waited_ms)
    timed = with_times(waiter(attached_ms=attached, web_ms=5, waited_ms=6), visit)
    web, waited = timed.web_ms - 5, timed.waited_ms - 6
    assert 0 <= web <= web_ms
    assert 0 <= waited <= waited_ms
    assert web + waited <= max(0, finished - max(attached, admitted))


# -- hands


class Desk:
    """A decider with recorders at every exit."""

    def __init__(self, **settings):
        self.clock = FakeClock()
        self.store, self.events = MemoryStore(), Events()
        self.again, self.documents, self.fetches, self.deferred, self.done = (Recorder() for _ in range(5))
        self.decider = Decider(
            self.store,
            Settings.load(flags=settings, environ={}),
            self.events,
            self.clock,
            to_self=self.again,
            to_documents=self.documents,
            to_fetch=self.fetches,
            to_deferred=self.deferred,
            to_complete=self.done,
        )

    async def ask(self, *waiters, url=URL, domain=DOMAIN):
        for one in waiters:
            acted = await self.decider.on_request(event(UrlRequest(url, domain, one)))
            self.finish(acted)

    async def settle(self, ended, *, ack=True):
        acted = await self.decider.on_document(event(ended))
        if ack:
            self.finish(acted)
        return acted

    def finish(self, acted):
        assert all(sent.done() for sent in acted.sent)
        if acted.then is not None:
            acted.then()

    def entry(self, url=URL):
        raw = self.store.get(0, url.encode())
        return None if raw is None else urls.decode(raw)

    def fetched(self, **changes):
        return document(fetch_id=self.fetches.last.fetch_id, **changes)


def test_one_fetch_answers_all_and_then_memory_does_until_the_window_is_over():
    async def story():
        desk = Desk(window_fetched_s=100)
        await desk.ask(waiter(1), waiter(2))
        ((key, order),) = desk.fetches.sent
        assert (key, order.url, order.kind) == (DOMAIN, URL, "page")
        await desk.settle(desk.fetched())
        assert [one.share.tweet_id for one in desk.done.last.waiters] == ["tweet1", "tweet2"]
        assert not desk.done.last.cached
        assert desk.entry().releasing == ()
        desk.clock.advance(99)
        await desk.ask(waiter(3))
        assert desk.done.last.cached
        assert desk.done.last.waiters == (waiter(3),)
        desk.clock.advance(2)
        await desk.ask(waiter(4))
        assert len(desk.fetches.sent) == 2
        assert dict(desk.events.counts["requests"]) == {"fetch": 2, "attached": 1, "known": 1}

    simulated(story())


def test_a_document_that_comes_twice_answers_again_only_those_whose_answer_may_be_missing():
    async def story():
        desk = Desk()
        await desk.ask(waiter(1))
        await desk.settle(desk.fetched(), ack=False)  # killed before the acknowledgement
        assert len(desk.done.sent) == 1
        await desk.settle(desk.fetched())
        assert len(desk.done.sent) == 2
        await desk.settle(desk.fetched())
        assert len(desk.done.sent) == 2

    simulated(story())


def test_each_waiter_follows_a_redirect_with_its_own_trail_and_the_next_one_at_once():
    async def story():
        desk = Desk()
        await desk.ask(waiter(1, hops=(Hop("http://s.test/1", 301, 1),)), waiter(2))
        await desk.settle(desk.fetched(outcome=Outcome.REDIRECTED, redirect_to="http://b.test/x", redirect_status=302))
        (key, first), (_, second) = desk.again.sent
        assert (key, first.url) == ("b.test", "http://b.test/x")
        assert [len(one.waiter.hops) for one in (first, second)] == [2, 1]
        await desk.ask(waiter(3))
        assert desk.again.last.waiter.share.tweet_id == "tweet3"
        assert desk.done.sent == []
        assert len(desk.fetches.sent) == 1

    simulated(story())


def test_a_circle_of_two_ends_for_everybody():
    async def story():
        desk = Desk()
        await desk.ask(waiter(1, hops=(Hop("http://b.test/", 301, 1),)))
        await desk.settle(desk.fetched(outcome=Outcome.REDIRECTED, redirect_to="http://b.test/", redirect_status=302))
        assert desk.done.last.document.outcome is Outcome.REDIRECT_LOOP
        assert desk.again.sent == []

    simulated(story())


def test_too_large_a_crowd_asks_again_later():
    async def story():
        desk = Desk(waiting_max=2)
        await desk.ask(*(waiter(number) for number in range(3)))
        ((key, later),) = desk.deferred.sent
        assert key == DOMAIN
        assert isinstance(later, Deferred)
        assert later.request == UrlRequest(URL, DOMAIN, waiter(2))
        assert later.due_ms == int(desk.clock() * 1000) + 5000
        assert len(desk.entry().waiting) == 2

    simulated(story())


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.REDIRECTED])
def test_every_ending_is_remembered_for_its_window(outcome):
    async def story():
        desk = Desk()
        await desk.ask(waiter(1))
        await desk.settle(desk.fetched(outcome=outcome))
        window = getattr(Settings(), POLICY[outcome].window)
        desk.clock.advance(window - 1)
        await desk.ask(waiter(2))
        assert (len(desk.fetches.sent), len(desk.done.sent)) == (1, 2)
        desk.clock.advance(2)
        await desk.ask(waiter(3))
        assert len(desk.fetches.sent) == 2

    simulated(story())


def test_the_sweep_forgets_what_is_old_ends_what_is_lost_and_goes_slice_by_slice():
    async def story():
        desk = Desk(window_fetched_s=10, grace_s=10, pending_s_max=100)
        for number in range(1200):
            url = f"http://a.test/{number:04}"
            pending = FetchRequest(url, DOMAIN, "f", asked_ms=int(desk.clock() * 1000))
            old = urls.Entry(None, (), document(url=url), int(desk.clock() * 1000) + 10_000)
            desk.store.put(0, url.encode(), old if number % 2 else urls.Entry(pending, (waiter(number),)))
        note, slices = Sweep(), 0
        desk.clock.advance(15)
        while True:
            sent = len(desk.again.sent)
            desk.finish(await desk.decider.on_request(event(note)))
            slices += 1
            if len(desk.again.sent) == sent:
                break
            note = desk.again.last
        assert (desk.store.size(0), slices, desk.documents.sent) == (1200, 4, [])  # nothing is old yet
        assert desk.again.to == [0, 0, 0]
        desk.clock.advance(90)
        note = Sweep()
        while isinstance(note, Sweep):
            sent = len(desk.again.sent)
            desk.finish(await desk.decider.on_request(event(note)))
            note = desk.again.last if len(desk.again.sent) > sent else None
        assert desk.store.size(0) == 600
        assert {ended.outcome for ended in desk.documents.records} == {Outcome.EXPIRED}
        assert len(desk.documents.sent) == 600
        assert desk.events.counts["swept"]["urls"] == 600
        await desk.settle(desk.documents.records[0])
        assert desk.done.last.document.outcome is Outcome.EXPIRED
        assert len(desk.done.last.waiters) == 1

    simulated(story())


def test_a_request_our_fault_kept_from_being_answered_ends_as_failed():
    async def story():
        desk = Desk()
        raw = msgspec.msgpack.encode(UrlRequest(URL, DOMAIN, waiter(1)))
        await desk.decider.give_up(raw, "a fault of SpiderDuck")
        ((key, ended),) = desk.done.sent
        assert (key, ended.document.outcome, ended.document.url) == (DOMAIN, Outcome.FAILED, URL)
        assert ended.waiters == (waiter(1),)
        with pytest.raises(msgspec.DecodeError):  # a note has nobody to answer
            await desk.decider.give_up(msgspec.msgpack.encode(Sweep()), "a fault")

    simulated(story())


def test_a_failed_ending_of_a_redirect_says_what_the_site_said_and_nothing_of_a_page():
    ended = follow(
        waiter(),
        redirected("ftp://x", http=Http(302), metadata=Metadata(title="no")),
        now_ms=0,
        redirects_max=3,
    )
    assert (ended.http, ended.metadata, ended.redirect_to) == (Http(302), None, None)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Completion(ended, ())), type=Completion).document == ended
