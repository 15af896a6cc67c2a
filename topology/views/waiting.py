"""Why a URL would wait: a pure account of what decide and fetch would do with a request for it now."""

from dataclasses import dataclass
from typing import Any, Final

from agents.fetching.lanes import Lane
from tables import robots
from topology.settings import Settings
from topology.views.lookup import Look

_UNITS: Final = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


@dataclass(frozen=True, slots=True)
class Slot:
    """When a request admitted now would be sent: `in_s` from now, after `ahead` others."""

    in_s: float
    ahead: int


def slot_of(lane: Lane[Any] | None, reserved_s: float, now_s: float) -> Slot:
    """Return the slot a new request of a domain would get; a domain without a lane begins after its reservation."""
    if lane is None:
        return Slot(max(0.0, reserved_s - now_s), 0)
    ahead = len(lane.queue)
    return Slot(max(0.0, lane.next_s - now_s) + ahead * lane.interval_s, ahead)


def because(
    look: Look | None, slot: Slot, row: robots.Row | None, *, allowed: bool | None, settings: Settings, now_s: float
) -> str:
    """Say in a sentence what would become of a request. `allowed`: what robots.txt says; None when it is not here."""
    if look is not None and look.pending:
        return f"A fetch of it is on its way and will answer this request too; {look.waiting} wait for it."
    if look is not None and look.document is not None and now_s * 1000 < look.fresh_until_ms:
        left_s = look.fresh_until_ms / 1000 - now_s
        return f"It would be answered from memory, as {look.document.outcome}; no fetch for another {spell(left_s)}."
    return f"{_turn(slot, settings)}, {slot.ahead} ahead, {_robots(row, allowed, now_s)}."


def _turn(slot: Slot, settings: Settings) -> str:
    if slot.ahead >= settings.queue_urls_max:
        return "Rejected: the queue is full"
    if slot.in_s > settings.wait_s_max:
        return f"Deferred: the next free slot is {spell(slot.in_s)} away, more than {spell(settings.wait_s_max)}"
    return f"Slot in {slot.in_s:.1f} s"


def _robots(row: robots.Row | None, allowed: bool | None, now_s: float) -> str:
    if row is None or row.expires_s <= now_s:
        return "robots.txt has to be asked for first"
    verdict = "" if allowed is not False else ", which forbids it"
    return f"robots.txt cached {spell(now_s - row.fetched_s)} ago{verdict}"


def spell(seconds: float) -> str:
    """Write a duration in one unit, as a person would say it."""
    for unit_s, name in _UNITS:
        if seconds >= unit_s:
            return f"{seconds / unit_s:.0f} {name}"
    return f"{seconds:.0f} s"
