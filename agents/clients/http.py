"""Asking the web: one GET, no redirect followed, and either a `Reply` or a `Trouble` comes back.

The life of a request. `Web.get` judges what the URL alone tells (`_aim`), then aiohttp takes a connection from our
connector, which lets it through to public addresses only and holds it at the politeness gate (`http_connector`).
The body is read and decoded up to its cap (`http_bodies`). An exception of the outside world becomes a `Trouble`
(`http_troubles`); the only ones that leave are cancellation, what the gate raised, and mistakes of ours.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import TracebackType
from typing import Final, Protocol, Self

import aiohttp
import msgspec

from agents.clients.http_bodies import ACCEPT_ENCODING, read_body
from agents.clients.http_connector import Connector
from agents.clients.http_flight import Deadlines, Flight, GateError
from agents.clients.http_names import Lookup, Resolver, system_lookup
from agents.clients.http_probe import speaks_tls, unverified_context
from agents.clients.http_troubles import (
    Trouble,
    TroubleKind,
    too_large_headers,
    trouble,
    trouble_of,
)
from agents.clients.http_urls import authority_of, host_of, split, wire_url
from agents.clients.packer import Packed
from agents.fetching.guard import Guard

__all__ = ["Ask", "Limits", "Reply", "Trouble", "TroubleKind", "Web"]

Headers = tuple[tuple[str, str], ...]

ACCEPT: Final = "text/html,application/xhtml+xml,application/xml;q=0.9,image/*;q=0.8,*/*;q=0.7"


class Ask(msgspec.Struct, frozen=True):
    """One request to make.

    `url`: as the WHATWG parser writes it; sent as it is. `deadline_s`: for the whole exchange, the gate's wait not
    counted. `before_send`: the politeness gate, awaited when the connection stands and right before the request is
    written; every return of it is followed by at most one request, but a connection that died meanwhile makes it
    be awaited again. `packed` and `pace` are for who asks elsewhere (`web_pool`): the body is wanted packed;
    two requests of the same name are to stand so many seconds apart on the wire too, as the gate has spaced them.
    """

    url: str
    body_bytes_max: int
    deadline_s: float
    headers: Headers = ()
    before_send: Callable[[], Awaitable[None]] | None = None
    packed: bool = False
    pace: tuple[str, float] | None = None


class Reply(msgspec.Struct, frozen=True):
    """What a server answered. Headers are in the order of the wire, as sent, one character per byte.

    `body` is decoded, and empty where it was asked for `packed`; `truncated` when there was more than its cap.
    `sent_s` is when the request was written, `finished_s` when the last byte had been read, by the clock of the
    `Web`.
    """

    status: int
    reason: str
    headers: Headers
    request_headers: Headers
    body: bytes
    truncated: bool
    address: str
    sent_s: float
    finished_s: float
    packed: Packed | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a `Web`. Seconds, bytes and counts, as the names say."""

    connections_max: int = 512  # in use at the same time; who comes later waits within the deadline
    idle_max: int = 256  # kept alive for the next request
    keepalive_s: float = 15.0
    connect_s_max: float = 5.0  # TCP and TLS
    header_line_bytes_max: int = 16_384
    header_lines_max: int = 256
    header_bytes_max: int = 65_536  # all lines together
    names_max: int = 10_000  # whose addresses are remembered
    names_ttl_s: int = 3600
    names_missing_ttl_s: float = 60.0
    name_threads_max: int = 32


class Asks(Protocol):
    """Who can ask the web: `Web` here, or `web_pool.RemoteWeb` from a process of its own."""

    async def get(self, ask: Ask) -> Reply | Trouble:
        """Make one request. Raises nothing but cancellation and what `before_send` raised."""


