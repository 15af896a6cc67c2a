"""Fetch: politeness before every request, retries that are made, queues that end, robots asked once."""

import asyncio
import zlib
from itertools import pairwise

import pytest

from agents.clients.http import TroubleKind
from agents.fetch import Alarm, Fetcher
from agents.fetching.robots_desk import RobotsDesk
from agents.fetching.verdict import REDIRECTS, TRANSIENT, Again, Ending, GotPage, Redirect, verdict
from tables import domains
from tests.doubles import (
    ADDRESS,
    FakeClock,
    MemoryStore,
    Recorder,
    ScriptedWeb,
    event,
    redirect,
    reply,
    simulated,
    trouble,
)
from topology.events import Events
from topology.outcomes import Outcome
from topology.records import Deferred, Document, FetchRequest, Page, Share, Sweep, UrlRequest, Waiter
from topology.settings import Settings

URL, ROBOTS = "http://a.test/x", "http://a.test/robots.txt"


# -- the verdict


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status_means_something(status):
    said = verdict(redirect("/next", status) if status in REDIRECTS else reply(status), URL)
    match status:
        case _ if 200 <= status < 300:
            assert said == GotPage()
        case 301 | 302 | 303 | 307 | 308:
            assert said == Redirect("http://a.test/next", status)
        case 404 | 410:
            assert isinstance(said, Ending)
            assert said.outcome is Outcome.GONE
        case _ if status >= 500 or status in {408, 425, 429}:
            assert isinstance(said, Again)
            assert said.why == str(status)
        case _ if status >= 400:
            assert isinstance(said, Ending)
            assert said.outcome is Outcome.DENIED
        case _:
            assert isinstance(said, Ending)
            assert said.outcome is Outcome.FAILED
    assert isinstance(said, GotPage | Redirect) or str(status) in said.reason


def test_statuses_beyond_the_book_mean_something_too():
    assert all(status >= 400 for status in TRANSIENT)
    assert isinstance(verdict(reply(999), URL), Again)
    assert verdict(reply(299), URL) == GotPage()


@pytest.mark.parametrize("location", [None, "", "http://", "http://[::1"])
def test_a_redirect_that_leads_nowhere_fails(location):
    said = verdict(reply(302) if location is None else redirect(location), URL)
    assert isinstance(said, Ending)
    assert said.outcome is Outcome.FAILED


def test_a_location_is_read_as_the_bytes_that_were_sent():
    assert verdict(redirect("/caf\u00c3\u00a9"), URL) == Redirect("http://a.test/caf%C3%A9", 302)


@pytest.mark.parametrize("kind", TroubleKind)
@pytest.mark.parametrize("transient", [True, False])
def test_every_trouble_means_something(kind, transient):
    said = verdict(trouble(kind, transient=transient), URL)
    if transient:
        assert said == Again(kind.value, f"there was {kind}")
        return
    expected = {TroubleKind.UNSAFE: Outcome.UNSAFE, TroubleKind.TOO_LARGE_HEADERS: Outcome.TOO_LARGE}
    assert said == Ending(expected.get(kind, Outcome.FAILED), f"there was {kind}")


# -- the stage


class Desk:
    """A fetcher with a scripted web, its dispatcher running while the story is told."""

    def __init__(self, script=None, **settings):
        given = {"retry_s": 1.0, "rate_per_s": 10.0} | settings
        self.settings = Settings.load(flags=given, environ={})
        self.clock = FakeClock()
        self.web = ScriptedWeb(self.clock, script)
        self.rows, self.robots_rows, self.events = MemoryStore(), MemoryStore(), Events()
        self.pages, self.documents, self.deferred = Recorder(), Recorder(), Recorder()
        self.fetcher = None

    def start(self):
        """Make the fetcher, as a new owner of the partition does: what it knows is in the tables."""
        robots = RobotsDesk(self.settings, self.events, self.clock, web=self.web, rows=self.robots_rows)
        self.fetcher = Fetcher(
            self.settings,
            self.events,
            self.clock,
            web=self.web,
            robots=robots,
            domain_rows=self.rows,
            to_pages=self.pages,
            to_documents=self.documents,
            to_deferred=self.deferred,
        )
        return asyncio.create_task(self.fetcher.dispatch())

    async def handle(self, request):
        acted = await self.fetcher.on_request(event(request))
        if acted.then is not None:
            acted.then()
        return acted

    async def fetch(self, *requests):
        """Handle requests side by side, as the pump does."""
        await asyncio.gather(*(self.handle(request) for request in requests))


def told(story, script=None, **settings):
    async def run():
        desk = Desk(script, **settings)
        dispatching = desk.start()
        await story(desk)
        dispatching.cancel()

    simulated(run())


def order(number=0, url=URL, **changes):
    return FetchRequest(url, "a.test", f"f{number}", **changes)


