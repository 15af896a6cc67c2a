"""robots.txt: public conformance cases, laws of matching, and one fetch for all who wait."""

import asyncio
import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.fetching.robots import PARSED_BYTES_MAX, parse
from agents.fetching.robots_book import Lifetimes, RobotsAnswer, RobotsBook, judge
from agents.fetching.robots_rules import ALLOW_ALL

# Cases that contradict RFC 9309 or each other: (agent, URL, expectation) -> why the expectation is not ours.
DISPUTED = {
    ("FooBot", "http://foo.bar/foo/bar/ツ", False): "2.2.2: octets outside ASCII are encoded before comparing",
    ("FooBot", "http://foo.bar/foo/bar/baz", False): "2.2.2: its table says /foo/bar/%62%61%7A matches this path",
    ("asdfbot", "http://m.example.com/robots.txt", False): "2.2.2: /robots.txt is implicitly allowed",
    ("BarBot", "http://example.com/robots.txt", False): "2.2.2: /robots.txt is implicitly allowed",
    ("AB", "http://example.com/robots.txt", False): "2.2.2: /robots.txt is implicitly allowed",
    ("AB42bot", "http://example.com/foo/bar", True): "a group that names an agent with digits is obeyed",
    ("barbarbot-prod", "http://example.com/foo/bar", False): "protego's cases let `hedwig` hold for `hedwig-images`",
    ("agent", "http://example.com/path", False): "2.2: rules before the first user-agent line are for nobody",
    ("Foo Bar", "http://foo.bar/x/y", False): "2.2.1: a product token has no space",
}


def conformance_cases(shared, semantics):
    """The public cases of one kind, as (file, agent, url, allowed)."""
    for case in json.loads((shared / "cases" / "robots.json").read_text()):
        if case["semantics"] == semantics:
            text = case.get("robots")
            body = base64.b64decode(case["robots_b64"]) if text is None else text.encode("utf-8", "surrogatepass")
            yield body, case["agent"], case["url"], case["allowed"]


@pytest.mark.parametrize(("semantics", "count"), [("rfc9309", 394), ("google-specific", 58)])
def test_public_conformance_cases_hold_but_for_the_disputed(shared, semantics, count):
    cases = list(conformance_cases(shared, semantics))
    wrong = [c[1:] for c in cases if parse(c[0], c[1]).allowed(c[2]) != c[3]]
    assert [case for case in wrong if case not in DISPUTED] == []
    assert len(cases) == count


def test_agents_stay_one_list_across_a_record_we_do_not_know_unless_it_is_a_rule():
    listed = b"User-agent: duck\nSitemap: https://x.example/s.xml\nUser-agent: *\nDisallow: /\n"
    ended = b"User-agent: *\nNoindex: /x\nUser-agent: other\nDisallow: /\n"
    assert not parse(listed, "duck").allowed("http://x.example/a")
    assert parse(ended, "duck").allowed("http://x.example/a")


def test_groups_for_the_same_agent_are_merged_and_star_is_for_those_without_one():
    body = b"User-agent: duck\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n\nUser-agent: DUCK/2.0\nDisallow: /c\n"
    rules = parse(body, "Duck")
    assert [rules.allowed(f"http://h/{p}") for p in "abc"] == [False, True, False]
    assert [parse(body, "goose").allowed(f"http://h/{p}") for p in "abc"] == [True, False, True]


@pytest.mark.parametrize("delay", [b"7", b"7.0", b" 7 # s"])
def test_crawl_delay_is_read_for_our_group(delay):
    assert parse(b"User-agent: *\nCrawl-delay:" + delay, "duck").crawl_delay_s == 7.0


@pytest.mark.parametrize("delay", [b"nan", b"inf", b"-1", b"1e9", b"", b"soon", b"1;2"])
def test_a_crawl_delay_that_is_no_plain_number_is_not_there(delay):
    assert parse(b"User-agent: *\nCrawl-delay: " + delay, "duck").crawl_delay_s is None


@given(st.binary(max_size=300), st.text(max_size=40))
def test_any_bytes_parse_and_any_url_is_judged(body, url):
    parse(b"User-agent: *\nDisallow: " + body, "duck").allowed(url)
    parse(body, "duck").allowed(url)


