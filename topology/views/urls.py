"""`GET /urls?url=URL[&fields=title,image]` and `POST /urls {"urls": [...], "fields": [...]}`."""

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web
from faust.types import AppT
from faust.web import View

from topology.urls import Refusal, parse
from topology.views.answers import fields_of, unknown
from topology.views.http import ROUTED, parameters, problem, read_body, reply
from topology.views.lookup import Lookup

URLS_MAX: Final = 300
"""URLs one `POST /urls` may ask for."""
_BODY_BYTES_MAX: Final = 4 << 20  # 300 URLs of 8 kB, and their quotes


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /urls`."""

    urls: list[str]
    fields: list[str] | None = None


_decode: Final = msgspec.json.Decoder(Batch).decode


def attach(app: AppT, lookup: Lookup) -> None:
    """Register the views of URLs."""

    @app.page("/urls", name="urls")
    class Urls(View):
        """What is known of a URL, or of many."""

        async def get(self, request: web.Request) -> web.Response:
            """Answer for one URL; 404 when nothing is known of it."""
            query = parameters(request, "url", "fields")
            url = query.get("url")
            if url is None:
                raise problem(400, "The parameter url is missing.", "GET /urls?url=https%3A%2F%2Fexample.com%2F")
            if isinstance(refusal := parse(url), Refusal):
                raise problem(400, f"url: {refusal.reason}")
            fields = fields_of(query["fields"].split(",") if query.get("fields") else None)
            answer = (await lookup.answers([url], fields))[url]
            return _not_found(url) if answer is None else reply(answer)

        async def post(self, request: web.Request) -> web.Response:
            """Answer for many URLs at once; null for those nothing is known of."""
            batch = _batch(await read_body(request, _BODY_BYTES_MAX))
            if ROUTED in request.headers:
                return reply(await lookup.local(batch.urls))
            return reply({"urls": await lookup.answers(batch.urls, fields_of(batch.fields))})


def _batch(body: bytes) -> Batch:
    try:
        batch = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise problem(400, f"The body is not a batch: {error}.", 'POST {"urls": ["https://example.com/"]}') from error
    if len(batch.urls) > URLS_MAX:
        fix = f"Ask for up to {URLS_MAX} URLs at a time."
        raise problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"urls: {len(batch.urls)} URLs are too many.", fix)
    return batch


def _not_found(url: str) -> web.Response:
    told = {"error": "Nothing is known of this URL.", "fix": "Have it fetched by sharing it: POST /tweets."}
    return reply({**told, **msgspec.to_builtins(unknown(url))}, HTTPStatus.NOT_FOUND)
