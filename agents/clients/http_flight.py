"""One request on its way, and the one timer that ends those whose time is over.

`asyncio.timeout` sets a timer for every request, which costs a tenth of a request; here one timer looks at all of
them every `TICK_S`, and a deadline is late by no more than that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from math import inf
from types import TracebackType
from typing import Final, Self

TICK_S: Final = 0.05


class GateError(Exception):
    """Carries what a gate raised past the exception handling of aiohttp, as its `__cause__`."""


class Deadlines:
    """Cancels the tasks of flights that are late. The timer runs only while something flies."""

    __slots__ = ("_flights", "_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._flights: set[Flight] = set()
        self._timer: asyncio.TimerHandle | None = None

    def now_s(self) -> float:
        """The time deadlines are told by."""
        return self._loop.time()

    def watch(self, flight: "Flight") -> None:
        """Begin to look at a flight."""
        self._flights.add(flight)
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._tick)

    def forget(self, flight: "Flight") -> None:
        """Stop looking at it."""
        self._flights.discard(flight)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        """End the flights that are late."""
        now_s = self._loop.time()
        for flight in self._flights:
            if flight.deadline_s <= now_s:
                flight.expire()
        self._timer = self._loop.call_later(TICK_S, self._tick) if self._flights else None


class Flight:
    """One request as its connector sees it; a context manager around it, raising TimeoutError when it was late.

    `sent_s` is by `clock`, `deadline_s` by the event loop's own clock.
    """

    __slots__ = (
        "_before_send",
        "_cancelling",
        "_clock",
        "_deadlines",
        "_expired",
        "_held",
        "_task",
        "address",
        "deadline_s",
        "refusals",
        "sent_s",
        "sockets",
    )

    def __init__(
        self,
        deadlines: Deadlines,
        *,
        seconds_max: float,
        clock: Callable[[], float],
        before_send: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._before_send = before_send
        self._expired = False
        self.deadline_s = deadlines.now_s() + seconds_max
        self.address = ""  # the address connected to
        self.sent_s: float | None = None  # when the request was handed to the socket
        self.sockets = 0  # sockets made for it
        self.refusals: list[str] = []  # addresses that were not connected to, as sentences

    def __enter__(self) -> Self:
        """Take off, in the running task."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("A request needs a task to run in.")
        self._task = task
        self._cancelling = task.cancelling()  # cancellations asked for before this request began
        self._held = FLIGHT.set(self)
        self._deadlines.watch(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Land; when the cancellation was the deadline's and nobody else's, it becomes a TimeoutError."""
        self._deadlines.forget(self)
        FLIGHT.reset(self._held)
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """The deadline has passed."""
        self._expired = True
        self.deadline_s = inf
        self._task.cancel()

    async def pass_gate(self) -> None:
        """Await the gate with the deadline standing still: waiting for politeness is not the site's fault."""
        if self._before_send is None:
            return
        began_s, deadline_s = self._deadlines.now_s(), self.deadline_s
        self.deadline_s = inf
        try:
            await self._before_send()
        except Exception as error:
            raise GateError from error
        self.deadline_s = deadline_s + self._deadlines.now_s() - began_s

    def send(self) -> None:
        """Note that the request is being written now."""
        self.sent_s = self._clock()


FLIGHT: ContextVar[Flight] = ContextVar("flight")
"""The request the running task is sending. Happy eyeballs connects in tasks of its own, which inherit it."""
