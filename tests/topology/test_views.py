"""The web views, asked over HTTP as any client would: answers, errors, and who answers for a domain."""

import asyncio
import gzip
import http.client
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from yarl import URL

from agents.clients.errors import StoreUnavailable
from agents.fetching.lanes import Lane
from tables.robots import Row
from tests.serving import serving, settings_for, until
from tests.webs import Answer, SavedWeb, page
from topology import names, views
from topology.describe import describing
from topology.outcomes import Outcome
from topology.records import Document, Hop, UrlRequest, Waiter
from topology.service import at_work, backlogs
from topology.stores import open_stores
from topology.views.health import Health, health, status_of
from topology.views.lookup import Found, Look, step
from topology.views.owner import Owners, assigned
from topology.views.tweets import TWEETS_BYTES_MAX, messages_in
from topology.views.waiting import because, slot_of, spell
from topology.wiring import build


@pytest.fixture(scope="module")
def web():
    with SavedWeb() as saved:
        yield saved


@pytest.fixture(scope="module")
def client(web, tmp_path_factory):
    overrides = {"slow.test": {"rate_per_s": 0.1}}
    settings = settings_for(
        tmp_path_factory.mktemp("views"), web.port, domains=overrides, drain_s_max=0.5, wait_s_max=30
    )
    with serving(settings) as asked:
        yield asked


def error_of(said, status):
    """The sentence of an error; every error has one, and no more than a sentence and a fix."""
    assert said.status == status, said
    assert "Traceback" not in said.body.decode()
    return said.json["error"]


# -- /urls


def test_a_shared_url_is_known_with_its_hops_and_its_target(client, web):
    url = web.redirect("http://hop.test/1", "http://hop.test/2", "http://target.test/page")
    client.share(url)
    known = client.known(url)
    assert [hop["url"] for hop in known["hops"]] == ["http://hop.test/1", "http://hop.test/2"]
    assert (known["url"], known["canonical_url"]) == (url, "http://target.test/page")
    assert (known["outcome"], known["resolved"], known["source"], known["waiting"]) == ("fetched", True, "table", 0)
    assert known["metadata"]["title"] == "Page target.test/page"
    assert known["http"]["status"] == 200
    assert known["content"]["digest"].startswith("sha1:")
    assert known["fetched"] < known["fresh_until"]


def test_the_answer_says_what_the_announcement_said(client, web):
    url = web.redirect("http://said.test/1", "http://said.test/2")
    client.share(url, tweet_id="said")
    known = client.known(url)
    [announced] = until(lambda: (said := client.get("/tweets/said")).status == 200 and said.json["completed"])
    same = ("url", "outcome", "reason", "canonical_url", "resolved", "hops", "http", "metadata", "content")
    assert {name: known[name] for name in same} == {name: announced[name] for name in same}


def test_an_alias_that_was_never_fetched_is_answered_from_the_store(client):
    link = {"url": "https://t.co/Alias1", "expanded_url": "http://aliased.test/page", "indices": [0, 19]}
    client.post("/tweets", {"id": "9", "text": "https://t.co/Alias1", "entities": {"urls": [link]}})
    client.known("http://aliased.test/page")
    alias = until(lambda: (said := client.get("/urls", url="https://t.co/Alias1")).status == 200 and said.json)
    assert (alias["source"], alias["state"], alias["hops"]) == ("store", "known", [])
    assert alias["canonical_url"] == "http://aliased.test/page"
    assert alias["metadata"]["title"] == "Page aliased.test/page"
    assert alias["http"]["status"] == 200


def test_a_url_is_pending_while_it_is_fetched(client, web):
    url = web.say("http://late.test/", Answer(body=b"<title>Late</title>", delay_s=0.8))
    client.share(url)
    until(lambda: client.get("/urls", url=url).status == 200)
    pending = client.get("/urls", url=url).json
    assert (pending["state"], pending["waiting"], pending["metadata"]) == ("pending", 1, None)
    assert client.known(url)["metadata"]["title"] == "Late"