def matches(pattern, path):
    """The definition of RFC 9309 2.2.3, recursively and slowly; literal stars and dollars are spelled S and D."""
    if not pattern:
        return True
    if pattern == "$":
        return not path
    if pattern[0] == "*":
        return any(matches(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return path[:1] == pattern[0] and matches(pattern[1:], path[1:])


@given(st.text(alphabet="xy/*$%", max_size=12), st.text(alphabet="xy/*$%", max_size=14))
def test_wildcards_match_as_the_recursive_definition_does(pattern, tail):
    rules = parse(f"User-agent: *\nDisallow: /{pattern}".encode(), "duck")
    body, anchor = pattern.removesuffix("$").replace("$", "D"), "$" * pattern.endswith("$")
    path = tail.replace("*", "S").replace("$", "D")
    assert rules.allowed(f"http://h/{tail}") is not matches(f"/{body}{anchor}", f"/{path}")


@pytest.mark.parametrize(
    ("rule", "path", "allowed"),
    [
        ("/a%2A", "/a*b", False),
        ("/a%2a", "/abc", True),
        ("/a%24", "/a$", False),
        ("/a%24", "/a", True),
        ("/a%2Fb", "/a/b", True),
        ("/a%2fb", "/a%2Fb", False),
        ("/%7Ejoe", "/~joe", False),
        ("/~joe", "/%7ejoe", False),
        ("/%25", "/%2541", False),
        ("/%C3%A4", "/ä", False),
        ("/ä", "/%c3%a4", False),
    ],
)
def test_escapes_mean_what_rfc_9309_says(rule, path, allowed):
    assert parse(f"User-agent: *\nDisallow: {rule}".encode(), "duck").allowed(f"http://h{path}") is allowed


def test_a_wildcard_bomb_is_matched_in_linear_time():
    rules = parse(b"User-agent: *\nDisallow: /" + b"*a" * 2000 + b"b$", "duck")
    began = time.perf_counter()
    assert rules.allowed("http://h/" + "a" * 8000)
    assert time.perf_counter() - began < 0.1


def test_what_stands_after_the_cap_is_not_read():
    padding = b"# " + b"x" * PARSED_BYTES_MAX + b"\n"
    assert parse(b"User-agent: *\n" + padding + b"Disallow: /", "duck").allowed("http://h/a")


def test_a_long_file_of_other_agents_rules_costs_little():
    foreign = b"".join(b"User-agent: bot%d\n" % i + b"Disallow: /private/area\n" * 200 for i in range(100))
    began = time.perf_counter()
    rules = parse(foreign[: PARSED_BYTES_MAX - 100] + b"\nUser-agent: *\nDisallow: /x\n", "duck")
    assert time.perf_counter() - began < 0.25
    assert not rules.allowed("http://h/x")


LIFETIMES = Lifetimes(success_s=1000.0, error_s=10.0, stale_s=5000.0)


@pytest.mark.parametrize(
    ("status", "allowed", "deferred", "lifetime_s"),
    [
        (200, False, False, 1000.0),
        (204, False, False, 1000.0),
        (301, True, False, 1000.0),
        (401, True, False, 1000.0),
        (403, True, False, 1000.0),
        (404, True, False, 1000.0),
        (410, True, False, 1000.0),
        (429, False, True, 10.0),
        (500, False, True, 10.0),
        (503, False, True, 10.0),
        (None, False, True, 10.0),
    ],
)
def test_a_status_means_what_rfc_9309_says(status, allowed, deferred, lifetime_s):
    body = b"User-agent: *\nDisallow: /" if status != 404 else b"User-agent: *\nDisallow: /ignored"
    verdict = judge(RobotsAnswer(status, body), "duck", 100.0, LIFETIMES)
    assert (verdict.allowed("http://h/a"), verdict.deferred) == (allowed, deferred)
    assert verdict.expires_s == 100.0 + lifetime_s


class Desk:
    """A scripted robots.txt of one site: counts how often it is asked, answers when told."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0
        self.open = asyncio.Event()

    async def __call__(self):
        self.asked += 1
        await self.open.wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    """A clock that is advanced by hand."""

    now_s = 100.0

    def __call__(self):
        return self.now_s


def book_at(clock, **bounds):
    return RobotsBook(agent="duck", clock=clock, lifetimes=LIFETIMES, **bounds)


FORBIDDEN = RobotsAnswer(200, b"User-agent: *\nDisallow: /")


def test_all_who_wait_get_the_same_rules_from_one_fetch():
    """Scrapy 2.19 lets all but the first through; see its robots.txt middleware."""

    async def story():
        book, desk = book_at(Clock()), Desk(FORBIDDEN)
        waiters = [asyncio.create_task(book.verdict_for("http://h", desk)) for _ in range(30)]
        await asyncio.sleep(0)
        desk.open.set()
        verdicts = await asyncio.gather(*waiters)
        assert desk.asked == 1
        assert all(v is verdicts[0] and not v.allowed("http://h/a") for v in verdicts)
        assert repr(book) == "<RobotsBook: 1 origins, 751 bytes, 0 being asked>"

    asyncio.run(story())


def test_a_waiter_that_is_cancelled_cancels_nobody_else():
    async def story():
        book, desk = book_at(Clock()), Desk(FORBIDDEN)
        first, second = (asyncio.create_task(book.verdict_for("http://h", desk)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        desk.open.set()
        assert not (await second).allowed("http://h/a")
        assert first.cancelled()
        assert desk.asked == 1

    asyncio.run(story())


def test_a_fetch_that_raises_is_shared_and_not_remembered():
    async def story():
        book, desk = book_at(Clock()), Desk(LookupError("no desk"), FORBIDDEN)
        desk.open.set()
        results = await asyncio.gather(*(book.verdict_for("http://h", desk) for _ in range(3)), return_exceptions=True)
        assert [type(r) for r in results] == [LookupError] * 3
        assert not (await book.verdict_for("http://h", desk)).allowed("http://h/a")
        assert desk.asked == 2

    asyncio.run(story())


def test_a_verdict_holds_for_its_lifetime_and_then_is_asked_for_again():
    async def story():
        clock = Clock()
        book, desk = book_at(clock), Desk(FORBIDDEN, RobotsAnswer(404))
        desk.open.set()
        await book.verdict_for("http://h", desk)
        clock.now_s += 999.0
        assert not (await book.verdict_for("http://h", desk)).allowed("http://h/a")
        assert desk.asked == 1
        clock.now_s += 2.0
        assert book.known("http://h") is None
        assert (await book.verdict_for("http://h", desk)).rules is ALLOW_ALL

    asyncio.run(story())


def test_the_last_known_rules_hold_while_a_site_is_down_but_not_for_ever():
    async def story():
        clock, down = Clock(), RobotsAnswer(503)
        book, desk = book_at(clock), Desk(RobotsAnswer(200, b"User-agent: *\nDisallow: /a"), down, down, down)
        desk.open.set()
        await book.verdict_for("http://h", desk)
        clock.now_s += 1001.0
        stale = await book.verdict_for("http://h", desk)
        assert (stale.allowed("http://h/a"), stale.allowed("http://h/b"), stale.deferred) == (False, True, False)
        assert stale.expires_s == clock.now_s + LIFETIMES.error_s
        clock.now_s += LIFETIMES.stale_s
        assert (await book.verdict_for("http://h", desk)).deferred

    asyncio.run(story())


def test_a_text_kept_elsewhere_is_as_old_as_its_fetch():
    async def story():
        clock = Clock()
        book, desk = book_at(clock), Desk(RobotsAnswer(200, b"", fetched_s=clock.now_s - 600.0))
        desk.open.set()
        assert (await book.verdict_for("http://h", desk)).expires_s == clock.now_s + 400.0

    asyncio.run(story())


def test_the_book_is_bounded_in_entries_and_in_bytes():
    async def story():
        body = b"User-agent: *\n" + b"".join(b"Disallow: /%d\n" % i for i in range(20))
        few = book_at(Clock(), entries_max=3)
        small = book_at(Clock(), bytes_max=10_000)
        for i in range(10):
            for book in (few, small):
                desk = Desk(RobotsAnswer(200, body))
                desk.open.set()
                await book.verdict_for(f"http://h{i}", desk)
        assert len(few) == 3
        assert small.footprint_bytes <= 10_000
        assert 0 < len(small) < 10
        assert few.known("http://h9") is not None
        assert few.known("http://h0") is None

    asyncio.run(story())


def test_the_loop_goes_on_while_a_long_file_is_parsed():
    async def story():
        book = book_at(Clock())
        body = b"User-agent: *\n" + b"".join(b"Disallow: /section/%d/*/x\n" % i for i in range(18_000))
        desk = Desk(RobotsAnswer(200, body))
        desk.open.set()
        asked = asyncio.create_task(book.verdict_for("http://h", desk))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert not (await asked).allowed("http://h/section/7/y/x")
        assert turns > 2

    asyncio.run(story())


def test_closing_the_book_gives_up_the_fetches_under_way():
    async def story():
        book, desk = book_at(Clock()), Desk(FORBIDDEN)
        waiter = asyncio.create_task(book.verdict_for("http://h", desk))
        await asyncio.sleep(0)
        await book.close()
        with pytest.raises(asyncio.CancelledError):
            await waiter

    asyncio.run(story())
