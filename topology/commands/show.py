"""What a run looks like: progress on standard error while it goes on, a table on standard output at its end."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from topology.run import Progress, Show, Summary, Unread

LISTED_MAX: Final = 20  # unreadable inputs named one by one
_LINE_EVERY_S: Final = 10.0
_RATE_OVER_S: Final = 5.0
_SLOWEST_SHOWN: Final = 3


@contextmanager
def watching(*, quiet: bool) -> Iterator[Show | None]:
    """Return what shows a run's progress: nothing, a live display in a terminal, else a line now and then."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        console = Console(stderr=True, highlight=False, markup=False)
        rate = Rate()
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield lambda progress: live.update(display(progress, rate.after(progress)), refresh=True)
    else:
        yield every(_LINE_EVERY_S, lambda line: click.echo(line, err=True))


class Rate:
    """URLs per second over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque([(0.0, 0)])

    def after(self, progress: Progress) -> float:
        """Return the rate now."""
        self._seen.append((progress.elapsed_s, progress.completed))
        while len(self._seen) > 2 and self._seen[1][0] <= progress.elapsed_s - _RATE_OVER_S:  # noqa: PLR2004 - a pair
            self._seen.popleft()
        (began_s, before), (now_s, now) = self._seen[0], self._seen[-1]
        return (now - before) / (now_s - began_s) if now_s > began_s else 0.0


def every(interval_s: float, write: Callable[[str], None]) -> Show:
    """Return what writes a line of progress, no oftener than this."""
    rate = Rate()
    due_s = interval_s

    def show(progress: Progress) -> None:
        nonlocal due_s
        if progress.elapsed_s >= due_s:
            due_s = progress.elapsed_s + interval_s
            write(f"{_so_far(progress)}, {rate.after(progress):.0f} URLs/s, {_words(progress.outcomes)}")

    return show


def display(progress: Progress, rate: float) -> Group:
    """Draw a run as it stands: a bar, how requests ended, whom it waits for."""
    line = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(_known(progress), 1), completed=progress.completed, width=30)
    line.add_row(bar, Text(_so_far(progress), "bold"), f"{rate:.0f} URLs/s", _duration(progress.elapsed_s))
    return Group(line, Text(_words(progress.outcomes), "green"), Text(_waits(progress), "dim"))


def _so_far(progress: Progress) -> str:
    more = "" if progress.fed_all else " read so far"
    return f"{progress.completed} of {_known(progress)} URLs{more}"


def _known(progress: Progress) -> int:
    """Count requests as far as is known: a run that goes on finds some in the log that it has not read itself."""
    return max(progress.requests, progress.completed + progress.waiting + progress.deferred)


def _waits(progress: Progress) -> str:
    slowest = ", ".join(f"{domain} {queued}" for domain, queued in progress.slowest[:_SLOWEST_SHOWN])
    deferred = f"; put off: {progress.deferred}" if progress.deferred else ""
    return f"waiting for their turn: {progress.waiting}{f' ({slowest})' if slowest else ''}{deferred}"


def _words(outcomes: dict[str, int]) -> str:
    """Name outcomes, the most frequent first."""
    ranked = sorted(outcomes.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{outcome} {count}" for outcome, count in ranked) or "nothing has ended yet"


def _duration(elapsed_s: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(elapsed_s))


def print_summary(summary: Summary) -> None:
    """Print the table at the end of a run."""
    table = Table(show_header=False, box=None, padding=(0, 1), pad_edge=False)
    table.add_column(justify="left", style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows(summary):
        table.add_row(name, Text(value))
    Console(file=sys.stdout, highlight=False, markup=False).print(table)


def rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Say how a run ended, one thing per row."""
    earlier = f", and {summary.resumed_lines} lines in an earlier session" if summary.resumed_lines else ""
    yield "tweets", f"{summary.tweets}{earlier}"
    yield "requests", f"{summary.requests} (tweet, URL)"
    yield "completed", str(summary.completed)
    ranked = sorted(summary.outcomes.items(), key=lambda item: (-item[1], item[0]))
    yield from ((f"  {outcome}", str(count)) for outcome, count in ranked)
    yield "rate", f"{summary.urls_per_s:g} URLs/s for {summary.elapsed_s:.1f} s"
    if summary.completed:
        yield "latency", f"{_percentiles(summary.latency_ms)}, from reading the tweet to the announcement"
        yield "own overhead", f"{_percentiles(summary.own_ms)}, without the web and politeness"
    if summary.unreadable_total:
        yield "unreadable", f"{summary.unreadable_total} inputs"
    yield "data", summary.data


def _percentiles(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {ms:g} ms" for name, ms in found.items())


def unreadable_lines(unreadable: list[Unread], total: int, command: str) -> Iterator[str]:
    """Name the first inputs that could not be read, and say where the rest is."""
    for unread in unreadable[:LISTED_MAX]:
        yield f"unreadable: {unread.source}: {_first_line(unread.reason)}"
    if total > LISTED_MAX:
        yield f"unreadable: {total - LISTED_MAX} more"
    yield f"what could not be read is kept, verbatim: {command}"


def _first_line(reason: str) -> str:
    lines = reason.strip().splitlines()
    # A traceback says what went wrong in its last line, everything else in its first.
    return "" if not lines else lines[-1] if lines[0].startswith("Traceback") else lines[0]