def test_a_page_goes_on_compressed_with_where_its_time_went():
    async def story(desk):
        desk.web.took_s = 0.5
        await desk.fetch(order(asked_ms=int(desk.clock() * 1000)))
        ((key, page),) = desk.pages.sent
        assert key == "a.test"
        assert isinstance(page, Page)
        assert zlib.decompressobj(-15).decompress(page.body) == b"hello"
        assert page.body_crc32 == zlib.crc32(b"hello")
        assert (page.http.status, page.http.body_bytes, page.visit.address) == (200, 5, ADDRESS)
        assert page.visit.web_ms == 1000  # robots.txt and the page, half a second each
        assert page.visit.finished_ms - page.visit.started_ms == 500

    told(story, {URL: reply(200, b"hello")})


def test_every_request_waits_for_its_slot_robots_txt_too():
    async def story(desk):
        await desk.fetch(*(order(number, f"http://a.test/{number}") for number in range(20)))
        assert len(desk.web.asked) == 21
        assert desk.web.urls[0] == ROBOTS
        assert desk.web.urls.count(ROBOTS) == 1  # however many wait for it
        times = [asked.at_s for asked in desk.web.asked]
        assert all(later - earlier >= 0.1 - 1e-6 for earlier, later in pairwise(times))
        assert times[-1] - times[0] < 2.2  # and no slower than it may be
        assert len(desk.documents.sent) == 20

    told(story)


def test_a_new_owner_waits_out_what_the_old_one_had_reserved():
    async def story():
        desk = Desk({URL: reply(200)})
        first = desk.start()
        await desk.fetch(order(1))
        last_s = desk.web.asked[-1].at_s
        first.cancel()
        reserved_s = domains.decode(desk.rows.get(0, b"a.test")).reserved_s
        assert reserved_s > last_s
        second = desk.start()
        await desk.fetch(order(2))
        assert desk.web.asked[-1].at_s >= reserved_s
        assert desk.web.urls.count(ROBOTS) == 1  # it was in the table
        second.cancel()

    simulated(story())


def test_a_domain_has_its_own_rate():
    async def story(desk):
        await desk.fetch(*(order(number, f"http://a.test/{number}") for number in range(3)))
        times = [asked.at_s for asked in desk.web.asked]
        assert times[-1] - times[0] >= 3 * 2.0 - 1e-6

    told(story, domains={"a.test": {"rate_per_s": 0.5}})


def test_a_slot_too_far_away_defers_and_who_has_waited_is_queued():
    async def story(desk):
        fetching = asyncio.create_task(desk.fetch(*(order(number, f"http://a.test/{number}") for number in range(15))))
        await asyncio.sleep(0.001)
        assert len(desk.deferred.sent) == 4
        key, later = desk.deferred.sent[0]
        assert key == "a.test"
        assert isinstance(later, Deferred)
        assert later.fetch.returning
        assert later.fetch.attempt == 0
        assert later.due_ms / 1000 > desk.clock() + 1.0
        assert later.fetch.waited_ms >= 1000
        await asyncio.gather(fetching, desk.fetch(*(one.fetch for one in desk.deferred.records)))
        assert len(desk.documents.sent) == 15  # every one of them ended, none twice
        assert len({ended.url for ended in desk.documents.records}) == 15
        assert desk.events.counts["deferred"]["politeness"] == 4

    told(story, wait_s_max=1.0)


def test_a_full_queue_ends_as_rejected_and_says_so():
    async def story(desk):
        fetching = asyncio.create_task(desk.fetch(*(order(number, f"http://a.test/{number}") for number in range(5))))
        await asyncio.sleep(0.001)
        rejected = [ended for ended in desk.documents.records if ended.outcome is Outcome.REJECTED]
        assert len(rejected) == 2
        assert rejected[0].reason == "the queue of a.test is full: 3 requests wait"
        await fetching
        assert len(desk.documents.sent) == 5

    told(story, queue_urls_max=3)


def test_a_transient_failure_is_retried_with_growing_waits_and_then_fails():
    """The retry used to be taken for a replay, and was never made: its URL ended hours later, as expired."""

    async def story(desk):
        request, waits = order(), []
        while True:
            sent, began_s = len(desk.deferred.sent), desk.clock()
            await desk.fetch(request)
            if len(desk.deferred.sent) == sent:
                break
            later = desk.deferred.last
            waits.append(later.due_ms / 1000 - desk.clock())
            assert desk.clock() - began_s < 3
            request = later.fetch
            await asyncio.sleep(later.due_ms / 1000 - desk.clock())
        assert desk.web.urls.count(URL) == 4
        for number, wait_s in enumerate(waits):
            assert 0.9 * 2**number - 0.002 <= wait_s <= 1.1 * 2**number
        assert len(waits) == 3
        (ended,) = desk.documents.records
        assert ended.outcome is Outcome.FAILED
        assert ended.reason == "the site says 503 Service Unavailable (after 4 tries)"
        assert ended.http.status == 503
        assert ended.visit.waited_ms >= sum(waits) * 1000 - 5  # what was waited is politeness, not our own time
        assert desk.events.counts["retries"] == {"503": 3}

    told(story, {URL: reply(503)}, retries_max=3)


