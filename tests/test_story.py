"""The story of one tweet, from `tweets` to `url-completed`. Start reading here.

Every stage is real, and so are the log, the tables and the stores (in a temporary directory). Only the web is a
script, the page is parsed in this process, and nobody waits: the domains may be asked as fast as we like.
"""

import asyncio
import json

from agents.archiving.archive import Archive, ArchiveSettings
from agents.archiving.reading import read_body
from agents.clients.content import open_content
from agents.clients.http import Reply
from agents.clients.metadata import with_content
from agents.clients.metadata_sqlite import SqliteMetadata
from agents.clients.parser_process import answer_to
from tests.bench.pages import png
from topology import names
from topology.embedded_log import Partition
from topology.records import Placed
from topology.service import at_work, backlog
from topology.settings import Settings
from topology.wiring import Stores, build

# What was shared: a tweet as Twitter's API v2 gives it. Its text has the t.co form, its entities say what that is.
TWEET = {
    "id": "1380242611781386245",
    "created_at": "2021-04-08T19:34:16.000Z",
    "text": "Quarterback news https://t.co/Ge4jE9OPNi",
    "entities": {"urls": [{"url": "https://t.co/Ge4jE9OPNi", "expanded_url": "https://es.test/2OC3GLO"}]},
}

# What the web says: the link is short; the page names itself, its picture, and a canonical URL; robots.txt is absent.
PAGE = b"""<!doctype html><html lang="en"><head>
<title>Signed - Sports</title>
<meta property="og:title" content="Quarterback signed">
<meta property="og:image" content="/signed.png">
<link rel="canonical" href="https://www.sports.test/story/31215155">
</head><body><p>He signed.</p></body></html>"""
WEB = {
    "https://es.test/2OC3GLO": (301, {"Location": "https://www.sports.test/story/31215155?utm_source=t"}, b""),
    "https://www.sports.test/story/31215155?utm_source=t": (200, {"Content-Type": "text/html"}, PAGE),
    "https://www.sports.test/signed.png": (200, {"Content-Type": "image/png"}, png(1296, 601)),
}


class ScriptedWeb:
    """Answers from `WEB`, 404 to everything else, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    async def get(self, ask):
        await ask.before_send()
        self.asked.append(ask.url)
        status, headers, body = WEB.get(ask.url, (404, {}, b""))
        sent = (("Host", ask.url.split("/")[2]), ("User-Agent", "SpiderDuck"))
        return Reply(status, "", tuple(headers.items()), sent, body, False, "93.184.216.34", 0.0, 0.0)


class ParsersInHere:
    """Parses without a process of its own."""

    async def parse(self, job):
        return answer_to(job, None)


async def crawl(folder):
    """Produce one tweet, wait until nothing is left to do, and return what came of it."""
    settings = Settings.load(flags={"data": str(folder), "rate_per_s": 1000, "partitions": 2})
    web, metadata = ScriptedWeb(), await SqliteMetadata.open(folder / "metadata.sqlite")
    content = open_content((folder / "content").as_uri())
    archive = await Archive.open(content, folder / "spool", ArchiveSettings(writer="story"))
    worker = build(settings, Stores(web, parsers=ParsersInHere(), metadata=metadata, archive=archive))
    async with at_work(worker, web=False):
        await worker.outlets[names.TWEETS].raw(TWEET["id"], json.dumps(TWEET).encode())
        while await asyncio.sleep(0.01, backlog(worker)):
            pass
        log = worker.app.transport.log
        announced = [r for n in range(2) for r in log.read(Partition(names.URL_COMPLETED, n), 0)]
    await archive.close()
    record = with_content((await metadata.get_many(["https://t.co/Ge4jE9OPNi"]))["https://t.co/Ge4jE9OPNi"])
    page = await read_body(content, Placed(**record.fields["content"]), body_bytes_max=1 << 20)
    shares = await metadata.shares(record.canonical_url)
    await metadata.close()
    return web.asked, [json.loads(r.value) for r in announced], record, page, shares


def test_one_tweet_end_to_end(tmp_path):
    asked, announced, record, page, shares = asyncio.run(crawl(tmp_path))

    # The short link's site was asked for its robots.txt, then for the link; then the target's site, likewise.
    assert asked[:4] == [
        "https://es.test/robots.txt",
        "https://es.test/2OC3GLO",
        "https://www.sports.test/robots.txt",
        "https://www.sports.test/story/31215155?utm_source=t",
    ]
    # The page's picture was asked for afterwards. robots.txt was not asked again.
    assert asked[4:] == ["https://www.sports.test/signed.png"]

    # Exactly one announcement, and it says everything a listener needs.
    [event] = announced
    assert event["tweet_id"] == TWEET["id"]
    assert event["url"] == "https://es.test/2OC3GLO"
    assert event["outcome"] == "fetched"
    assert event["resolved"] is True
    assert event["canonical_url"] == "https://www.sports.test/story/31215155"
    assert [(hop["url"], hop["status"]) for hop in event["hops"]] == [("https://es.test/2OC3GLO", 301)]
    assert event["metadata"]["title"] == "Quarterback signed"
    assert event["metadata"]["provenance"]["title"] == "og:title"
    assert event["metadata"]["image"]["url"] == "https://www.sports.test/signed.png"
    assert event["metadata"]["language"] == "en"
    assert event["times"]["tweeted"] == TWEET["created_at"]

    # The record is found through the t.co form; it has the picture's measured size and where the page is archived.
    assert record.canonical_url == "https://www.sports.test/story/31215155"
    assert record.fields["title"] == "Quarterback signed"
    assert record.fields["image_measured"]["width"] == 1296
    assert page.body == PAGE
    assert page.url == "https://www.sports.test/story/31215155?utm_source=t"

    # One share of it is counted.
    assert shares.total == 1