def test_redirects_in_a_circle_end_as_a_loop(client, web):
    url = web.redirect("http://circle.test/a", "http://circle.test/b", "http://circle.test/a")
    client.share(url)
    known = client.known(url)
    assert known["outcome"] == "redirect-loop"
    assert "circle" in known["reason"]
    assert not known["resolved"]


def test_fields_limit_the_metadata(client, web):
    url = web.say("http://fields.test/", page("Short"))
    client.share(url)
    client.known(url)
    assert client.get("/urls", url=url, fields="title").json["metadata"] == {"title": "Short"}
    batch = client.post("/urls", {"urls": [url], "fields": ["title", "icon"]}).json["urls"]
    assert batch[url]["metadata"] == {"title": "Short", "icon": None}


def test_nothing_known_is_a_404_that_says_unknown(client):
    said = client.get("/urls", url="http://never.test/")
    assert error_of(said, 404) == "Nothing is known of this URL."
    assert (said.json["state"], said.json["url"]) == ("unknown", "http://never.test/")


def test_a_batch_answers_each_url_and_null_for_the_unknown(client):
    urls = [f"http://batch{n}.test/" for n in range(5)]
    client.share(*urls)
    for url in urls:
        client.known(url)
    answers = client.post("/urls", {"urls": [*urls, "http://never.test/", "ftp://x/"]}).json["urls"]
    assert [answers[url]["metadata"]["title"] for url in urls] == [f"Page batch{n}.test/" for n in range(5)]
    assert answers["http://never.test/"] is None
    assert (answers["ftp://x/"]["outcome"], answers["ftp://x/"]["reason"][:14]) == ("invalid", "Its scheme is ")
    assert answers[urls[0]] == client.get("/urls", url=urls[0]).json


def test_a_full_batch_of_unknown_urls_is_answered(client):
    urls = [f"http://none{n}.test/" for n in range(300)]
    assert client.post("/urls", {"urls": urls}).json == {"urls": dict.fromkeys(urls)}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("", "The parameter url is missing."),
        ("?url=", "url: It is not an absolute URL"),
        ("?url=ftp%3A%2F%2Fx%2F", "url: Its scheme is ftp"),
        ("?url=http://a.test/?x=1%26y&z=2", "There is no parameter 'z'"),
        ("?url=http://a.test/&url=http://b.test/", "'url' is given twice"),
        ("?url=http://a.test/&fields=titel", "fields: there is no 'titel'"),
    ],
)
def test_bad_input_is_a_400_that_names_the_parameter(client, query, says):
    assert says in error_of(client.ask("GET", f"/urls{query}"), 400)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "not a batch"),
        (b"{", 400, "not a batch"),
        (b"\xff", 400, "not a batch"),
        (b'{"urls": "http://a.test/"}', 400, "`$.urls`"),
        (b'{"urls": [], "feilds": []}', 400, "feilds"),
        (json.dumps({"urls": ["http://a.test/"] * 301}).encode(), 413, "301 URLs are too many"),
        (b" " * ((4 << 20) + 1), 413, "larger than 4194304 bytes"),
    ],
)
def test_a_bad_batch_is_refused_with_the_reason(client, body, status, says):
    assert says in error_of(client.post("/urls", body), status)


@pytest.mark.parametrize(("method", "path"), [("PUT", "/urls"), ("GET", "/tweets"), ("POST", "/health")])
def test_the_wrong_method_is_a_405(client, method, path):
    assert method in error_of(client.ask(method, path), 405)


@pytest.mark.parametrize("path", ["/nothing", "/stats", "/table/", "/table/urls/", "/router/", "/graph", "/urls/x"])
def test_whatever_else_faust_would_show_is_not_there(client, path):
    assert error_of(client.get(path), 404)


def test_the_index_lists_the_views(client):
    assert "POST /tweets" in client.get("/").json


