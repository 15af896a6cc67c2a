"""Complete: stored before it is announced, once per share, by every name that led there."""

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.clients.errors import StoreUnavailable
from agents.complete import Completer, day_of, ending_of, image_update, record_fields
from tests.doubles import EPOCH_S, FakeClock, Recorder, event, simulated
from topology.events import Events
from topology.outcomes import Outcome
from topology.public import announcement
from topology.records import Completion, Document, Hop, Http, Image, Metadata, Share, Waiter

URL, CANONICAL = "http://a.test/x?utm_source=t", "http://a.test/x"
NOW_MS = int(EPOCH_S * 1000)


def document(outcome=Outcome.FETCHED, **changes):
    given_ = {
        "url": URL,
        "domain": "a.test",
        "fetch_id": "f",
        "kind": "page",
        "outcome": outcome,
        "http": Http(200, "text/html", 10),
        "canonical_url": CANONICAL,
        "metadata": Metadata(title="Here", image=Image("http://a.test/i.png", width=3), provenance={"title": "title"}),
        "digest": "sha1:X",
    }
    return Document(**(given_ | changes))


def waiter(number=1, url="http://s.test/1", **changes):
    return Waiter(NOW_MS - 500, NOW_MS - 400, Share(f"t{number}", url, ("http://t.co/1",)), **changes)


# -- thought


@pytest.mark.parametrize(
    ("tweeted", "day"),
    [
        ("2021-04-08T23:34:16.000Z", "2021-04-08"),
        ("2021-04-08T23:34:16-05:00", "2021-04-09"),  # the UTC day
        ("Thu Apr 08 19:34:16 +0000 2021", "2021-04-08"),
        ("Thu, 08 Apr 2021 19:34:16 GMT", "2021-04-08"),
        (None, "2023-11-14"),
        ("", "2023-11-14"),
        ("yesterday", "2023-11-14"),
        ("9999-12-31T23:59:59-12:00", "2023-11-14"),  # the day after the last
    ],
)
def test_the_day_of_a_tweet_is_the_utc_day_it_says_or_today(tweeted, day):
    assert day_of(tweeted, NOW_MS) == day


@given(
    st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2},? \d{1,2} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d:\d\d [+-]\d{1,9}")
)
def test_any_date_is_a_day(tweeted):
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day_of(tweeted, NOW_MS))


def test_a_record_has_what_the_page_said_and_none_removes_what_it_no_longer_says():
    fields = record_fields(document(), NOW_MS)
    assert (fields["title"], fields["description"], fields["digest"]) == ("Here", None, "sha1:X")
    assert fields["image"] == {"url": "http://a.test/i.png", "width": 3}
    assert fields["provenance"] == {"title": "title"}
    assert (fields["outcome"], fields["resolved"], fields["reason"]) == ("fetched", True, None)
    json.dumps(fields)  # what a store takes


def test_a_failed_fetch_leaves_what_a_page_once_said():
    fields = record_fields(document(Outcome.FAILED, metadata=None, reason="down", http=None), NOW_MS)
    assert set(fields) == {"url", "outcome", "reason", "fetched", "http", "resolved"}
    assert (fields["outcome"], fields["resolved"]) == ("failed", False)


@pytest.mark.parametrize(
    ("changes", "resolved"),
    [
        ({}, True),
        ({"http": Http(203)}, False),
        ({"http": Http(200, truncated=True)}, False),
        ({"http": None}, False),
        ({"outcome": Outcome.WALL}, False),
        ({"outcome": Outcome.BROKEN}, False),
    ],
)
def test_resolved_is_only_what_answered_200_whole_and_was_the_page(changes, resolved):
    completion = Completion(document(**changes), (waiter(),))
    assert announcement(completion, waiter(), waiter().share, NOW_MS).resolved is resolved


def test_a_record_is_found_by_every_url_that_led_to_it():
    one = waiter(hops=(Hop("http://s.test/1", 301, 1), Hop("http://m.test/2", 302, 1)))
    ending = ending_of(Completion(document(), (one, waiter(2, "http://o.test/"))), {}, NOW_MS)
    assert ending.canonical_url == CANONICAL
    assert ending.aliases == tuple(
        sorted({URL, "http://s.test/1", "http://m.test/2", "http://o.test/", "http://t.co/1"})
    )
    plain = ending_of(Completion(document(canonical_url=None, url=CANONICAL), (waiter(),)), {}, NOW_MS)
    assert plain.canonical_url == CANONICAL
    assert CANONICAL not in plain.aliases


def test_what_is_no_url_has_a_record_too():
    invalid = document(Outcome.INVALID, url="http://", canonical_url=None, metadata=None, http=None)
    assert ending_of(Completion(invalid, (waiter(url="http://"),)), {}, NOW_MS).canonical_url == "http://"


def test_an_answer_from_memory_writes_no_fields():
    assert ending_of(Completion(document(), (waiter(),), cached=True), {}, NOW_MS).fields == {}


