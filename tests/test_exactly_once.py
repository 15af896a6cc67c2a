"""Without faults every accepted request ends exactly once, whatever is shared, repeated, redirected or missing."""

import asyncio
import collections
import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.archiving.archive import Archive, ArchiveSettings
from agents.clients.content import open_content
from agents.clients.http import Reply
from agents.clients.metadata_sqlite import SqliteMetadata
from agents.clients.parser_process import answer_to
from topology import names
from topology.embedded_log import Partition
from topology.service import at_work, backlog
from topology.settings import Settings
from topology.wiring import Stores, build

PARTITIONS = 3
# What a URL is stands in its path: pages, a chain, a loop, a refresh, a missing page, a failing one, no URL at all.
URLS = (
    *(f"http://site{site}.test/page/{page}" for site in range(3) for page in range(3)),
    "http://short.test/to/site0.test/page/0",
    "http://short.test/to/short.test/to/site1.test/page/1",
    "http://loop.test/loop",
    "http://site2.test/refresh",
    "http://site1.test/gone",
    "http://site0.test/broken",
    "http://[not-a-url/",
)

tweets = st.lists(st.lists(st.sampled_from(URLS), min_size=1, max_size=4), min_size=1, max_size=25)


class Web:
    """Answers by the path; the second request of a failing page succeeds."""

    def __init__(self):
        self.asked = collections.Counter()

    async def get(self, ask):
        await ask.before_send()
        self.asked[ask.url] += 1
        status, headers, body = self.say(ask.url)
        return Reply(status, "", tuple(headers.items()), (("Host", "x"),), body, False, "93.184.216.34", 0.0, 0.0)

    def say(self, url):
        path = "/" + url.split("/", 3)[3]
        html = {"Content-Type": "text/html"}
        if path.startswith("/to/"):
            return 302, {"Location": "http://" + path.removeprefix("/to/")}, b""
        if path.startswith("/page/"):
            return 200, html, f"<title>{url}</title>".encode()
        if path == "/loop":
            return 301, {"Location": url}, b""
        if path == "/refresh":
            return 200, html, b"<meta http-equiv=refresh content='0; url=/page/2'>"
        if path == "/broken" and self.asked[url] > 1:
            return 200, html, b"<title>better</title>"
        return (503 if path == "/broken" else 404), {}, b""


class Parsers:
    async def parse(self, job):
        return answer_to(job, None)


async def announced(folder, shared):
    flags = {"data": str(folder), "rate_per_s": 10_000, "partitions": PARTITIONS, "retry_s": 0.01, "images": False}
    web, metadata = Web(), await SqliteMetadata.open(folder / "metadata.sqlite")
    archive = await Archive.open(
        open_content((folder / "content").as_uri()), folder / "spool", ArchiveSettings(writer="once")
    )
    worker = build(
        Settings.load(flags=flags, environ={}), Stores(web, parsers=Parsers(), metadata=metadata, archive=archive)
    )
    async with at_work(worker, web=False):
        for number, urls in enumerate(shared):
            tweet = {"id": str(number), "urls": urls}
            await worker.outlets[names.TWEETS].raw(str(number), json.dumps(tweet).encode())
        while await asyncio.sleep(0.005, backlog(worker)):
            pass
        log = worker.app.transport.log
        records = [r for n in range(PARTITIONS) for r in log.read(Partition(names.URL_COMPLETED, n), 0)]
    await archive.close()
    await metadata.close()
    return [json.loads(record.value) for record in records], web.asked


@settings(max_examples=15)
@given(tweets)
def test_every_accepted_request_ends_exactly_once(shared):
    with tempfile.TemporaryDirectory() as folder:
        events, asked = asyncio.run(announced(Path(folder), shared))
    wanted = collections.Counter((str(number), url) for number, urls in enumerate(shared) for url in set(urls))
    assert collections.Counter((event["tweet_id"], event["url"]) for event in events) == wanted
    # One fetch for all: nothing is asked twice inside its window, but what failed and was tried again.
    assert all(times == 1 for url, times in asked.items() if not url.endswith("/broken"))
    expected = {"/gone": "gone", "/loop": "redirect-loop", "not-a-url/": "invalid"}
    for event in events:
        ending = next((word for end, word in expected.items() if event["url"].endswith(end)), None)
        assert event["outcome"] == ending or (ending is None and event["outcome"] in {"fetched", "cached"})