def test_head_is_get_without_a_body(client):
    said = client.ask("HEAD", "/health")
    assert (said.status, said.body) == (200, b"")


# -- /tweets


def test_lines_are_accepted_one_by_one_and_gzip_is_welcome(client):
    lines = b"".join(b'{"id": "l%d", "text": "", "urls": ["http://line%d.test/"]}\r\n' % (n, n) for n in range(3))
    said = client.post("/tweets", gzip.compress(lines), "application/x-ndjson", **{"Content-Encoding": "gzip"})
    assert (said.status, said.json) == (202, {"accepted": 3})
    for n in range(3):
        client.known(f"http://line{n}.test/")


def test_an_unreadable_line_is_accepted_and_kept_in_dead_letters(client):
    before = samples(client)["spiderduck_tweets_read_total", "unreadable"]
    assert client.post("/tweets", b"this is no tweet", "text/plain").json == {"accepted": 1}
    until(lambda: samples(client)["spiderduck_tweets_read_total", "unreadable"] == before + 1)


def test_what_was_accepted_is_in_the_log_and_outlives_the_worker(tmp_path, web):
    with serving(settings_for(tmp_path, web.port, drain_s_max=0, rate_per_s=0.5)) as first:
        urls = [f"http://durable.test/{n}" for n in range(3)]
        assert first.share(*urls).status == 202
    with serving(settings_for(tmp_path, web.port)) as second:
        for url in urls:
            assert second.known(url)["outcome"] == "fetched"


@pytest.mark.parametrize("body", [b"", b"  \n\r\n", b"[]"])
def test_an_empty_post_is_an_error(client, body):
    assert "empty" in error_of(client.post("/tweets", body), 400)


def test_an_over_large_post_is_refused(client):
    assert "larger than" in error_of(client.post("/tweets", b"x" * (TWEETS_BYTES_MAX + 1), "text/plain"), 413)


def test_a_small_post_that_unpacks_to_a_large_one_is_refused(client):
    bomb = gzip.compress(b"x" * (TWEETS_BYTES_MAX + 1))
    assert len(bomb) < 1 << 16
    assert "larger than" in error_of(client.post("/tweets", bomb, "text/plain", **{"Content-Encoding": "gzip"}), 413)


def test_a_body_that_is_no_gzip_is_a_400(client):
    said = client.post("/tweets", b"this is no gzip", "text/plain", **{"Content-Encoding": "gzip"})
    assert "cannot be read as gzip" in error_of(said, 400)
    assert said.headers["connection"] == "close"


def test_an_encoding_we_do_not_know_is_a_415(client):
    said = client.post("/tweets", b"{}", **{"Content-Encoding": "compress"})
    assert "'compress' is not understood" in error_of(said, 415)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://[", "https://127.0.0.1:1"])
def test_web_pages_of_other_sites_may_not_write(client, origin):
    assert "other sites" in error_of(client.post("/tweets", b"{}", "text/plain", Origin=origin), 403)


def test_our_own_pages_may_write_and_anybody_gets_no_cors(client):
    said = client.post("/tweets", {"id": "o", "text": ""}, Origin=client.url)
    assert said.status == 202
    assert not [name for name in said.headers if name.startswith("access-control")]


def test_a_tweet_nothing_was_answered_to_is_a_404(client):
    assert "tweet 404" in error_of(client.get("/tweets/404"), 404)
    assert "64 characters" in error_of(client.get(f"/tweets/{'9' * 65}"), 400)


TWO = b'{"id": 1}\n{"id": 2}'
PRETTY = b'{\n"id": 1\n}'


