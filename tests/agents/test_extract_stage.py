"""Extract: one request per (tweet, URL), an ending for what is none, a dead letter for what cannot be read."""

import json

from agents.extract import Extractor, requests_in, source_of
from agents.extracting.tweets import read_tweets
from tests.doubles import EPOCH_S, FakeClock, Recorder, event, simulated
from topology.events import Events
from topology.outcomes import Outcome
from topology.records import Completion, UrlRequest

TWEET = {
    "id": "7",
    "created_at": "2021-04-08T19:34:16.000Z",
    "text": "https://t.co/a https://t.co/b https://t.co/c",
    "entities": {
        "urls": [
            {"url": "https://t.co/a", "expanded_url": "https://News.test/A#x"},
            {"url": "https://t.co/b", "expanded_url": "ftp://files.test/"},
            {"url": "https://t.co/c", "expanded_url": "https://news.test/A"},
        ]
    },
}


class Desk:
    def __init__(self):
        self.events, self.requests, self.ended, self.letters = Events(), Recorder(), Recorder(), Recorder()
        self.extractor = Extractor(
            self.events, FakeClock(), to_requests=self.requests, to_complete=self.ended, bury=self._bury
        )

    async def _bury(self, raw, source, reason):
        return await self.letters.raw(source, raw + b"|" + reason.encode())

    async def read(self, raw, **message):
        return await self.extractor.on_message(event(raw, topic="tweets", **message))


def test_each_url_of_a_tweet_becomes_a_request_or_an_ending():
    async def story():
        desk = Desk()
        acted = await desk.read(json.dumps(TWEET).encode(), timestamp=EPOCH_S - 2)
        assert len(acted.sent) == len(desk.requests.sent) + len(desk.ended.sent)
        for key, request in desk.requests.sent:
            assert isinstance(request, UrlRequest)
            assert key == request.domain == "news.test"
            assert request.url == "https://news.test/A"
            waiter = request.waiter
            assert (waiter.share.tweet_id, waiter.share.tweeted) == ("7", TWEET["created_at"])
            assert (waiter.read_ms, waiter.attached_ms, waiter.queued_ms) == (int(EPOCH_S * 1000),) * 2 + (2000,)
        assert desk.requests.sent[0][1].waiter.share.url == "https://News.test/A#x"  # as shared
        ((_, ended),) = desk.ended.sent
        assert isinstance(ended, Completion)
        assert ended.document.outcome is Outcome.INVALID
        assert ended.document.reason
        assert ended.waiters[0].share.url == "ftp://files.test/"
        assert desk.events.counts["shares"] == {"ok": len(desk.requests.sent), "invalid": 1}
        assert desk.events.counts["tweets_read"]["ok"] == 1

    simulated(story())


def test_what_cannot_be_read_is_buried_verbatim_with_its_place():
    async def story():
        desk = Desk()
        acted = await desk.read(b"{no tweet", partition=3, offset=9)
        ((source, letter),) = desk.letters.sent
        assert source == "tweets/3/9"
        assert letter.startswith(b"{no tweet|")
        assert len(acted.sent) == 1
        await desk.read(b"\xff\xfe", key=b"line:some file.jsonl:17")
        assert desk.letters.sent[-1][0] == "some file.jsonl:17"
        assert desk.events.counts["tweets_read"]["unreadable"] == 2

    simulated(story())


def test_a_tweet_without_urls_asks_for_nothing():
    async def story():
        desk = Desk()
        acted = await desk.read(b'{"id": "1", "text": "nothing here"}')
        assert (acted.sent, desk.letters.sent, desk.events.counts["tweets_read"]["ok"]) == ((), [], 1)

    simulated(story())


def test_reading_again_sends_the_same_again():
    """A replay is the same requests: the urls table knows them."""

    def waiters(now_ms):
        (tweet,) = read_tweets(json.dumps(TWEET).encode()).tweets
        found = requests_in(tweet, now_ms=now_ms, queued_ms=0)
        return [one.waiter.share if isinstance(one, UrlRequest) else one.waiters[0].share for one in found]

    assert waiters(1) == waiters(2)
    assert len(waiters(1)) == len(set(waiters(1)))


def test_a_clock_that_goes_backwards_makes_no_negative_wait():
    async def story():
        desk = Desk()
        await desk.read(json.dumps(TWEET).encode(), timestamp=EPOCH_S + 100)
        assert desk.requests.last.waiter.queued_ms == 0

    simulated(story())


def test_a_source_is_a_line_of_a_file_or_a_place_in_the_topic():
    assert source_of(b"line:a:b.jsonl:3", "tweets/0/1") == "a:b.jsonl:3"
    assert source_of(b"12345", "tweets/0/1") == "tweets/0/1"
    assert source_of(None, "tweets/0/1") == "tweets/0/1"
    assert source_of(b"line:\xff:1", "p") == "\ufffd:1"