def test_a_failure_that_passes_is_a_page_in_the_end():
    async def story(desk):
        await desk.fetch(order())
        await desk.fetch(desk.deferred.last.fetch)
        assert len(desk.pages.sent) == 1
        assert desk.documents.sent == []

    told(story, {URL: [trouble(TroubleKind.TIMEOUT, transient=True), reply(200)]})


def test_the_back_off_is_jittered():
    async def story(desk):
        urls = [f"http://a.test/{number}" for number in range(5)]
        await desk.fetch(*(order(number, url) for number, url in enumerate(urls)))
        waits = {later.fetch.waited_ms for later in desk.deferred.records}
        assert len(waits) > 1

    told(story, {f"http://a.test/{number}": reply(500) for number in range(5)}, rate_per_s=100_000)


def test_what_robots_txt_forbids_is_refused_and_not_asked_for():
    async def story(desk):
        await desk.fetch(order(1), order(2, "http://a.test/open"))
        assert [ended.outcome for ended in desk.documents.records if ended.url == URL] == [Outcome.REFUSED]
        assert URL not in desk.web.urls
        assert "http://a.test/open" in desk.web.urls

    told(story, {ROBOTS: reply(200, b"User-agent: SpiderDuck\nDisallow: /x\n")})


def test_a_robots_txt_that_cannot_be_had_forbids_for_now_and_then_it_is_asked_again():
    async def story(desk):
        await desk.fetch(order())
        assert desk.deferred.last.fetch.attempt == 1
        assert desk.web.urls == [ROBOTS]
        await asyncio.sleep(301)
        await desk.fetch(desk.deferred.last.fetch)
        assert desk.web.urls == [ROBOTS, ROBOTS, URL]
        assert len(desk.pages.sent) == 1

    told(story, {ROBOTS: [reply(503), reply(404)], URL: reply(200)})


def test_redirects_of_robots_txt_are_followed_within_the_domain_each_at_its_slot():
    async def story(desk):
        await desk.fetch(order())
        assert desk.web.urls == [ROBOTS, "https://www.a.test/robots.txt"]
        assert desk.web.asked[1].at_s - desk.web.asked[0].at_s >= 0.1 - 1e-6
        assert desk.documents.last.outcome is Outcome.REFUSED

    told(
        story,
        {
            ROBOTS: redirect("https://www.a.test/robots.txt", 301),
            "https://www.a.test/robots.txt": reply(200, b"User-agent: *\nDisallow: /\n"),
        },
    )


@pytest.mark.parametrize("target", ["http://b.test/robots.txt", "/robots.txt"])
def test_a_robots_txt_elsewhere_or_nowhere_is_none(target):
    async def story(desk):
        await desk.fetch(order())
        assert len(desk.pages.sent) == 1
        assert not any("b.test" in url for url in desk.web.urls)  # it is not ours to ask
        assert desk.web.urls.count(ROBOTS) <= 6

    told(story, {ROBOTS: redirect(target), URL: reply(200)})


def test_robots_txt_has_its_own_bound_and_its_own_lifetime():
    async def story(desk):
        await desk.fetch(order(1))
        assert desk.web.asked[0].ask.body_bytes_max == desk.settings.robots_bytes_max
        await asyncio.sleep(86_399)
        await desk.fetch(order(2))
        assert desk.web.urls.count(ROBOTS) == 1
        await asyncio.sleep(2)
        await desk.fetch(order(3))
        assert desk.web.urls.count(ROBOTS) == 2

    told(story)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (TroubleKind.UNSAFE, Outcome.UNSAFE),
        (TroubleKind.TOO_LARGE_HEADERS, Outcome.TOO_LARGE),
        (TroubleKind.DNS, Outcome.FAILED),
        (TroubleKind.TLS, Outcome.FAILED),
    ],
)
def test_a_lasting_trouble_ends_at_once_whoever_meets_it(kind, outcome):
    lasting = trouble(kind, transient=False)

    async def story(desk):
        await desk.fetch(order())
        (ended,) = desk.documents.records
        assert isinstance(ended, Document)
        assert (ended.outcome, ended.reason, ended.visit.address) == (outcome, f"there was {kind}", ADDRESS)
        assert desk.deferred.sent == []

    told(story, {ROBOTS: lasting})
    told(story, {URL: lasting})