@pytest.mark.parametrize(
    ("body", "kind", "messages"),
    [
        (PRETTY, "application/json", [PRETTY]),
        (PRETTY, "application/x-www-form-urlencoded", [PRETTY]),
        (PRETTY, "text/plain", [b"{", b'"id": 1', b"}"]),
        (TWO, "application/json", [TWO]),  # one message, and unreadable: it says it is one document
        (TWO, "application/x-ndjson", TWO.split(b"\n")),
        (TWO, "application/octet-stream", TWO.split(b"\n")),
        (b'[{"id": 1}, {"id": 2}]', "application/json", [b'{"id": 1}', b'{"id": 2}']),
        (b'[{"id": 1}', "application/json", [b'[{"id": 1}']),
        (b"\xff\n\xfe", "application/octet-stream", [b"\xff", b"\xfe"]),
    ],
)
def test_a_post_is_cut_by_what_it_says_it_is(body, kind, messages):
    assert messages_in(body, kind) == messages


@given(st.binary(max_size=200), st.sampled_from(["application/json", "text/plain", "application/x-ndjson", "x/y"]))
def test_no_message_is_empty_whatever_is_posted(body, kind):
    assert all(message.strip() for message in messages_in(body, kind))


# -- /domains


def test_a_domain_says_its_lane_its_robots_and_its_overrides(client, web):
    web.robots("slow.test", "User-agent: *\nDisallow: /secret")
    client.share("http://www.slow.test/1", "http://slow.test/2", "http://slow.test/3", "http://slow.test/4")
    slow = until(lambda: (said := client.get("/domains/www.slow.test").json)["robots"] and said["lane"] and said)
    assert (slow["domain"], slow["rate_per_s"], slow["settings"]) == ("slow.test", 0.1, {"rate_per_s": 0.1})
    assert slow["lane"]["queued"] + slow["lane"]["under_way"] >= 3
    assert slow["reserved_until"] is not None
    assert {(row["origin"], row["status"]) for row in slow["robots"]} <= {
        ("http://slow.test", 200),
        ("http://www.slow.test", 404),
    }
    why = client.get("/domains/slow.test", url="http://slow.test/new").json["why"]
    assert why["ahead"] >= 2
    assert "ahead" in why["sentence"]


def test_a_domain_nobody_asked_for_is_answered_too(client):
    fresh = client.get("/domains/fresh.test", url="http://fresh.test/").json
    assert (fresh["lane"], fresh["robots"], fresh["reserved_until"]) == (None, [], None)
    assert fresh["why"]["sentence"] == "Slot in 0.0 s, 0 ahead, robots.txt has to be asked for first."


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/domains/a%20b", "'a b' is not the name of a host"),
        ("/domains/a.test:8080", "is not the name of a host"),
        ("/domains/a.test?url=http://b.test/", "url: it belongs to b.test, not to a.test"),
        ("/domains/a.test?url=x", "url: It is not an absolute URL"),
        ("/domains/a.test?uri=x", "There is no parameter 'uri'"),
    ],
)
def test_a_bad_domain_is_a_400(client, path, says):
    assert says in error_of(client.ask("GET", path), 400)


NOW_S = 1000.0
SETTINGS = SimpleNamespace(queue_urls_max=100, wait_s_max=30.0)
ROBOTS = Row(200, b"", NOW_S - 7200, NOW_S + 7200)


def lane(queued, next_s=NOW_S + 0.2, interval_s=0.1):
    found = Lane("a.test", interval_s, next_s, next_s, 0.0)
    found.queue.extend([(NOW_S, None)] * queued)
    return found


