"""tweets -> url-requests, dead-letters. Owns nothing. Key of what leaves: registered domain.

The spout: one request per (tweet, URL). What cannot be read goes to `dead-letters` verbatim; a URL that cannot be
asked for is a request that ends at once, as `invalid`.
"""

from asyncio import Future
from collections.abc import Callable, Iterator
from typing import Any

from faust.types import AppT, EventT, StreamT, TopicT

from agents.extracting.tweets import SharedUrl, Tweet, read_tweets
from agents.pump import Acted, Bury, Pump
from topology import names
from topology.events import Events
from topology.outcomes import Outcome
from topology.outlets import Outlet
from topology.records import Completion, Document, Share, UrlRequest, Waiter
from topology.urls import Address


def requests_in(tweet: Tweet, *, now_ms: int, queued_ms: int) -> Iterator[UrlRequest | Completion]:
    """Return a request for each URL of a tweet, or its ending when the URL cannot be asked for."""
    for shared in tweet.urls:
        share = Share(tweet.id, shared.url, shared.aliases, tweet.created_at)
        waiter = Waiter(now_ms, now_ms, share, queued_ms=queued_ms)
        if isinstance(shared.address, Address):
            yield UrlRequest(shared.address.href, shared.address.domain, waiter)
        else:
            yield Completion(_invalid(shared, shared.address.reason), (waiter,))


def source_of(key: bytes | None, place: str) -> str:
    """Say where a message came from: a line of a file says so in its key, anything else stands in the topic."""
    text = (key or b"").decode("utf-8", "replace")
    return text.removeprefix(names.LINE_KEY_PREFIX) if text.startswith(names.LINE_KEY_PREFIX) else place


def _invalid(shared: SharedUrl, reason: str) -> Document:
    return Document(shared.url, "", "", "page", Outcome.INVALID, reason)


class Extractor:
    """Reads tweets and sends their URLs on."""

    def __init__(
        self,
        events: Events,
        clock: Callable[[], float],
        *,
        to_requests: Outlet,
        to_complete: Outlet,
        bury: Bury,
    ) -> None:
        self._events = events
        self._clock = clock
        self._to_requests = to_requests
        self._to_complete = to_complete
        self._bury = bury

    async def on_message(self, event: EventT[bytes]) -> Acted:
        """Read one message: a tweet, or a page of them."""
        message = event.message
        now_ms = int(self._clock() * 1000)
        queued_ms = max(0, now_ms - int(message.timestamp * 1000))
        read = read_tweets(event.value)
        source = source_of(message.key, f"{names.TWEETS}/{message.partition}/{message.offset}")
        sent: list[Future[Any]] = [
            await self._bury(problem.fragment, source, problem.reason) for problem in read.problems
        ]
        for tweet in read.tweets:
            requests = requests_in(tweet, now_ms=now_ms, queued_ms=queued_ms)
            sent.extend([await self._send(request) for request in requests])
        self._events.count("tweets_read", "ok", len(read.tweets))
        self._events.count("tweets_read", "unreadable", len(read.problems))
        return Acted(tuple(sent))

    async def _send(self, request: UrlRequest | Completion) -> "Future[Any]":
        if isinstance(request, UrlRequest):
            self._events.count("shares", "ok")
            return await self._to_requests(request.domain, request)
        self._events.count("shares", "invalid")
        return await self._to_complete(request.document.domain, request)


def attach(app: AppT, *, tweets: TopicT, extractor: Extractor, pump: Callable[..., Pump]) -> None:
    """Attach the spout."""

    @app.agent(tweets, name=names.EXTRACT)
    async def extract(stream: StreamT[bytes]) -> None:
        """Find the URLs of each tweet and hand each to the owner of its domain."""
        await pump(names.EXTRACT).run(stream, extractor.on_message)
