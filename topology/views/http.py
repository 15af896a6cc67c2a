"""What every view needs of HTTP: parameters, bodies with a bound, JSON answers, and errors a person can act on.

A view raises Faust's `WebError` with a sentence, and where there is one, a `fix`. Whatever else leaves a view becomes
a sentence here: no answer of ours shows a stack trace.
"""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from faust.web.exceptions import WebError
from yarl import URL

from agents.clients.errors import StoreUnavailable

log = logging.getLogger(__name__)

JSON: Final = "application/json"
ROUTED: Final = "X-SpiderDuck-Routed"
"""Set on a request that one worker passes on to another: it is passed on once."""

_ENCODINGS: Final = frozenset({"", "identity", "gzip", "deflate"})  # those aiohttp undoes
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def reply(value: Any, status: int = HTTPStatus.OK) -> web.Response:
    """Answer with a JSON document."""
    return web.Response(body=msgspec.json.encode(value), status=status, content_type=JSON, charset="utf-8")


def problem(status: int, error: str, fix: str = "") -> WebError:
    """Return the exception that answers with a sentence, and with what to do about it."""
    return WebError(error, code=status, **({"fix": fix} if fix else {}))


def unavailable(error: str) -> WebError:
    """Return the exception that says: not now."""
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, error, "Ask again in a few seconds.")


def parameters(request: web.Request, *known: str) -> dict[str, str]:
    """Return the query's parameters; 400 when one is unknown or given twice."""
    found: dict[str, str] = {}
    for name, value in request.query.items():
        if name not in known:
            fix = "A URL given as a parameter has to be percent-encoded as a whole." if "url" in known else ""
            raise problem(400, f"There is no parameter {name[:80]!r} here; {_known(known)}.", fix)
        if name in found:
            raise problem(400, f"The parameter {name!r} is given twice.")
        found[name] = value
    return found


def _known(names: tuple[str, ...]) -> str:
    return f"the parameters are {', '.join(names)}" if names else "it takes none"


def flag(query: dict[str, str], name: str) -> bool:
    """Read a parameter that is 0 or 1, and 0 when it is not given."""
    text = query.get(name, "0")
    if text not in {"0", "1"}:
        raise problem(400, f"{name} = {text[:80]!r} is impossible: it must be 0 or 1.")
    return text == "1"


async def read_body(request: web.Request, bytes_max: int) -> bytes:
    """Read a request's body, decompressed; 413 when it is larger than `bytes_max`, before more of it is read."""
    encoding = request.headers.get("Content-Encoding", "").lower()
    if encoding not in _ENCODINGS:
        raise problem(415, f"Content-Encoding {encoding[:80]!r} is not understood.", "Send it plain or as gzip.")
    body = bytearray()
    try:
        while chunk := await request.content.readany():
            body += chunk
            if len(body) > bytes_max:
                raise problem(413, f"The body is larger than {bytes_max} bytes.", "Send it in several requests.")
    except (web.RequestPayloadError, HttpProcessingError) as error:
        raise problem(400, f"The body cannot be read as {encoding or 'it was sent'}.") from error
    return bytes(body)


@web.middleware
async def in_sentences(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn whatever a request comes to into JSON. Stands outermost: nothing else writes an error."""
    answer = await _answered(request, handler)
    if request.body_exists and not request.content.is_eof():
        answer.force_close()  # what is left of a body nobody wants is not read
    return answer


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.method not in _SAFE_METHODS and _from_another_site(request):
        return _error(HTTPStatus.FORBIDDEN, "Web pages of other sites may not write here.")
    try:
        return await handler(request)
    except web.HTTPException as error:
        answer = _error(error.status, _of_http(error, request))
        answer.headers.update({name: error.headers[name] for name in ("Allow", "Location") if name in error.headers})
        return answer
    except StoreUnavailable as error:
        return _error(HTTPStatus.SERVICE_UNAVAILABLE, f"A store does not answer: {error}", "Ask again later.")
    except Exception:  # a bug: the log has the trace, the client has the sentence
        log.exception("%s %s could not be answered", request.method, request.path)
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "A fault of SpiderDuck; its log says more.")


def _from_another_site(request: web.Request) -> bool:
    """Browsers send Origin with every request of a page that writes (Fetch standard, 3.2); programs send none."""
    origin = request.headers.get("Origin")
    if origin is None:
        return False
    try:
        return URL(origin).authority != request.host
    except ValueError:
        return True


def _error(status: int, sentence: str, fix: str = "") -> web.Response:
    return reply({"error": sentence, **({"fix": fix} if fix else {})}, status)


def _of_http(error: web.HTTPException, request: web.Request) -> str:
    match error:
        case web.HTTPNotFound():
            return f"There is nothing at {request.path[:200]!r}."
        case web.HTTPMethodNotAllowed():
            return f"{error.method} is not possible here; {', '.join(sorted(error.allowed_methods))} are."
        case _:
            return f"{error.reason}."