@pytest.mark.parametrize(
    ("look", "queue", "row", "allowed", "sentence"),
    [
        (None, lane(30), ROBOTS, True, "Slot in 3.2 s, 30 ahead, robots.txt cached 2 h ago."),
        (None, lane(0), ROBOTS, False, "Slot in 0.2 s, 0 ahead, robots.txt cached 2 h ago, which forbids it."),
        (None, None, None, None, "Slot in 5.0 s, 0 ahead, robots.txt has to be asked for first."),
        (None, lane(100), None, None, "Rejected: the queue is full, 100 ahead, robots.txt has to be asked for first."),
        (
            None,
            lane(9, interval_s=60),
            ROBOTS,
            True,
            "Deferred: the next free slot is 9 min away, more than 30 s, 9 ahead, robots.txt cached 2 h ago.",
        ),
        (
            Look(None, pending=True, waiting=3, fresh_until_ms=0),
            lane(0),
            ROBOTS,
            True,
            "A fetch of it is on its way and will answer this request too; 3 wait for it.",
        ),
        (
            Look(Document("", "", "", "page", Outcome.GONE), pending=False, waiting=0, fresh_until_ms=1_600_000),
            lane(0),
            ROBOTS,
            True,
            "It would be answered from memory, as gone; no fetch for another 10 min.",
        ),
    ],
)
def test_why_a_url_would_wait_is_a_sentence(look, queue, row, allowed, sentence):
    slot = slot_of(queue, NOW_S + 5, NOW_S)
    assert because(look, slot, row, allowed=allowed, settings=SETTINGS, now_s=NOW_S) == sentence


def test_a_duration_is_said_in_one_unit():
    assert [spell(s) for s in (0, 59, 60, 3600, 86400 * 3)] == ["0 s", "59 s", "1 min", "1 h", "3 d"]


# -- following redirects: the pure part


def test_following_stops_at_the_bound_and_says_so():
    hops = tuple(Hop(f"http://h.test/{n}", 301, 1) for n in range(3))
    at = UrlRequest("http://h.test/3", "h.test", Waiter(0, 0, hops=hops))
    redirect = Document(at.url, "h.test", "f", "page", Outcome.REDIRECTED, redirect_to="http://h.test/4")
    look = Look(redirect, pending=False, waiting=0, fresh_until_ms=0)
    after = step(at, look, 4)
    assert isinstance(after, UrlRequest)
    assert (after.url, len(after.waiter.hops)) == ("http://h.test/4", 4)
    ended = step(at, look, 3)
    assert isinstance(ended, Found)
    assert ended.document is not None
    assert ended.document.outcome is Outcome.TOO_MANY_REDIRECTS


# -- /health and /metrics


def samples(client):
    """The samples of /metrics by name and first label, after the official parser has read them."""
    said = client.get("/metrics")
    assert said.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(said.body.decode())
    found = {(s.name, next(iter(s.labels.values()), "")): s.value for family in families for s in family.samples}
    return dict.fromkeys([("spiderduck_tweets_read_total", "unreadable")], 0.0) | found


def test_health_is_ok_when_all_stages_are(client):
    found = client.get("/health").json
    assert (found["status"], found["trouble"]) == ("ok", [])
    assert set(found["stages"].values()) == {"ok"}
    assert set(found["backlog"]) >= {"tweets", "url-requests", "completions"}
    assert client.get("/health", ready="1").status == client.get("/health", live="1").status == 200
    assert "ready = 'yes' is impossible" in error_of(client.get("/health", ready="yes"), 400)


def test_metrics_count_what_happened_and_gauge_what_is(client):
    client.share("http://metered.test/")
    client.known("http://metered.test/")
    found = samples(client)
    assert found["spiderduck_shares_total", "ok"] >= 1
    assert found["spiderduck_started", ""] == 1
    assert found["spiderduck_table_entries", "urls"] >= 1
    assert found["spiderduck_lanes", ""] >= 1
    assert found["process_resident_memory_bytes", ""] > 1 << 20
    assert found["process_cpu_seconds_total", ""] > 0
    assert {label for name, label in found if name == "spiderduck_backlog"} >= {"tweets", "pages"}
    assert {label for name, label in found if name == "spiderduck_lane_requests"} == {"waiting", "under_way"}


@pytest.mark.parametrize(
    ("status", "plain", "ready", "live"),
    [("ok", 200, 200, 200), ("waiting", 200, 503, 200), ("starting", 503, 503, 200)],
)
def test_the_three_questions_of_health(status, plain, ready, live):
    found = Health(status, {}, {}, [])
    answers = [status_of(found, ready=r, live=alive) for r, alive in ((False, False), (True, False), (False, True))]
    assert answers == [plain, ready, live]


