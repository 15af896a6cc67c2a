"""The process that asks the web: reads orders on standard input, writes answers on standard output, in any order.

Started by `web_pool`. It has an event loop and an interpreter's lock of its own: asking and compressing take a third
of a worker's time, and another core can have it. Politeness stays with the owner of the domain: before any byte of a
request goes out, this process asks whether it may (`MaySend`), and waits for the word (`Go`).
"""

import asyncio
import gc
import os
import sys
from asyncio import StreamReader, StreamWriter
from ipaddress import ip_network
from typing import Final

import msgspec
import uvloop

from agents.clients.children import read_message
from agents.clients.framing import framed
from agents.clients.http import Ask, Limits, Reply, Trouble, Web
from agents.clients.packer import pack
from agents.fetching.guard import Guard
from topology.records import Wire

_PACED_MAX: Final = 10_000  # names remembered before those that are free again are forgotten
_COLLECT_AFTER: Final = 50_000
_READ_BYTES_MAX: Final = 1 << 22


class Config(msgspec.Struct, frozen=True):
    """The first message: what this process may do."""

    user_agent: str
    allow_net: tuple[str, ...]
    connect_to: tuple[str, int] | None
    limits: Limits


class Order(Wire, frozen=True, tag="order"):
    """Ask for this. `gated`: only after `Go`."""

    number: int
    url: str
    body_bytes_max: int
    deadline_s: float
    gated: bool
    packed: bool
    pace: tuple[str, float] | None = None


class Go(Wire, frozen=True, tag="go"):
    """The request may be sent now."""

    number: int


class Forget(Wire, frozen=True, tag="forget"):
    """Nobody waits for this any more."""

    number: int


class MaySend(Wire, frozen=True, tag="may"):
    """The connection stands; may the request be sent?"""

    number: int


class Answer(Wire, frozen=True, tag="answer"):
    """How it went. Exactly one of `reply` and `trouble` is set."""

    number: int
    reply: Reply | None = None
    trouble: Trouble | None = None


ToProcess = Order | Go | Forget
FromProcess = MaySend | Answer

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(ToProcess).decode


class Turnstile:
    """Keeps apart on the wire what the gate has spaced: a word that comes late must not meet the next one's.

    The owner of a domain says when a request may go; between its word and the wire lie a pipe and an event loop.
    """

    def __init__(self) -> None:
        self._free_s: dict[str, float] = {}

    async def pass_through(self, pace: tuple[str, float]) -> None:
        """Wait until the last request of this name is its interval ago. By the event loop's clock."""
        name, interval_s = pace
        loop = asyncio.get_running_loop()
        while (wait_s := self._free_s.get(name, 0.0) - loop.time()) > 0:  # noqa: ASYNC110 - it waits for a time
            await asyncio.sleep(wait_s)
        self._free_s[name] = loop.time() + interval_s
        if len(self._free_s) > _PACED_MAX:
            now_s = loop.time()
            self._free_s = {name: free_s for name, free_s in self._free_s.items() if free_s > now_s}


class Desk:
    """The orders under way."""

    def __init__(self, web: Web, answers: StreamWriter) -> None:
        self._web = web
        self._answers = answers
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._gates: dict[int, asyncio.Future[None]] = {}
        self._turnstile = Turnstile()

    def take(self, message: ToProcess) -> None:
        """Act on one message."""
        match message:
            case Order(number):
                self._tasks[number] = asyncio.create_task(self._see_to(message))
            case Go(number):
                gate = self._gates.pop(number, None)
                if gate is not None and not gate.done():
                    gate.set_result(None)
            case Forget(number):
                task = self._tasks.get(number)
                if task is not None:
                    task.cancel()

    async def _see_to(self, order: Order) -> None:
        async def may_send() -> None:
            gate = self._gates[order.number] = asyncio.get_running_loop().create_future()
            self._say(MaySend(order.number))
            await gate
            if order.pace is not None:
                await self._turnstile.pass_through(order.pace)

        gate = may_send if order.gated else None
        try:
            got = await self._web.get(Ask(order.url, order.body_bytes_max, order.deadline_s, before_send=gate))
            self._say(answer_of(order, got))
        finally:
            self._tasks.pop(order.number, None)
            self._gates.pop(order.number, None)

    def _say(self, message: FromProcess) -> None:
        self._answers.write(framed(_encode(message)))


def answer_of(order: Order, got: Reply | Trouble) -> Answer:
    """Say what the web said, the body packed if it is wanted so."""
    if isinstance(got, Trouble):
        return Answer(order.number, trouble=got)
    reply = msgspec.structs.replace(got, body=b"", packed=pack(got.body)) if order.packed else got
    return Answer(order.number, reply)


async def _serve() -> None:
    source, sink = await _pipes()
    config = msgspec.json.decode(await read_message(source), type=Config)
    web = Web(
        user_agent=config.user_agent,
        guard=Guard(tuple(ip_network(net) for net in config.allow_net)),
        limits=config.limits,
        connect_to=config.connect_to,
    )
    async with web:
        desk = Desk(web, sink)
        sink.write(framed(b""))  # ready
        while True:
            try:
                message = await read_message(source)
            except asyncio.IncompleteReadError:
                os._exit(0)  # whoever started us is gone, and nobody waits for anything
            desk.take(_decode(message))


async def _pipes() -> tuple[StreamReader, StreamWriter]:
    loop = asyncio.get_running_loop()
    source = StreamReader(limit=_READ_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(source), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    sys.stdout = sys.stderr  # a stray print must not break the protocol
    return source, StreamWriter(transport, protocol, None, loop)


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)  # a request leaves hardly any cycles
    uvloop.run(_serve())
