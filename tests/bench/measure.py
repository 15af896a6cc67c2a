"""Running one command and counting what its whole process tree costs.

Memory is the sum of resident set sizes over the tree, sampled every 100 ms (pages shared after a fork count
once per process, so a tree of processes is never flattered). CPU is user and system time of every process of
the tree: the greater of what the samples saw and what the kernel reports when the command is reaped.
"""

import contextlib
import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import IO

import psutil

SAMPLE_S = 0.1
STOP_S = 10.0
ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Cost:
    """What one command cost. Times of start and end are monotonic seconds, comparable with the web's log."""

    started_s: float = 0.0
    ended_s: float = 0.0
    cpu_s: float = 0.0
    rss_bytes_max: int = 0
    processes_max: int = 0
    returncode: int | None = None
    timed_out: bool = False
    left_behind: int = 0  # descendants that outlived the command, ended here
    rss_series: list[tuple[float, int]] = field(default_factory=list)  # (seconds since the start, bytes)

    @property
    def wall_s(self) -> float:
        """Return the seconds from start to end."""
        return self.ended_s - self.started_s


class Sampler(threading.Thread):
    """Looks at a process tree until told to stop."""

    def __init__(self, pid: int, cost: Cost) -> None:
        """Add what is seen of `pid` and its descendants to `cost`."""
        super().__init__(daemon=True)
        self.pid = pid
        self.cost = cost
        self.done = threading.Event()
        self.cpu_s: dict[int, float] = {}
        self.known: dict[int, psutil.Process] = {}

    def run(self) -> None:
        """Sample every `SAMPLE_S`."""
        while not self.done.wait(SAMPLE_S):
            self.sample()

    def sample(self) -> None:
        """Look once."""
        rss = count = 0
        for process in self._tree():
            try:
                with process.oneshot():
                    rss += process.memory_info().rss
                    times = process.cpu_times()
            except psutil.Error:  # it ended while we looked
                continue
            self.cpu_s[process.pid] = times.user + times.system
            self.known[process.pid] = process
            count += 1
        cost = self.cost
        cost.rss_series.append((round(time.monotonic() - cost.started_s, 2), rss))
        cost.rss_bytes_max = max(cost.rss_bytes_max, rss)
        cost.processes_max = max(cost.processes_max, count)

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self.pid)
            return [root, *root.children(recursive=True)]
        except psutil.Error:
            return []

    def finish(self, reaped_cpu_s: float) -> None:
        """Stop, and settle the CPU time."""
        self.done.set()
        self.join()
        self.cost.cpu_s = max(reaped_cpu_s, sum(self.cpu_s.values()))
        self.cost.left_behind = kill(self.known.values())


def run(
    command: list[str],
    output: pathlib.Path,
    *,
    timeout_s: float,
    feed: Callable[[IO[bytes]], None] | None = None,
) -> Cost:
    """Run `command` in the repository's root to its end, standard output into `output`; return its cost.

    `feed` writes its standard input in a thread. A command that outlives `timeout_s` is ended with its
    descendants.
    """
    cost = Cost(started_s=time.monotonic())
    with output.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stdin=subprocess.PIPE if feed else subprocess.DEVNULL)
    sampler = Sampler(process.pid, cost)
    sampler.start()
    feeder = threading.Thread(target=_feed, args=(feed, process.stdin), daemon=True)
    feeder.start()
    killer = threading.Timer(timeout_s, _end, (process.pid, cost))
    killer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        _end(process.pid, cost)
        raise
    finally:
        killer.cancel()
        process.returncode = 0  # reaped above: Popen must not wait for it again
    cost.ended_s = time.monotonic()
    cost.returncode = os.waitstatus_to_exitcode(status)
    sampler.finish(usage.ru_utime + usage.ru_stime)
    return cost


def _feed(feed: Callable[[IO[bytes]], None] | None, pipe: IO[bytes] | None) -> None:
    if feed is None or pipe is None:
        return
    try:
        with pipe:
            feed(pipe)
    except BrokenPipeError:  # the command ended first; its return code says why
        return


def _end(pid: int, cost: Cost) -> None:
    """End a command that took too long: politely, then for good, with its descendants."""
    cost.timed_out = True
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
        root.terminate()
        give_up_s = time.monotonic() + STOP_S
        # Not `root.wait()`: the reaping, with the usage the kernel reports, is the caller's.
        while time.monotonic() < give_up_s and _runs(root):
            time.sleep(SAMPLE_S)
        kill(tree)


def kill(processes: Iterable[psutil.Process]) -> int:
    """End whatever of these still runs; return how many did. An id used by a newer process is left alone."""
    running = [process for process in processes if _runs(process)]
    for process in running:
        with contextlib.suppress(psutil.Error):
            process.kill()
    give_up_s = time.monotonic() + STOP_S
    while time.monotonic() < give_up_s and any(map(_runs, running)):
        time.sleep(0.01)
    return len(running)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