@pytest.mark.parametrize("outcome", Outcome)
def test_from_memory_a_page_is_cached_and_an_ending_keeps_its_word(outcome):
    completion = Completion(document(outcome), (waiter(),), cached=True)
    said = announcement(completion, waiter(), waiter().share, NOW_MS).outcome
    fetched = {Outcome.FETCHED, Outcome.CACHED, Outcome.REDIRECTED}
    assert said is (Outcome.CACHED if outcome in fetched else outcome)


def test_an_image_is_told_measured_or_why_not():
    measured = document(kind="image", metadata=Metadata(image=Image("http://a.test/i.png", 30, 40, "image/png")))
    assert image_update(measured)["image_measured"] == {
        "url": "http://a.test/i.png",
        "width": 30,
        "height": 40,
        "media_type": "image/png",
    }
    gone = document(Outcome.GONE, metadata=None, url="http://a.test/i.png")
    assert image_update(gone)["image_measured"] == {"url": "http://a.test/i.png", "outcome": "gone"}


# -- hands


class Store:
    """A metadata store that remembers the order of things."""

    def __init__(self, story):
        self.story = story
        self.endings, self.updates = [], {}
        self.down = 0
        self.poison = None

    async def write(self, batch):
        await asyncio.sleep(0.01)
        if self.down:
            self.down -= 1
            raise StoreUnavailable("locked")
        if self.poison and any(ending.fields.get("outcome") == self.poison for ending in batch):
            raise ValueError("cannot be written")
        self.endings += batch
        self.story += [f"stored {shared.tweet_id}" for ending in batch for shared in ending.shares]

    async def update(self, changes):
        self.updates |= changes


class Listeners(Recorder):
    def __init__(self, story):
        super().__init__()
        self.story = story

    async def raw(self, key, value):
        self.story.append(f"announced {key}")
        return await super().raw(key, value)


class Desk:
    def __init__(self):
        self.story = []
        self.store, self.listeners, self.events = Store(self.story), Listeners(self.story), Events()
        self.completer = Completer(self.events, FakeClock(), metadata=self.store, to_listeners=self.listeners)

    async def complete(self, *completions):
        acted = await asyncio.gather(*(self.completer.on_completion(event(one)) for one in completions))
        return [len(one.sent) for one in acted]


def test_nothing_is_announced_before_it_can_be_read():
    async def story():
        desk = Desk()
        desk.store.down = 2
        sent = await desk.complete(*(Completion(document(), (waiter(n),)) for n in range(5)))
        assert sent == [1] * 5
        for n in range(5):
            assert desk.story.index(f"stored t{n}") < desk.story.index(f"announced t{n}")
        assert desk.events.counts["completed"] == {"fetched": 5}

    simulated(story())


def test_everybody_is_answered_under_the_key_of_its_tweet():
    async def story():
        desk = Desk()
        assert await desk.complete(Completion(document(), tuple(waiter(n) for n in range(4)))) == [4]
        assert [key for key, _ in desk.listeners.sent] == ["t0", "t1", "t2", "t3"]
        said = json.loads(desk.listeners.last)
        assert (said["schema"], said["tweet_id"], said["url"]) == (1, "t3", "http://s.test/1")
        assert (said["outcome"], said["canonical_url"], said["metadata"]["title"]) == ("fetched", CANONICAL, "Here")
        times = said["times"]
        assert times["own_ms"] + times["web_ms"] + times["waited_ms"] >= 500
        (ending,) = desk.store.endings
        assert [shared.tweet_id for shared in ending.shares] == ["t0", "t1", "t2", "t3"]

    simulated(story())


def test_a_share_that_stands_twice_is_answered_once():
    async def story():
        desk = Desk()
        assert await desk.complete(Completion(document(), (waiter(1), waiter(1)))) == [1]

    simulated(story())


def test_an_image_updates_its_pages_record_and_is_announced_to_nobody():
    async def story():
        desk = Desk()
        asked = Waiter(0, 0, parent="http://p.test/")
        assert await desk.complete(Completion(document(kind="image"), (asked,))) == [0]
        assert desk.store.endings == []
        assert set(desk.store.updates) == {"http://p.test/"}
        assert desk.events.counts["updated"]["image"] == 1

    simulated(story())


def test_one_ending_that_cannot_be_stored_keeps_no_other_from_being_announced():
    async def story():
        desk = Desk()
        desk.store.poison = "wall"
        bad = Completion(document(Outcome.WALL), (waiter(2),))
        told = await asyncio.gather(
            *(
                desk.completer.on_completion(event(one))
                for one in (Completion(document(), (waiter(1),)), bad, Completion(document(), (waiter(3),)))
            ),
            return_exceptions=True,
        )
        assert isinstance(told[1], ValueError)
        assert [key for key, _ in desk.listeners.sent] == ["t1", "t3"]
        await (await desk.completer.give_up(event(bad).value, "a fault of SpiderDuck"))
        said = json.loads(desk.listeners.last)
        assert (said["tweet_id"], said["outcome"], said["reason"]) == ("t2", "failed", "a fault of SpiderDuck")
        assert "stored t2" in desk.story

    simulated(story())