def described(tmp_path):
    return describing(settings_for(tmp_path, 1))


def test_a_worker_that_has_not_started_is_starting(tmp_path):
    found = health(described(tmp_path), dict)
    assert (found.status, set(found.stages.values())) == ("starting", {"starting"})


def test_a_store_that_is_down_makes_a_worker_wait_and_says_why(tmp_path):
    worker = described(tmp_path)
    worker.app.tables.recovery.completed.set()
    worker.stages["complete"].batches.trouble = "the disk is full"
    found = health(worker, lambda: {"tweets": 3})
    assert (found.status, found.stages["complete"], found.stages["fetch"]) == ("waiting", "waiting", "ok")
    assert found.trouble == ["complete waits for a store: the disk is full"]
    assert found.backlog == {"tweets": 3}


# -- who answers: two workers, each owning some domains


@asynccontextmanager
async def owning(data, web, owner_url, metadata=True):
    """Run a worker that believes `owner_url` about who owns what."""
    settings = settings_for(data, web.port)
    async with open_stores(settings) as stores:
        worker = build(settings, stores)
        views.attach(
            worker,
            metadata=stores.metadata if metadata is True else metadata,
            backlogs=lambda: backlogs(worker),
            owner_url=lambda _, domain: owner_url(domain, URL(f"http://127.0.0.1:{settings.web_port}")),
        )
        async with at_work(worker, web=True):
            yield f"http://127.0.0.1:{settings.web_port}"


async def ask(session, method, url, **more):
    async with session.request(method, url, **more) as answer:
        return answer.status, await answer.json()


async def known(session, worker, url):
    for _ in range(500):
        status, found = await ask(session, "GET", f"{worker}/urls", params={"url": url})
        if status == 200 and found["state"] == "known":
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"{url} never came")


def test_a_redirect_is_followed_to_the_owner_of_its_target(tmp_path, web):
    """Both workers fetched the target; only its owner's version counts, whoever is asked, one URL or many."""
    web.redirect("http://mine.test/1", "http://theirs.test/1")
    web.say("http://theirs.test/1", page("theirs"), page("mine, out of date"))

    async def story():
        others = []
        async with (
            aiohttp.ClientSession() as session,
            owning(tmp_path / "theirs", web, lambda _, here: here) as theirs,
            owning(tmp_path / "mine", web, lambda d, here: here if d == "mine.test" else others[0]) as mine,
        ):
            others.append(URL(theirs))
            await ask(session, "POST", f"{theirs}/tweets", json={"id": 1, "text": "", "urls": ["http://theirs.test/1"]})
            await known(session, theirs, "http://theirs.test/1")
            await ask(session, "POST", f"{mine}/tweets", json={"id": 2, "text": "", "urls": ["http://mine.test/1"]})
            found = await known(session, mine, "http://mine.test/1")
            batch = {"urls": ["http://mine.test/1", "http://theirs.test/1", "http://theirs.test/2"]}
            _, many = await ask(session, "POST", f"{mine}/urls", json=batch)
            _, domain = await ask(session, "GET", f"{mine}/domains/theirs.test?url=http://theirs.test/1")
            return found, many["urls"], domain

    found, many, domain = asyncio.run(story())
    assert (found["metadata"]["title"], len(found["hops"])) == ("theirs", 1)
    assert many["http://mine.test/1"] == found
    assert many["http://theirs.test/1"]["metadata"]["title"] == "theirs"
    assert many["http://theirs.test/2"] is None
    assert domain["why"]["sentence"].startswith("It would be answered from memory, as fetched")


