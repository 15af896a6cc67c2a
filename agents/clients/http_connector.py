"""Connections: to public addresses only, each passing the politeness gate before a request, few of them idle.

Theory. aiohttp writes a request as soon as its connector hands over a connection. So the connector is the last
place before the wire, and three promises are kept here:

- *Nothing inside is reachable.* Every socket is made by `_socket`, which judges the address first, so not even a
  SYN goes to an address that is not public; and the address a connection really has is judged again before use.
- *Spacing is exact.* The gate of a request is awaited after its connection stands, so neither DNS nor TCP nor TLS
  lies between "you may send now" and the bytes. A pooled connection that died while its request waited is replaced
  and the gate is asked again: it may be asked twice, but two requests never leave on one answer.
- *Idle connections are bounded.* aiohttp limits the connections in use, not those kept alive; with thousands of
  hosts they would take every file descriptor. The longest idle is closed when there are more than `idle_max`.
"""

import socket
from collections import OrderedDict
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import AddrInfoType, Connection
from aiohttp.tracing import Trace

from agents.clients.http_flight import FLIGHT, Flight
from agents.fetching.guard import Guard

STALE_MAX: Final = 2
"""How many connections in a row may turn out dead after their gate, before the request is given up."""


class AlreadySentError(aiohttp.ClientConnectionError):
    """aiohttp wanted to send a request again by itself; whether that is polite is not its to decide."""


class Connector(aiohttp.TCPConnector):
    """A TCPConnector that keeps the promises above. `guard` None: connections go where the operator said."""

    def __init__(self, *, guard: Guard | None, idle_max: int, **options: Any) -> None:
        super().__init__(socket_factory=self._socket, **options)
        self._guard = guard
        self._idle_max = idle_max
        self._idle: OrderedDict[ResponseHandler, None] = OrderedDict()

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout) -> Connection:  # noqa: ASYNC109 - aiohttp's signature
        """A connection that may be written to now. Raises GateError, AlreadySentError, aiohttp.ClientError."""
        flight = FLIGHT.get()
        if flight.sent_s is not None:
            raise AlreadySentError
        for _ in range(STALE_MAX):
            connection = await super().connect(req, traces, timeout)
            try:
                protocol = self._taken(connection, flight)
                await flight.pass_gate()
            except BaseException:
                connection.close()
                raise
            # `should_close`: something came in that nobody asked for, and would be taken for the answer.
            if protocol.is_connected() and not protocol.should_close:
                flight.send()
                return connection
            connection.close()
        raise aiohttp.ServerDisconnectedError

    def _taken(self, connection: Connection, flight: Flight) -> ResponseHandler:
        """Note a connection as in use and judge whom it is connected to."""
        protocol = connection.protocol
        if protocol is None or protocol.transport is None:
            raise aiohttp.ServerDisconnectedError
        self._idle.pop(protocol, None)
        connection.add_callback(partial(self._released, protocol))
        peer = protocol.transport.get_extra_info("peername")
        flight.address = str(peer[0]) if peer else ""
        refusal = self._guard and self._guard.refusal(flight.address)
        if refusal:
            flight.refusals.append(refusal)
            flight.sockets = 0
            raise UnsafeAddressError(refusal)
        return protocol

    def _released(self, protocol: ResponseHandler) -> None:
        """Note a connection as idle, and close the longest idle when there are too many."""
        if protocol.should_close:
            return
        self._idle[protocol] = None
        if len(self._idle) > self._idle_max:
            oldest, _ = self._idle.popitem(last=False)
            oldest.close()  # aiohttp drops it from the pool when it next looks

    def _socket(self, info: AddrInfoType) -> socket.socket:
        """Make a socket for an address, if it may be connected to."""
        family, kind, protocol, _, address = info
        flight = FLIGHT.get()
        refusal = self._guard and self._guard.refusal(str(address[0]))
        if refusal:
            flight.refusals.append(refusal)
            raise UnsafeAddressError(refusal)
        flight.sockets += 1
        return socket.socket(family, kind, protocol)


class UnsafeAddressError(OSError):
    """The address is not public. An OSError, so that the next address of the name is tried."""
