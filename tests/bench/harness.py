"""One measured run: a side, a job, the web beside it."""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import psutil

from tests.bench import measure
from tests.bench.sides import Job, Side
from tests.bench.web import LOG_FLUSH_S, Asked, read_log

TIMEOUT_S = 1800.0
_MEGA = 1e6


@dataclass(frozen=True, slots=True)
class Web:
    """The running synthetic web."""

    port: int
    process: psutil.Process
    log: pathlib.Path

    def cpu_s(self) -> float:
        """Return the CPU time it has used so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def asked(self, start_s: float, end_s: float) -> list[Asked]:
        """Return the requests that arrived between two monotonic times, in order."""
        return [line for line in read_log(self.log) if start_s <= line.at_s <= end_s]


@contextlib.contextmanager
def synthetic_web(seed: int, folder: pathlib.Path) -> Iterator[Web]:
    """Start the synthetic web in a process of its own; end it on leaving."""
    log = folder / "web.log"
    command = [sys.executable, "-m", "tests.bench.web", "--seed", str(seed), "--log", str(log)]
    with subprocess.Popen(command, cwd=measure.ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            port = json.loads(process.stdout.readline())["port"]
            yield Web(port, psutil.Process(process.pid), log)
        finally:
            process.terminate()


def once(
    side: Side,
    web: Web,
    tweets: str,
    urls: pathlib.Path,
    *,
    wrap: Callable[[list[str]], list[str]] = list,
    feed: Callable[[IO[bytes]], None] | None = None,
) -> tuple[dict[str, Any], measure.Cost]:
    """Run one side once in an empty folder; return its row of the table and its cost.

    `pages_per_s` counts from the first request the web saw to the end of the process: starting Python is
    nobody's throughput, but finishing the work is. `wall_pages_per_s` counts everything.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        job = Job(tweets, urls, web.port, pathlib.Path(name))
        output = job.folder / "stdout"
        web_cpu_s = web.cpu_s()
        cost = measure.run(wrap(side.command(job)), output, timeout_s=TIMEOUT_S, feed=feed)
        web_cpu_s = web.cpu_s() - web_cpu_s
        counted = side.count(job, output)
        time.sleep(2 * LOG_FLUSH_S)  # the web's last lines are on their way to its log
        data_bytes = sum(path.stat().st_size for path in job.folder.rglob("*") if path.is_file())
    asked = web.asked(cost.started_s, cost.ended_s)
    first_s = asked[0].at_s if asked else cost.started_s
    pages = max(counted.pages, 1)
    row = {
        "side": side.name,
        "pages": counted.pages,
        "ended": counted.ended,
        "outcomes": counted.outcomes,
        "pages_per_s": round(counted.pages / (cost.ended_s - first_s), 1),
        "wall_pages_per_s": round(counted.pages / cost.wall_s, 1),
        "wall_s": round(cost.wall_s, 2),
        "cpu_ms_per_page": round(1000 * cost.cpu_s / pages, 2),
        "rss_mb_max": round(cost.rss_bytes_max / _MEGA, 1),
        "processes_max": cost.processes_max,
        "web_requests": len(asked),
        "web_cpu_ms_per_page": round(1000 * web_cpu_s / pages, 2),
        "disk_mb": round(data_bytes / _MEGA, 1),
        "returncode": cost.returncode,
        "timed_out": cost.timed_out,
        "left_behind": cost.left_behind,
    }
    return row | ({"summary": counted.summary} if counted.summary else {}), cost