def test_a_redirect_ends_here_and_goes_on_elsewhere():
    async def story(desk):
        await desk.fetch(order())
        (ended,) = desk.documents.records
        assert (ended.outcome, ended.redirect_to, ended.redirect_status) == (
            Outcome.REDIRECTED,
            "http://b.test/y",
            308,
        )
        assert "http://b.test/y" not in desk.web.urls

    told(story, {URL: redirect("//b.test/y", 308)})


def test_the_same_order_twice_is_fetched_once():
    async def story(desk):
        await desk.fetch(order(), order())
        await desk.fetch(order())
        assert desk.web.urls.count(URL) == 1
        assert len(desk.pages.sent) == 1
        await desk.fetch(order(2))  # the next window's
        assert desk.web.urls.count(URL) == 2

    told(story, {URL: reply(200)})


def test_an_image_has_the_cap_of_an_image():
    async def story(desk):
        await desk.fetch(order(1, "http://a.test/i", kind="image"), order(2))
        caps = {asked.url: asked.ask.body_bytes_max for asked in desk.web.asked}
        assert caps["http://a.test/i"] == 5000
        assert caps[URL] == 9000

    told(story, image_bytes_max=5000, body_bytes_max=9000)


def test_no_more_fetches_are_under_way_than_may_be_and_draining_begins_none():
    async def story(desk):
        desk.web.took_s = 10
        orders = [FetchRequest(f"http://d{n}.test/", f"d{n}.test", "f") for n in range(20)]
        fetching = asyncio.create_task(desk.fetch(*orders))
        await asyncio.sleep(5)
        assert desk.fetcher.lanes.under_way == 8
        assert len(desk.web.asked) == 8
        desk.fetcher.draining = True
        await asyncio.sleep(100)
        assert desk.fetcher.lanes.under_way == 0
        assert len(desk.documents.sent) == 8
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)

    told(story, fetches_max=8)


def test_who_is_cancelled_in_the_queue_gives_its_turn_to_the_next():
    async def story(desk):
        tasks = [asyncio.create_task(desk.handle(order(n, f"http://a.test/{n}"))) for n in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert {ended.url for ended in desk.documents.records} == {"http://a.test/0", "http://a.test/2"}
        await asyncio.sleep(1)
        assert (desk.fetcher.lanes.under_way, desk.fetcher.lanes.waiting) == (0, 0)

    told(story)


def test_a_fault_of_ours_leaves_the_place_and_the_order_can_be_made_again():
    async def story(desk):
        with pytest.raises(ValueError, match="ours"):
            await desk.handle(order())
        assert desk.fetcher.lanes.under_way == 0
        await desk.fetch(order())
        assert len(desk.pages.sent) == 1
        await desk.fetcher.give_up(event(order()).value, "a fault")
        assert (desk.documents.last.outcome, desk.documents.last.reason) == (Outcome.FAILED, "a fault")

    told(story, {URL: [ValueError("ours"), reply(200)]})


def test_the_sweep_drops_reservations_that_have_passed_and_robots_that_have_expired():
    async def story(desk):
        await desk.fetch(order())
        assert (desk.rows.size(0), desk.robots_rows.size(0)) == (1, 1)
        await desk.handle(Sweep())
        assert (desk.rows.size(0), desk.robots_rows.size(0)) == (1, 1)
        await asyncio.sleep(3)
        await desk.handle(Sweep())
        assert (desk.rows.size(0), desk.robots_rows.size(0)) == (0, 1)
        await asyncio.sleep(86_400)
        await desk.handle(Sweep())
        assert desk.robots_rows.size(0) == 0
        assert dict(desk.events.counts["swept"]) == {"domains": 1, "robots": 1}

    told(story)


# -- the alarm


def test_what_is_deferred_comes_back_when_it_is_due_to_where_it_came_from():
    async def story():
        clock, fetches, requests = FakeClock(), Recorder(), Recorder()
        alarm = Alarm(clock, to_fetch=fetches, to_requests=requests)
        due_ms = int(clock() * 1000) + 5000
        asking = UrlRequest(URL, "a.test", Waiter(0, 0, Share("t", URL)))
        waiting = [
            asyncio.create_task(alarm.on_deferred(event(Deferred(due_ms, fetch=order())))),
            asyncio.create_task(alarm.on_deferred(event(Deferred(due_ms, request=asking)))),
        ]
        await asyncio.sleep(4.9)
        assert fetches.sent == requests.sent == []
        await asyncio.gather(*waiting)
        assert fetches.sent == [("a.test", order())]
        assert requests.sent == [("a.test", asking)]
        before_s = clock()
        await alarm.on_deferred(event(Deferred(0, fetch=order())))  # after a night's stop: overdue
        assert clock() == before_s

    simulated(story())
