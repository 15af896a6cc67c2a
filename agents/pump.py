"""The hands every stage shares: take a message, act on it, acknowledge it when what follows from it is safe.

Faust acknowledges a message whose agent raised, so nothing may leave the loop. An exception of ours is a bug: the
message goes to `dead-letters` with the reason, and the stage goes on. A send that the log refuses is tried again,
handler and all: every handler leaves the same state when it runs twice.
"""

import asyncio
import logging
import traceback
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from faust.types import EventT

from topology.events import Events

log = logging.getLogger(__name__)

_RESEND_S: Final = 0.5
_TURN_MESSAGES: Final = 16  # handled in one go before the loop is given to others

Bury = Callable[[bytes, str, str], Awaitable["Future[Any]"]]  # (message, where it came from, reason)


@dataclass(frozen=True, slots=True)
class Acted:
    """What a handler did: the sends that have to be safe, and what to do once they are, before the ack."""

    sent: "tuple[Future[Any], ...]" = ()
    then: Callable[[], None] | None = None


Handler = Callable[[EventT[bytes]], Awaitable[Acted]]
LastResort = Callable[[bytes, str], Awaitable["Future[Any]"]]  # (message, reason): end what the message was for

NOTHING: Final = Acted()


class Pump:
    """Runs one agent's handler over its stream.

    `in_flight_max` messages may be unacknowledged at a time; then the stream waits, its buffer fills, and its
    partitions are held. With `concurrent`, handlers run side by side; without, one after the other in order.
    """

    def __init__(self, stage: str, events: Events, bury: Bury, *, in_flight_max: int, concurrent: bool = False) -> None:
        self._stage = stage
        self._events = events
        self._bury = bury
        self._room = asyncio.Semaphore(in_flight_max)
        self._concurrent = concurrent
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_resort: LastResort | None = None

    async def run(self, stream: Any, handle: Handler, last_resort: LastResort | None = None) -> None:
        """Consume the stream for ever. `last_resort` ends the request of a message that could not be handled."""
        self._last_resort = last_resort
        try:
            async for event in _events(stream):
                await self._room.acquire()
                if self._concurrent:
                    self._spawn(self._act(event, handle))
                else:
                    await self._act(event, handle)
        finally:
            for task in tuple(self._tasks):
                task.cancel()

    async def _act(self, event: EventT[bytes], handle: Handler) -> None:
        try:
            acted = await handle(event)
        except Exception:  # a bug: keep the message, say so, and go on
            log.exception("%s: a message could not be handled", self._stage)
            try:
                acted = await self._poisoned(event)
            except Exception:  # the log does not even take a dead letter
                log.exception("%s: and could not be buried; it is tried again", self._stage)
                self._spawn(self._again(event, handle))
                return
        self._settle(event, handle, acted)

    def _settle(self, event: EventT[bytes], handle: Handler, acted: Acted) -> None:
        left = len(acted.sent)
        if not left:
            self._finish(event, acted)
            return

        def one_is_safe(sent: "Future[Any]") -> None:
            nonlocal left
            left -= 1
            if sent.cancelled():
                left = -1  # the process is stopping; the message is replayed, whatever else was sent
                return
            if sent.exception() is not None:
                if left >= 0:
                    left = -1  # whatever else was sent is sent again: once is enough
                    self._spawn(self._again(event, handle))
            elif left == 0:
                self._finish(event, acted)

        for sent in acted.sent:
            sent.add_done_callback(one_is_safe)

    def _finish(self, event: EventT[bytes], acted: Acted) -> None:
        if acted.then is not None:
            acted.then()
        event.ack()
        self._room.release()

    async def _again(self, event: EventT[bytes], handle: Handler) -> None:
        self._events.count("resent", self._stage)
        await asyncio.sleep(_RESEND_S)
        await self._act(event, handle)

    async def _poisoned(self, event: EventT[bytes]) -> Acted:
        self._events.count("poisoned", self._stage)
        reason = traceback.format_exc(limit=-3)
        message = event.message
        raw = message.value or b""
        sent = [await self._bury(raw, f"{message.topic}/{message.partition}/{message.offset}", reason)]
        if self._last_resort is not None:
            try:
                sent.append(await self._last_resort(raw, f"a fault of SpiderDuck: {reason.splitlines()[-1]}"))
            except msgspec.DecodeError:
                pass  # then there is no request to end
            except Exception:  # the dead letter has to do
                log.exception("%s: and what it was for could not be ended", self._stage)
        return Acted(tuple(sent))

    def _spawn(self, work: "Any") -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _events(stream: Any) -> AsyncIterator[EventT[bytes]]:
    """Iterate over a stream's events from its channel, without Faust's per-message bookkeeping.

    A stream would count, time and remember each event (the current event, a set of unacknowledged messages) and give
    the loop away once per message: 29 of the 49 us of a hop. Stages do not use any of it. What matters is kept: an
    event of an earlier assignment is dropped, its partition's present owner gets it again.
    """
    app, queue, turn = stream.app, stream.channel.queue, 0
    while True:
        turn += 1
        try:
            if queue.empty():
                event, turn = await queue.get(), 0
            else:
                event = queue.get_nowait()
        except StopAsyncIteration:
            return  # how Faust tells a stream that its agent is being stopped
        if turn >= _TURN_MESSAGES:
            turn = 0
            await asyncio.sleep(0)  # others have work too
        if event.message.generation_id == app.consumer_generation_id:
            yield event
