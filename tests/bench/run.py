"""The benchmark: ours, Scrapy and a bare loop on the same URLs of the same synthetic web, in one run.

    python -m tests.bench.run                       side by side, 10,000 URLs over 400 hosts
    python -m tests.bench.run --repeat 1            once; otherwise the order alternates between repeats
    python -m tests.bench.run --only ours --profile a py-spy profile of the whole tree beside the result
    python -m tests.bench.run --steady 50           offered load: 50 tweets a second on standard input
    python -m tests.bench.run --memory              peak and growth of memory over 20,000 and 100,000 URLs

Everything is on loopback with ports the system chooses; every process started here is ended here.
"""

import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import IO, Any

import click
from rich.console import Console

from tests.bench import report, workload
from tests.bench.harness import Web, once, synthetic_web
from tests.bench.sides import SIDES

CONSOLE = Console(width=132)


def side_by_side(
    web: Web, listed: list[str], folder: pathlib.Path, names: list[str], repeat: int
) -> list[dict[str, Any]]:
    """Run the sides `repeat` times, in alternating order, so that a machine getting slower favours nobody."""
    rows: list[dict[str, Any]] = []
    for number in range(repeat):
        for name in names if number % 2 == 0 else reversed(names):
            tweets, urls = workload.write(folder, listed, time.time())
            CONSOLE.print(f"{name}, {number + 1} of {repeat} ...")
            row, _ = once(SIDES[name], web, str(tweets), urls)
            rows.append(row | {"repeat": number})
    return rows


def profile(web: Web, listed: list[str], folder: pathlib.Path, target: pathlib.Path) -> dict[str, Any]:
    """Run ours under py-spy, workers included, into a speedscope file."""
    tweets, urls = workload.write(folder, listed, time.time())

    def wrap(command: list[str]) -> list[str]:
        beside = pathlib.Path(sys.executable).with_name("py-spy")
        spy = [
            str(beside) if beside.exists() else "py-spy",
            "record",
            "--subprocesses",
            "--format",
            "speedscope",
            "--rate",
            "200",
        ]
        return [*spy, "--output", str(target), "--", *command]

    row, _ = once(SIDES["ours"], web, str(tweets), urls, wrap=wrap)
    return row


def paced(listed: list[str], rate_per_s: float) -> Callable[[IO[bytes]], None]:
    """Return a feed that writes one tweet every 1/rate seconds, each at its own time whatever the reader does."""

    def feed(pipe: IO[bytes]) -> None:
        start_s = time.monotonic()
        for number, url in enumerate(listed):
            time.sleep(max(start_s + number / rate_per_s - time.monotonic(), 0))
            pipe.write(workload.tweet(number, url, time.time()))
            pipe.flush()

    return feed


def steady(web: Web, listed: list[str], folder: pathlib.Path, rate_per_s: float) -> dict[str, Any]:
    """Offer `rate_per_s` tweets a second to a running topology; the summary has our own share of the latency."""
    _, urls = workload.write(folder, listed, time.time())
    row, _ = once(SIDES["ours"], web, "-", urls, feed=paced(listed, rate_per_s))
    return row | {"offered_per_s": rate_per_s}


def memory(web: Web, folder: pathlib.Path, seed: int, sizes: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    """Run ours over each (URLs, hosts); report the peak and the growth of memory in the second half of the run."""
    rows = []
    for count, hosts in sizes:
        CONSOLE.print(f"{count:,} URLs over {hosts:,} hosts ...")
        listed = workload.urls(count, hosts, seed, port=web.port)
        tweets, urls = workload.write(folder, listed, time.time())
        row, cost = once(SIDES["ours"], web, str(tweets), urls)
        rows.append(row | {"urls": count, "hosts": hosts} | growth(cost.rss_series))
    return rows


def growth(series: list[tuple[float, int]]) -> dict[str, Any]:
    """Return how much memory grew from the middle of a run to its end, both as medians over a tenth of the run.

    Single samples lie: an allocator gives back when it pleases.
    """
    tenth = max(len(series) // 10, 1)
    half = len(series) // 2
    middle, end = (
        sorted(rss for _, rss in part)[tenth // 2] for part in (series[half : half + tenth], series[-tenth:])
    )
    return {
        "rss_mb_middle": round(middle / 1e6, 1),
        "rss_mb_end": round(end / 1e6, 1),
        "second_half_growth": round(end / middle - 1, 3) if middle else None,
        "rss_mb_series": [(at_s, round(rss / 1e6, 1)) for at_s, rss in series[:: max(len(series) // 200, 1)]],
    }


@click.command()
@click.option("--urls", "count", default=10_000, show_default=True, help="URLs of the workload")
@click.option("--hosts", default=400, show_default=True, help="sites they are on, by a power law")
@click.option("--seed", default=1, show_default=True)
@click.option("--repeat", default=3, show_default=True, help="how often each side runs")
@click.option(
    "--only",
    default="ours,scrapy,bare",
    show_default=True,
    help="the sides, in the order of the first repeat",
)
@click.option("--short", default=workload.Mix().short, show_default=True, help="share of short links")
@click.option("--profile", "with_profile", is_flag=True, help="ours under py-spy, into a speedscope file")
@click.option("--steady", "rate_per_s", type=float, help="offered load, tweets per second")
@click.option("--seconds", default=60.0, show_default=True, help="how long --steady lasts")
@click.option("--memory", "with_memory", is_flag=True, help="20,000 URLs over 2,000 hosts, then 100,000")
@click.option("--name", default=None, help="of the result file, results/<name>.json")
def main(
    count: int,
    hosts: int,
    seed: int,
    repeat: int,
    only: str,
    short: float,
    with_profile: bool,
    rate_per_s: float | None,
    seconds: float,
    with_memory: bool,
    name: str | None,
) -> None:
    """Measure; print a table; write tests/bench/results/<name>.json."""
    names = [side for side in only.split(",") if side]
    if unknown := set(names) - set(SIDES):
        raise click.BadParameter(f"no such side: {', '.join(sorted(unknown))}; there are {', '.join(SIDES)}")
    mix = workload.Mix(short=short)
    count = int(rate_per_s * seconds) if rate_per_s else count
    with tempfile.TemporaryDirectory(prefix="bench-") as made, synthetic_web(seed, pathlib.Path(made)) as web:
        folder = pathlib.Path(made)
        listed = workload.urls(count, hosts, seed, port=web.port, mix=mix)
        if with_memory:
            kind, rows = "memory", memory(web, folder, seed, ((20_000, 2_000), (100_000, 10_000)))
        elif rate_per_s:
            kind, rows = "steady", [steady(web, listed, folder, rate_per_s)]
        elif with_profile:
            report.RESULTS.mkdir(exist_ok=True)
            kind, rows = "profile", [profile(web, listed, folder, report.RESULTS / "profile.speedscope.json")]
        else:
            kind, rows = "side-by-side", side_by_side(web, listed, folder, names, repeat)
    asked = {"seed": seed, "short": short} | ({} if with_memory else {"urls": count, "hosts": hosts})
    path = report.save(
        name or kind,
        {"kind": kind, "asked": asked, "ratios": report.ratios(report.medians(rows)), "rows": rows},
    )
    report.show(rows, CONSOLE)
    CONSOLE.print(f"written: {path}")
    if any(row["returncode"] != 0 for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
