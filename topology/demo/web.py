"""The demo's web server: every site of `sites` on one free loopback port, in a thread of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from topology.demo import sites

HOST: Final = "127.0.0.1"
HEAD_BYTES_MAX: Final = 65_536
START_S_MAX: Final = 10.0


@contextlib.contextmanager
def serve() -> Iterator[tuple[str, int]]:
    """Serve the demo's sites while the block runs; yields (address, port) to connect to, whatever the host's name.

    Raises TimeoutError when no port could be opened in time.
    """
    server = _Server()
    server.start()
    try:
        yield HOST, server.port()
    finally:
        server.stop()


class _Server(threading.Thread):
    """An event loop with one listening socket; plain HTTP/1.1 with keep-alive (RFC 9112), GET and HEAD."""

    def __init__(self) -> None:
        super().__init__(name="demo-web", daemon=True)
        self._bound = threading.Event()
        self._stopping: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._port = 0

    def port(self) -> int:
        if not self._bound.wait(START_S_MAX):
            raise TimeoutError("the demo's web did not start")
        return self._port

    def stop(self) -> None:
        if self._bound.is_set():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self.join(START_S_MAX)

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(_connection, HOST, 0, limit=HEAD_BYTES_MAX)
        self._port = server.sockets[0].getsockname()[1]
        self._bound.set()
        await self._stopping.wait()
        server.close()  # open connections end with their tasks, which asyncio.run() cancels


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        # A client that goes away, or sends what is no request, ends its connection and nothing else.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            while True:
                method, host, target = _request(await reader.readuntil(b"\r\n\r\n"))
                answer = sites.answer(host, target)
                await asyncio.sleep(answer.delay_s)
                writer.write(_response(answer, with_body=method != "HEAD"))
                await writer.drain()
    finally:
        writer.close()


def _request(head: bytes) -> tuple[str, str, str]:
    """Return (method, host without port, path and query); raise ValueError when the first line is not a request's."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return method, fields.get("host", "").partition(":")[0].lower(), target


def _response(answer: sites.Answer, *, with_body: bool) -> bytes:
    location = f"Location: {answer.location}\r\n" if answer.location else ""
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n{location}\r\n"
    )
    return head.encode("latin-1") + (answer.body if with_body else b"")