class Web:
    """The outside, asked politely and within limits. An async context manager; `open` and `close` do the same.

    `connect_to`: host and port every connection goes to, whatever the URL says, with the Host header of the URL
    (for tests and benchmarks). It needs no leave of the guard; URLs that name an address themselves still do.
    `lookup`: finds the addresses of a name. `clock`: seconds since the epoch.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        guard: Guard,
        limits: Limits | None = None,
        connect_to: tuple[str, int] | None = None,
        accept_language: str = "en,*;q=0.5",
        lookup: Lookup = system_lookup,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._guard = guard
        self._limits = limits or Limits()
        self._connect_to = connect_to
        self._lookup = lookup
        self._clock = clock
        self._headers = {
            "User-Agent": user_agent,
            "Accept": ACCEPT,
            "Accept-Language": accept_language,
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        self._target_speaks_tls: asyncio.Task[bool] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._deadlines: Deadlines | None = None
        self._resolver: Resolver | None = None

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()

    async def open(self) -> None:
        """Make ready; needs the running event loop."""
        limits = self._limits
        self._deadlines = Deadlines(asyncio.get_running_loop())
        self._resolver = Resolver(
            self._lookup, threads_max=limits.name_threads_max, missing_ttl_s=limits.names_missing_ttl_s
        )
        connector = Connector(
            guard=None if self._connect_to else self._guard,
            idle_max=limits.idle_max,
            limit=limits.connections_max,
            limit_per_host=0,
            keepalive_timeout=limits.keepalive_s,
            resolver=self._resolver,
            ttl_dns_cache=limits.names_ttl_s,
            dns_cache_max_size=limits.names_max,
            ssl=unverified_context() if self._connect_to else _verified_context(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            # No total: the deadline of each request is its own, and stands still at the gate. No timeout between
            # two pieces of an answer either: it would cost a timer per piece, and the deadline ends silence too.
            timeout=aiohttp.ClientTimeout(sock_connect=limits.connect_s_max),
            auto_decompress=False,
            trust_env=False,  # a proxy from the environment would connect where the guard does not look
            max_line_size=limits.header_line_bytes_max,
            max_field_size=limits.header_line_bytes_max,
            max_headers=limits.header_lines_max,
        )

    async def close(self) -> None:
        """Close every connection; requests under way end in trouble."""
        if self._target_speaks_tls is not None:
            self._target_speaks_tls.cancel()
            await asyncio.gather(self._target_speaks_tls, return_exceptions=True)
        if self._deadlines is not None:
            self._deadlines.close()
        if self._session is not None:
            await self._session.close()
        if self._resolver is not None:
            await self._resolver.close()

    async def get(self, ask: Ask) -> Reply | Trouble:
        """Make one request. Raises nothing but cancellation and what `before_send` raised."""
        if self._deadlines is None:
            raise RuntimeError("This Web is not open.")
        flight = Flight(self._deadlines, seconds_max=ask.deadline_s, clock=self._clock, before_send=ask.before_send)
        try:
            with flight:
                return await self._exchange(ask, flight)
        except GateError as error:
            raise error.__cause__ or error from None
        except Exception as error:
            found = trouble_of(error, flight)
            if found is None:
                raise
            return found

    async def _exchange(self, ask: Ask, flight: Flight) -> Reply | Trouble:
        """Send the request and read the answer."""
        scheme, authority, rest = split(ask.url)
        refusal = self._guard.host_refusal(host_of(authority))
        if refusal is not None:
            return trouble(TroubleKind.UNSAFE, refusal)
        if self._session is None:
            raise RuntimeError("This Web is not open.")
        url, headers, server_name = ask.url, dict(ask.headers), None
        if self._connect_to is not None:
            tls = scheme == "https" and await self._tls_at_target()
            url = f"{'https' if tls else 'http'}://{authority_of(self._connect_to)}{rest}"
            headers["Host"] = authority.rpartition("@")[2]
            server_name = host_of(authority) if tls else None
        response = await self._session.get(
            wire_url(url), headers=headers or None, allow_redirects=False, server_hostname=server_name
        )
        try:
            return await self._read(response, ask, flight)
        finally:
            if not response.closed:  # else its connection has gone back to the pool
                response.close()

    async def _read(self, response: aiohttp.ClientResponse, ask: Ask, flight: Flight) -> Reply | Trouble:
        """Read the body of an answer whose header has come."""
        if sum(map(len, chain.from_iterable(response.raw_headers))) > self._limits.header_bytes_max:
            return too_large_headers(flight)
        codings = response.headers.getall("Content-Encoding", ())
        body, truncated = await read_body(response.content.readany, codings, ask.body_bytes_max)
        return Reply(
            status=response.status,
            reason=response.reason or "",
            headers=_as_text(response.raw_headers),
            # aiohttp's names are a kind of string of their own, which cannot be written down.
            request_headers=tuple([(f"{name}", value) for name, value in response.request_info.headers.items()]),
            body=body,
            truncated=truncated,
            address=flight.address,
            sent_s=flight.sent_s or 0.0,
            finished_s=self._clock(),
        )

    async def _tls_at_target(self) -> bool:
        """Whether `connect_to` speaks TLS; asked once, and again only when it could not be reached."""
        task = self._target_speaks_tls
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            host, port = self._connect_to or ("", 0)
            task = self._target_speaks_tls = asyncio.get_running_loop().create_task(speaks_tls(host, port))
        return await asyncio.shield(task)


def _as_text(raw: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Header lines as text, one character per byte; decoded all at once, which is twice as fast as one by one."""
    # No header line has a line end in it (RFC 9110 5.5), and the parser has seen to that.
    words = b"\n".join(chain.from_iterable(raw)).decode("latin-1").split("\n") if raw else []
    return tuple(zip(words[::2], words[1::2], strict=True))


@cache
def _verified_context() -> ssl.SSLContext:
    """TLS as browsers mean it: certificates and names are checked. Made once: it reads some 140 certificates."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
