"""The sides of a benchmark: how each is started on the same URLs, and how its results are counted."""

import json
import pathlib
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

RATE_PER_S = 1000  # ours paces each domain; the peers do not, so ours is told not to be held back by it
_CLI = "import sys; from topology.cli import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Job:
    """What a side is given: the same URLs in both forms, the web's port, an empty folder of its own."""

    tweets: str  # a path, or - for standard input
    urls: pathlib.Path
    port: int
    folder: pathlib.Path


@dataclass(frozen=True, slots=True)
class Counted:
    """What a side produced. `pages` were read with status 200; `ended` is every URL with any result."""

    pages: int
    ended: int
    outcomes: dict[str, int] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)  # ours only: latencies by percentile and by stage


@dataclass(frozen=True, slots=True)
class Side:
    """One competitor."""

    name: str
    command: Callable[[Job], list[str]]
    count: Callable[[Job, pathlib.Path], Counted]


def spiderduck() -> list[str]:
    """Return the command that starts ours: the installed script, or the same entry point of this checkout."""
    beside = pathlib.Path(sys.executable).with_name("spiderduck")
    script = str(beside) if beside.exists() else shutil.which("spiderduck")
    return [script] if script else [sys.executable, "-c", _CLI]


def ours_command(job: Job) -> list[str]:
    """Return `spiderduck run` against the synthetic web: everything on but images, which no peer fetches."""
    options = {
        "--connect-to": f"127.0.0.1:{job.port}",
        "--allow-net": "127.0.0.0/8",
        "--rate": str(RATE_PER_S),
        "--data": str(job.folder / "data"),
    }
    flat = [word for pair in options.items() for word in pair]
    return [*spiderduck(), "run", job.tweets, *flat, "--set", "images=false", "--json"]


def ours_count(_: Job, output: pathlib.Path) -> Counted:
    """Read the JSON summary out of standard output, whatever a profiler printed around it."""
    text = output.read_text()
    try:
        summary = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:  # it ended without a summary; its return code says so
        return Counted(0, 0)
    outcomes = summary.get("outcomes", {})
    return Counted(outcomes.get("fetched", 0), summary.get("completed", 0), outcomes, summary)


def _peer(module: str) -> Side:
    name = module.partition("_")[0]

    def command(job: Job) -> list[str]:
        return [sys.executable, "-m", f"tests.bench.{module}", str(job.urls), str(job.folder / "out.jsonl")]

    def count(job: Job, _: pathlib.Path) -> Counted:
        path = job.folder / "out.jsonl"
        if not path.exists():  # it failed before its first result; its return code says so
            return Counted(0, 0)
        with path.open() as lines:
            statuses = Counter(str(json.loads(line)["status"]) for line in lines)
        return Counted(statuses["200"], statuses.total(), dict(statuses))

    return Side(name, command, count)


SIDES = {side.name: side for side in (Side("ours", ours_command, ours_count), _peer("scrapy_peer"), _peer("bare"))}
