"""The synthetic web's server: one process, one core, any Host.

    python -m tests.bench.web --port 0 --seed 1 --log FILE

prints `{"port": ..., "pid": ...}` on its first line and serves on loopback until it is terminated or its
parent dies. It must cost far less than what it measures, so it speaks the least HTTP/1.1 that clients need
(RFC 9112: keep-alive, Content-Length, HEAD, pipelined requests; no request bodies) straight on a uvloop
protocol.

The log has a line per request, in order of arrival: monotonic seconds, host, path, status, separated by tabs.
The monotonic clock is the machine's, so the times compare with those of other processes.
"""

import argparse
import asyncio
import json
import os
import pathlib
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, cast

import uvloop

from tests.bench.sites import Reply, SyntheticWeb

HEAD_BYTES_MAX = 65_536
LOG_FLUSH_S = 0.5
SEND_BUFFER_BYTES = 1 << 20  # several pages: a write is one system call


class Asked(NamedTuple):
    """One line of the log."""

    at_s: float
    host: str
    path: str
    status: int


class Log:
    """Lines kept in memory and written in blocks; a served page must not wait for a disk."""

    def __init__(self, sink: BinaryIO) -> None:
        """Write to `sink`, which stays the caller's."""
        self.sink = sink
        self.lines: list[bytes] = []

    def add(self, at_s: float, host: bytes, target: bytes, status: int) -> None:
        """Note one request."""
        self.lines.append(b"%.6f\t%b\t%b\t%d\n" % (at_s, host, target, status))

    def flush(self) -> None:
        """Hand what was noted to the operating system."""
        self.sink.write(b"".join(self.lines))
        self.sink.flush()
        self.lines.clear()


def read_log(path: pathlib.Path) -> Iterator[Asked]:
    """Read a log back, in order of arrival."""
    with path.open(encoding="latin-1") as lines:
        for line in lines:
            at_s, host, target, status = line.rstrip("\n").split("\t")
            yield Asked(float(at_s), host, target, int(status))


class Connection(asyncio.Protocol):
    """One client: reads heads, writes replies."""

    def __init__(self, reply: Callable[[bytes, bytes], Reply], log: Log) -> None:
        """Answer with `reply(host, target)` and note each request in `log`."""
        self.reply = reply
        self.log = log
        self.waiting = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; widen its socket's buffer to a few pages."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's class, same methods, other ancestors
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        """Answer every complete head; what is left over waits for more."""
        data = self.waiting + data if self.waiting else data
        start = 0
        while (end := data.find(b"\r\n\r\n", start)) >= 0:
            self._answer(data[start:end])
            start = end + 4
        self.waiting = data[start:]
        if len(self.waiting) > HEAD_BYTES_MAX:
            self.transport.close()

    def _answer(self, head: bytes) -> None:
        try:
            method, target, _ = head[: head.index(b"\r\n")].split(b" ")
        except ValueError:
            self.transport.close()
            return
        lower = head.lower()
        host = header(lower, b"host")
        reply = self.reply(host, target)
        self.log.add(time.monotonic(), host, target, reply.status)
        message = reply.head if method == b"HEAD" else reply.head + reply.body
        last = b"\r\nconnection: close" in lower
        if reply.delay_s:
            asyncio.get_running_loop().call_later(reply.delay_s, self._send, message, last)
        else:
            self._send(message, last)

    def _send(self, message: bytes, last: bool) -> None:
        if not self.transport.is_closing():
            self.transport.write(message)
            if last:
                self.transport.close()


def header(lower_head: bytes, name: bytes) -> bytes:
    """Return a header's value out of a lower-cased head, empty when absent."""
    at = lower_head.find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 3
    end = lower_head.find(b"\r\n", start)
    return lower_head[start : len(lower_head) if end < 0 else end].strip()


async def serve(port: int, seed: int, sink: BinaryIO) -> None:
    """Serve until SIGTERM, SIGINT or the parent's end; print the port first."""
    loop, web, log = asyncio.get_running_loop(), SyntheticWeb(seed), Log(sink)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(lambda: Connection(web.reply, log), "127.0.0.1", port, backlog=1024)
    print(json.dumps({"port": server.sockets[0].getsockname()[1], "pid": os.getpid()}), flush=True)  # noqa: T201 - the caller reads it
    parent = os.getppid()
    while not stop.is_set() and os.getppid() == parent:
        try:
            await asyncio.wait_for(stop.wait(), LOG_FLUSH_S)
        except TimeoutError:
            log.flush()
    server.close()
    log.flush()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="The synthetic web of the benchmarks.")
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=pathlib.Path, default=pathlib.Path(os.devnull), help="a line per request")
    arguments = parser.parse_args()
    with arguments.log.open("wb") as sink:
        uvloop.run(serve(arguments.port, arguments.seed, sink))


if __name__ == "__main__":
    main()
