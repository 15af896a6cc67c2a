"""Per-domain queues paced by slots: who may be asked next, and when. Pure; time is an argument.

Theory of operation. Every registered domain with something to fetch has a *lane*: a queue, and the earliest time
its next request may be sent (`next_s`). A heap holds the lanes that could send, ordered by that time; taking the
earliest due lane pops one order and moves the lane's time on by one interval: `next = max(now, next) + 1/rate`
(even slots, as Pinterest's Aragog smooths them: no burst at the edge of a second). What is really sent is
decided at the `gate`, because connecting takes its own time and robots.txt is a request too: slots are counted from
the last request on the wire.

A lane has at most `under_way_max` requests open, so that one slow domain cannot hold all of a worker's.

Slots are reserved ahead in blocks: the gate says when the table has to be written before the request may be sent,
and an owner that starts from the table begins after the block (`resume_s`). So no restart, kill or move of a domain
can ask it too early, and a busy domain costs one write per block.
"""

import heapq
import itertools
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

Order = TypeVar("Order")

_STEP: Final = 1.02
BLOCK_S: Final = 1.0  # slots reserved ahead: at most this long is lost by a restart


@dataclass(slots=True, eq=False)
class Lane(Generic[Order]):
    """One domain's queue and its next slot. Seconds since the epoch."""

    domain: str
    interval_s: float
    next_s: float  # the next fetch may start
    wire_s: float  # the next request may be sent
    reserved_s: float  # slots before this are ours by the table
    fair_s: float = 0.0  # when the next slot would be, had we been infinitely fast: what is later is our own doing
    deferred_s: float = 0.0  # due time given to the last order that was deferred
    under_way: int = 0
    queue: deque[tuple[float, Order]] = field(default_factory=deque)  # (admitted, order)
    in_heap: bool = False

    @property
    def step_s(self) -> float:
        """Seconds between two requests: a little more than the interval, or jitter would look like a higher rate."""
        return self.interval_s * _STEP

    def idle(self, now_s: float) -> bool:
        """Say whether nothing would be lost with this lane: the table's reservation has passed too."""
        return not self.queue and not self.under_way and now_s > max(self.reserved_s, self.deferred_s, self.next_s)

    def __repr__(self) -> str:
        return (
            f"<Lane {self.domain}: {len(self.queue)} waiting, {self.under_way} under way, every {self.interval_s:g} s>"
        )


@dataclass(frozen=True, slots=True)
class Queued:
    """The order waits in its lane; its slot should come at `at_s`."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Later:
    """The slot is too far away: come back at `due_s`."""

    due_s: float


@dataclass(frozen=True, slots=True)
class Full:
    """The lane's queue is full."""

    waiting: int


@dataclass(frozen=True, slots=True)
class Turn(Generic[Order]):
    """One order whose slot has come. `due_s` is when it could have been sent, had we been infinitely fast."""

    order: Order
    lane: Lane[Order]
    admitted_s: float
    due_s: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: ask again after this long."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class Go:
    """Send now. `reserve_s`, when set, has to be in the table first."""

    reserve_s: float | None


