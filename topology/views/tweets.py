"""`POST /tweets` puts tweets into the log; `GET /tweets/{id}` says what was answered to the URLs of one.

A post is answered when every message of it is durable in the log (202). Nothing is read then: what turns out to be
unreadable is in `dead-letters`, verbatim. When the log fails half way the answer is 503 and says how many messages
were accepted; posting all of them again is safe, because the same (tweet, URL) is one share.
"""

import asyncio
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web
from faust.types import AppT
from faust.web import View

from agents.clients.metadata import MetadataStore
from topology import names
from topology.outlets import Outlet
from topology.views.http import parameters, problem, read_body, reply, unavailable
from topology.views.owner import started
from topology.wiring import Worker

TWEETS_BYTES_MAX: Final = 16 << 20
"""Size of one post, decompressed."""
_TWEET_ID_CHARS_MAX: Final = 64  # as in tweets.schema.json
_SLICE: Final = 256  # messages sent before the log is waited for

_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_anything: Final = msgspec.json.Decoder(msgspec.Raw).decode


def messages_in(body: bytes, content_type: str) -> list[bytes]:
    """Cut a post into messages: one JSON document, the elements of an array, or lines.

    `application/json` is never cut at line ends, `application/x-ndjson` and text always; a body of any other type
    (curl says `application/x-www-form-urlencoded`) is one document if it can be read as one.
    """
    text = body.strip()
    kind = content_type.lower()
    if kind in {"application/x-ndjson", "application/jsonl"} or kind.startswith("text/"):
        return _lines(text)
    try:
        if text.startswith(b"["):
            return [bytes(element) for element in _array(text)]
        if kind != "application/json":
            _anything(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _lines(text) if kind != "application/json" else [text]
    return [text] if text else []


def _lines(text: bytes) -> list[bytes]:
    return [line for raw in text.split(b"\n") if (line := raw.strip())]


def attach(worker: Worker, metadata: MetadataStore | None) -> None:
    """Register the views of tweets."""
    app: AppT = worker.app

    @app.page("/tweets", name="tweets")
    class Tweets(View):
        """Tweets in."""

        async def post(self, request: web.Request) -> web.Response:
            """Accept tweets; answered when they are durable."""
            parameters(request)
            if not started(worker):
                raise unavailable("This worker is starting: its log is not open yet.")
            messages = messages_in(await read_body(request, TWEETS_BYTES_MAX), request.content_type)
            if not messages:
                raise problem(400, "The body is empty.", "Send a tweet as JSON, or one tweet per line.")
            return await _accept(worker.outlets[names.TWEETS], messages)

    @app.page("/tweets/{tweet_id}", name="tweet")
    class Tweet(View):
        """What was answered to a tweet."""

        async def get(self, request: web.Request, tweet_id: str) -> web.Response:
            """Return the `url-completed` of each of its URLs."""
            parameters(request)
            if metadata is None:
                raise unavailable("This worker has no metadata store: it runs neither archive nor complete.")
            if len(tweet_id) > _TWEET_ID_CHARS_MAX:
                raise problem(400, f"A tweet id has at most {_TWEET_ID_CHARS_MAX} characters.")
            answers = await metadata.by_tweet(tweet_id)
            if not answers:
                fix = "Its URLs may still be on their way, or it has none."
                raise problem(HTTPStatus.NOT_FOUND, f"Nothing was answered to tweet {tweet_id} yet.", fix)
            return reply({"tweet_id": tweet_id, "completed": [answer.completed for answer in answers]})


async def _accept(outlet: Outlet, messages: list[bytes]) -> web.Response:
    accepted = 0
    for start in range(0, len(messages), _SLICE):
        sent = [await outlet.raw(None, message) for message in messages[start : start + _SLICE]]
        for result in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(result, BaseException):
                told = {
                    "error": f"The log refused a message: {result}",
                    "fix": "Post all of it again.",
                    "accepted": accepted,
                }
                return reply(told, HTTPStatus.SERVICE_UNAVAILABLE)
            accepted += 1
    return reply({"accepted": accepted}, HTTPStatus.ACCEPTED)
