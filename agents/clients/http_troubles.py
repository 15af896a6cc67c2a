"""What can go wrong between a request and its answer, as values.

aiohttp, the socket and ssl modules raise some forty kinds of exceptions; here they become ten words and a sentence.
"""

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import aiohttp
from aiohttp import http_exceptions

from agents.clients.http_bodies import UndecodableError
from agents.clients.http_flight import Flight
from agents.clients.http_names import NO_SUCH_NAME
from agents.clients.http_urls import UnusableUrlError


class TroubleKind(StrEnum):
    """Why there is no answer."""

    DNS = "dns"  # the name has no address
    REFUSED = "refused"  # nobody accepted the connection
    UNSAFE = "unsafe"  # no address of it is public
    TIMEOUT = "timeout"  # it took too long
    TLS = "tls"  # no trusted, encrypted connection
    PROTOCOL = "protocol"  # what came is not HTTP
    RESET = "reset"  # the connection ended too early
    TOO_LARGE_HEADERS = "too-large-headers"  # more or longer header lines than are read
    INVALID = "invalid"  # not a URL a request can be made of
    LOCAL = "local"  # this machine has no socket or port left: not the site's fault


TRANSIENT: Final = frozenset({TroubleKind.REFUSED, TroubleKind.TIMEOUT, TroubleKind.RESET, TroubleKind.LOCAL})
"""Kinds where the same request may well succeed a little later. DNS depends on what the resolver said."""

_LOCAL_ERRORS: Final = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL, errno.EACCES)
)
_CUT_SHORT: Final = (http_exceptions.ContentLengthError, http_exceptions.TransferEncodingError, OSError)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there is no answer. `transient`: trying again later makes sense. `address`: connected to, or empty."""

    kind: TroubleKind
    reason: str
    transient: bool
    address: str = ""


def trouble(kind: TroubleKind, reason: str, address: str = "") -> Trouble:
    """A trouble of a kind that is always or never transient."""
    return Trouble(kind, reason, kind in TRANSIENT, address)


def trouble_of(error: Exception, flight: Flight) -> Trouble | None:
    """The value for an exception of the outside world; None for one that is a mistake of ours."""
    # All addresses refused and none tried: whatever was raised, that is the reason.
    if flight.refusals and not flight.sockets:
        return trouble(TroubleKind.UNSAFE, flight.refusals[0], flight.address)
    reading = next((reading for kinds, reading in _READINGS if isinstance(error, kinds)), None)
    return reading and reading(error, flight)


def _no_name(error: aiohttp.ClientConnectorDNSError, _: Flight) -> Trouble:
    """The name system has no address, or did not answer."""
    told = error.os_error
    final = told.errno in NO_SUCH_NAME
    reason = "The name does not exist" if final else "The name could not be looked up"
    return Trouble(TroubleKind.DNS, f"{reason}: {told.strerror or told}.", transient=not final)


def _no_trust(error: aiohttp.ClientSSLError, flight: Flight) -> Trouble:
    """TLS came to nothing: a certificate nobody vouches for, or no common language."""
    inner = getattr(error, "certificate_error", None) or error.os_error
    told = getattr(inner, "verify_message", "") or getattr(inner, "reason", "") or inner
    return trouble(TroubleKind.TLS, f"No trusted connection could be made: {told}.", flight.address)


def _late(_: TimeoutError, flight: Flight) -> Trouble:
    """The time was over."""
    awaited = "connection was not made" if flight.sent_s is None else "answer was not complete"
    return trouble(TroubleKind.TIMEOUT, f"The {awaited} in time.", flight.address)


def _no_connection(error: OSError, _: Flight) -> Trouble:
    """Nobody accepted the connection, or we could not even try."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    told = cause.strerror or str(cause)
    if cause.errno in _LOCAL_ERRORS:
        return trouble(TroubleKind.LOCAL, f"This machine could not make a connection: {told}.")
    return trouble(TroubleKind.REFUSED, f"No connection could be made: {told}.")


def _not_http(error: aiohttp.ClientResponseError, flight: Flight) -> Trouble:
    """The head of the answer could not be read."""
    too_long = any(isinstance(cause, http_exceptions.LineTooLong) for cause in _causes(error))
    if too_long or "too many headers" in error.message.lower():
        return too_large_headers(flight)
    told = " ".join(error.message.split())[:200]
    return trouble(TroubleKind.PROTOCOL, f"The answer is not HTTP: {told}.", flight.address)


def too_large_headers(flight: Flight) -> Trouble:
    """The head of the answer is longer than it may be."""
    return trouble(TroubleKind.TOO_LARGE_HEADERS, "The header of the answer is larger than is read.", flight.address)


def _undecodable(error: UndecodableError, flight: Flight) -> Trouble:
    """The body is not coded as its header says."""
    return trouble(TroubleKind.PROTOCOL, f"The answer cannot be read: {error}.", flight.address)


def _broken_body(error: aiohttp.ClientPayloadError, flight: Flight) -> Trouble:
    """The body ended before its end."""
    if any(isinstance(cause, _CUT_SHORT) for cause in _causes(error)):
        return trouble(TroubleKind.RESET, "The connection ended before the body was complete.", flight.address)
    return trouble(TroubleKind.PROTOCOL, "The body is not framed as its header says.", flight.address)


def _unusable(error: Exception, _: Flight) -> Trouble:
    """Nothing was sent, nor could be."""
    return trouble(TroubleKind.INVALID, f"No request can be made of this URL: {error}.")


def _cut_off(_: Exception, flight: Flight) -> Trouble:
    """The connection is gone."""
    return trouble(TroubleKind.RESET, "The server closed the connection before it had answered.", flight.address)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__


_READINGS: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Any, Flight], Trouble]], ...]] = (
    # From the particular to the general: most of these are kinds of those further down.
    (aiohttp.ClientConnectorDNSError, _no_name),
    (aiohttp.ClientSSLError, _no_trust),
    (TimeoutError, _late),
    ((aiohttp.ClientConnectorError, ConnectionRefusedError), _no_connection),
    (aiohttp.ClientResponseError, _not_http),
    (UndecodableError, _undecodable),
    (aiohttp.ClientPayloadError, _broken_body),
    ((aiohttp.InvalidURL, UnusableUrlError), _unusable),
    ((aiohttp.ClientError, OSError), _cut_off),
)