class Lanes(Generic[Order]):
    """All lanes of one worker."""

    def __init__(self, *, wait_s_max: float, queue_max: int, under_way_max: int, horizon_s: float) -> None:
        self._lanes: dict[str, Lane[Order]] = {}
        self._heap: list[tuple[float, int, Lane[Order]]] = []
        self._order = itertools.count()
        self._wait_s_max = wait_s_max
        self._queue_max = queue_max
        self._under_way_max = under_way_max
        self._horizon_s = horizon_s
        self.waiting = 0
        self.under_way = 0

    def __len__(self) -> int:
        return len(self._lanes)

    def get(self, domain: str) -> Lane[Order] | None:
        """Return a domain's lane if it has one just now."""
        return self._lanes.get(domain)

    def busiest(self, count: int) -> list[Lane[Order]]:
        """Return the lanes with the longest queues."""
        return heapq.nlargest(count, self._lanes.values(), key=lambda lane: len(lane.queue))

    def open(self, domain: str, *, rate_per_s: float, resume_s: float, now_s: float) -> Lane[Order]:
        """Return a domain's lane, beginning it after `resume_s` (the table's reservation) if it is new."""
        lane = self._lanes.get(domain)
        if lane is None:
            start_s = max(now_s, resume_s)
            lane = Lane(domain, 1 / rate_per_s, start_s, start_s, resume_s, start_s)
            self._lanes[domain] = lane
        return lane

    def admit(self, lane: Lane[Order], order: Order, now_s: float, *, returning: bool = False) -> Queued | Later | Full:
        """Queue an order, or say when it should come back.

        Orders too far ahead are given due times one interval apart, so that they come back as slots come free and
        not all at once. `returning` orders have waited already: they are queued whenever there is room.
        """
        at_s = max(now_s, lane.next_s) + len(lane.queue) * lane.interval_s
        if at_s - now_s > self._wait_s_max and not returning:
            due_s = max(at_s, lane.deferred_s + lane.interval_s)
            if due_s - now_s > self._horizon_s:
                return Full(len(lane.queue))
            lane.deferred_s = due_s
            return Later(due_s)
        if len(lane.queue) >= self._queue_max:
            return Full(len(lane.queue))
        lane.queue.append((now_s, order))
        self.waiting += 1
        self._schedule(lane)
        return Queued(at_s)

    def next_s(self) -> float | None:
        """When the next turn comes; None when no lane can send."""
        return self._heap[0][0] if self._heap else None

    def take(self, now_s: float) -> Turn[Order] | None:
        """Return the earliest order whose slot has come, and give its lane the next slot; None when none has."""
        while self._heap and self._heap[0][0] <= now_s:
            lane = heapq.heappop(self._heap)[2]
            lane.in_heap = False
            if lane.next_s > now_s:  # a request was sent since: robots.txt, or a late connection
                self._schedule(lane)
                continue
            admitted_s, order = lane.queue.popleft()
            due_s = max(admitted_s, lane.fair_s)
            lane.fair_s = due_s + lane.step_s
            lane.next_s = now_s + lane.step_s
            lane.under_way += 1
            self.waiting -= 1
            self.under_way += 1
            self._schedule(lane)
            return Turn(order, lane, admitted_s, due_s)
        return None

    def done(self, lane: Lane[Order]) -> None:
        """An order of this lane has ended: its place is free."""
        lane.under_way -= 1
        self.under_way -= 1
        self._schedule(lane)

    def forget(self, now_s: float) -> None:
        """Drop lanes that hold nothing a new one would not know: memory follows the busy domains, not all."""
        idle = [lane for lane in self._lanes.values() if lane.idle(now_s)]
        for lane in idle:
            del self._lanes[lane.domain]

    def _schedule(self, lane: Lane[Order]) -> None:
        if lane.queue and not lane.in_heap and lane.under_way < self._under_way_max:
            lane.in_heap = True
            heapq.heappush(self._heap, (lane.next_s, next(self._order), lane))


def gate(lane: Lane[Any], now_s: float, *, extra: bool = False) -> Go | Wait:
    """Say whether a request may be sent this instant: the last word before bytes go out.

    `take` spaces the starts of fetches; connecting takes its own time and robots.txt is a request too, so the
    requests themselves are spaced here. `extra`: it takes a slot that no turn was given (robots.txt).
    """
    if now_s < lane.wire_s:
        return Wait(lane.wire_s - now_s)
    if extra:
        lane.fair_s = max(lane.fair_s, now_s) + lane.step_s
    lane.wire_s = now_s + lane.step_s
    lane.next_s = max(lane.next_s, lane.wire_s)
    if lane.wire_s <= lane.reserved_s:
        return Go(None)
    lane.reserved_s = now_s + max(lane.step_s, BLOCK_S)
    return Go(lane.reserved_s)
