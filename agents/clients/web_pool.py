"""The web behind a process of its own: the same `get` as `http.Web`, asked elsewhere (see `web_process`).

When the process dies, what it was asked ends in a transient trouble and is tried again like any other; another is
started. What politeness granted and was not used is lost, which is the polite side to err on.
"""

import asyncio
import contextlib
import logging
from asyncio import Future, StreamReader, StreamWriter
from asyncio.subprocess import Process
from typing import Any, Final, Self

import msgspec

from agents.clients.children import read_message, spawn
from agents.clients.framing import framed
from agents.clients.http import Ask, Reply, Trouble, TroubleKind
from agents.clients.web_process import Config, Forget, FromProcess, Go, MaySend, Order, ToProcess
from topology.errors import Refusal

log = logging.getLogger(__name__)

_MODULE: Final = "agents.clients.web_process"
_RESPAWN_S: Final = 0.5
_DIED: Final = Trouble(TroubleKind.LOCAL, "The process that asks the web died.", transient=True)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(FromProcess).decode


class RemoteWeb:
    """Asks the web through a process. An async context manager."""

    def __init__(self, config: Config) -> None:
        self._config = msgspec.json.encode(config)
        self._numbers = 0
        self._waiting: dict[int, tuple[Ask, Future[Reply | Trouble]]] = {}
        self._gates: set[asyncio.Task[None]] = set()
        self._process: Process | None = None
        self._writer: StreamWriter | None = None
        self._life: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start the process; it is ready when this returns."""
        try:
            answers = await self._spawn()
        except asyncio.IncompleteReadError:
            raise Refusal("the process that asks the web does not start: its error stands above") from None
        self._life = asyncio.create_task(self._live(answers))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the process; whoever still waits is told that it died."""
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        await self._bury()

    async def get(self, ask: Ask) -> Reply | Trouble:
        """Make one request. Raises nothing but cancellation and what `before_send` raised."""
        if self._writer is None:
            return _DIED  # between two processes
        self._numbers += 1
        number, answer = self._numbers, asyncio.get_running_loop().create_future()
        self._waiting[number] = (ask, answer)
        gated = ask.before_send is not None
        self._say(Order(number, ask.url, ask.body_bytes_max, ask.deadline_s, gated, ask.packed, ask.pace))
        try:
            got: Reply | Trouble = await answer
        except BaseException:
            self._say(Forget(number))
            raise
        finally:
            self._waiting.pop(number, None)
        return got

    @property
    def pids(self) -> list[int]:
        """The process, for those who measure it."""
        return [self._process.pid] if self._process else []

    def _say(self, message: ToProcess) -> None:
        if self._writer is not None:
            self._writer.write(framed(_encode(message)))

    async def _live(self, answers: StreamReader) -> None:
        while True:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
                while True:
                    self._hear(_decode(await read_message(answers)))
            log.error("the process that asks the web died; another is started")
            await self._bury()
            answers = await self._respawn()

    def _hear(self, message: FromProcess) -> None:
        waiting = self._waiting.get(message.number)
        if waiting is None:
            return  # nobody waits any more
        ask, answer = waiting
        if isinstance(message, MaySend):
            task = asyncio.get_running_loop().create_task(self._pass_gate(message.number, ask, answer))
            self._gates.add(task)
            task.add_done_callback(self._gates.discard)
        elif not answer.done():
            answer.set_result(message.reply or message.trouble or _DIED)

    async def _pass_gate(self, number: int, ask: Ask, answer: "Future[Any]") -> None:
        try:
            if ask.before_send is not None:
                await ask.before_send()
        except Exception as error:  # noqa: BLE001 - it is for whoever asked
            if not answer.done():
                answer.set_exception(error)
        else:
            self._say(Go(number))

    async def _spawn(self) -> StreamReader:
        self._process, answers, writer = await spawn(_MODULE)
        writer.write(framed(self._config))
        await read_message(answers)
        self._writer = writer
        return answers

    async def _respawn(self) -> StreamReader:
        while True:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, OSError):
                return await self._spawn()
            await self._bury()
            await asyncio.sleep(_RESPAWN_S)

    async def _bury(self) -> None:
        """End the process, and what it was asked."""
        self._writer = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        for _, answer in tuple(self._waiting.values()):
            if not answer.done():
                answer.set_result(_DIED)