def test_faust_knows_the_owner_by_the_partition_the_messages_of_the_domain_are_in(tmp_path, web):
    async def story():
        settings = settings_for(tmp_path, web.port, partitions=7)
        async with open_stores(settings) as stores, at_work(build(settings, stores), web=False) as worker:
            here, owner_url = URL(f"http://127.0.0.1:{settings.web_port}"), assigned(worker)
            owners = Owners(worker, owner_url)
            for domain in ("a.test", "b.test", "xn--bcher-kva.test"):
                assert {owner_url(table, domain) for table in names.TABLES} == {here}
                assert owners.elsewhere(names.URLS, domain, routed=False) is None
                sent = await worker.app.producer.send_and_wait(names.DEFERRED, domain.encode(), b"", None, None, None)
                assert owners.partition(domain) == sent.partition

    asyncio.run(story())


class Down:
    """A metadata store that does not answer."""

    async def get_many(self, *_):
        raise StoreUnavailable("the disk is full")

    async def by_tweet(self, *_):
        raise StoreUnavailable("the disk is full")


def test_what_cannot_be_answered_now_is_a_503_with_the_reason(tmp_path, web):
    """The owner is unknown, dead, or thinks it is not the owner; the store is down; there is no store."""
    owners = {"lost.test": None, "dead.test": URL("http://127.0.0.1:1")}

    async def story():
        async with (
            aiohttp.ClientSession() as session,
            owning(tmp_path / "one", web, owners.get, Down()) as one,
            owning(tmp_path / "two", web, lambda *_: URL("http://127.0.0.1:2"), None) as two,
        ):
            owners["moved.test"] = URL(two)
            paths = [f"/urls?url=http://{name}.test/" for name in ("lost", "dead", "moved", "mine")]
            paths += ["/domains/lost.test", "/domains/dead.test", "/domains/moved.test", "/tweets/1"]
            said = [await ask(session, "GET", one + path) for path in paths]
            return [*said, await ask(session, "GET", f"{two}/tweets/1")]

    said = asyncio.run(story())
    assert {status for status, _ in said} == {503}
    expected = ["not known yet which worker owns lost.test", "does not answer", "answered 503", "the disk is full"]
    expected += ["not known yet", "does not answer", "owner of moved.test is changing", "the disk is full"]
    for (_, found), words in zip(said, [*expected, "no metadata store"], strict=True):
        assert words in found["error"]


def test_nothing_is_answered_from_tables_before_they_are_read(tmp_path):
    async def story():
        worker = described(tmp_path)
        views.attach(worker, metadata=None, backlogs=dict)
        web_app = worker.app.web.web_app
        runner = aiohttp.web.AppRunner(web_app)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", worker.settings.web_port)
        await site.start()
        base = f"http://127.0.0.1:{worker.settings.web_port}"
        try:
            async with aiohttp.ClientSession() as session:
                return [
                    await ask(session, "GET", f"{base}/urls?url=http://a.test/"),
                    await ask(session, "POST", f"{base}/tweets", json={}),
                    await ask(session, "GET", f"{base}/domains/a.test"),
                    await ask(session, "GET", f"{base}/health"),
                ]
        finally:
            await runner.cleanup()

    said = asyncio.run(story())
    assert {status for status, _ in said} == {503}
    assert all("starting" in found.get("error", found.get("status")) for _, found in said)


def test_a_fault_of_ours_is_a_sentence_and_no_trace(client, monkeypatch, caplog):
    monkeypatch.setattr("topology.views.urls.unknown", lambda _: 1 / 0)
    assert error_of(client.get("/urls", url="http://never.test/"), 500) == "A fault of SpiderDuck; its log says more."
    assert "ZeroDivisionError" in caplog.text


def test_a_line_that_is_no_http_does_not_hurt(client):
    place = URL(client.url)
    with http.client.socket.create_connection((place.host, place.port)) as link:
        link.sendall(b"\x16\x03\x01\x00\xa5 hello\r\n\r\n")
        assert b"Traceback" not in link.recv(4096)
    assert client.get("/health").status == 200
