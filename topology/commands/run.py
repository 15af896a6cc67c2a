"""`spiderduck run` and `spiderduck demo`: crawl what some tweets share, until every request has ended.

Exit status: 0 every request ended; 2 it could not start; 3 every request ended, and some input was unreadable;
130 interrupted before the end.
"""

import asyncio
import shutil
import sys
from dataclasses import replace
from importlib.resources import as_file, files
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import click
import msgspec

from topology.commands.loop import interrupted_by_signals, run_loop
from topology.commands.options import (
    INTERRUPTED,
    UNREADABLE,
    how_to_go_on,
    log_level,
    no_progress,
    program,
    set_logs,
    with_settings,
)
from topology.commands.show import print_summary, unreadable_lines, watching
from topology.demo import web
from topology.run import Show, Summary
from topology.run import run as run_to_the_end
from topology.settings import Settings
from topology.sources import STDIN

_DEMO_DATA: Final = Path("data/demo")
_DEMO_MARK: Final = "made-by-spiderduck-demo"  # only a directory with this in it is removed


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="FILE... | -")
@with_settings("data", "rate_per_s", "allow_net", "connect_to")
@click.option("--json", "as_json", is_flag=True, help="print the summary as one JSON object, and nothing else")
@no_progress
@log_level
def run(settings: Settings, sources: tuple[str, ...], as_json: bool, no_progress: bool, log_level: str) -> None:
    """Crawl what the tweets in FILEs share, or on standard input (-).

    A file holds tweets as JSON lines, as a JSON array or as one object, in gzip or not. Ctrl-C finishes what is in
    flight; the same command goes on where it stopped, also after a crash.

    Exit status: 0 every request ended, 2 it could not start, 3 some input was unreadable, 130 interrupted.
    """
    set_logs(log_level)
    summary = crawl(settings, sources, quiet=no_progress)
    if as_json:
        click.echo(msgspec.json.encode(summary))
    else:
        print_summary(summary)
    _end(summary, sources)


@click.command()
@with_settings("data", "rate_per_s")
@no_progress
@log_level
def demo(settings: Settings, no_progress: bool, log_level: str) -> None:
    """Crawl a small web that comes with SpiderDuck and is served on this machine: no internet, no servers.

    Without --data it begins afresh in data/demo each time.
    """
    set_logs(log_level)
    if settings.data == Settings().data:
        settings = replace(settings, data=_fresh_demo_data())
    with web.serve() as address, as_file(files("topology.demo") / "tweets.jsonl") as tweets:
        settings = replace(
            settings, connect_to=address, allow_net=(*settings.allow_net, ip_network(f"{address[0]}/32"))
        )
        summary = crawl(settings, (str(tweets),), quiet=no_progress)
    print_summary(summary)
    _end(summary, (str(tweets),))
    click.echo("\nlook at what it found:")
    for words in ("get http://s.example/heron", "content http://news.example.com/2026/heron", "completed --limit 3"):
        click.echo(f"  {program()} {words} --data {settings.data}")


def crawl(settings: Settings, sources: tuple[str, ...], *, quiet: bool) -> Summary:
    """Run to the end of the sources, or until it is interrupted, and show how it goes."""

    async def work(show: Show | None) -> Summary:
        stop = asyncio.Event()
        with interrupted_by_signals(stop, settings.drain_s_max, how_to_go_on()):
            return await run_to_the_end(settings, sources, stop=stop, show=show)

    with watching(quiet=quiet) as show:
        return run_loop(work(show))


def _end(summary: Summary, sources: tuple[str, ...]) -> None:
    """Say what is left to say on standard error, and exit with the status of a run that was not perfect."""
    if summary.unreadable_total:
        command = f"{program()} completed --dead-letters --data {summary.data}"
        for line in unreadable_lines(summary.unreadable, summary.unreadable_total, command):
            _say(line)
    if not summary.finished:
        _say(f"interrupted: {how_to_go_on()}")
        if STDIN in sources:
            _say("what was read from standard input is safe in the log; the rest has to be given again")
        sys.exit(INTERRUPTED)
    if summary.unreadable_total:
        sys.exit(UNREADABLE)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _fresh_demo_data() -> Path:
    """Make the demo's directory, without what an earlier demo left in it."""
    if (_DEMO_DATA / _DEMO_MARK).exists():
        shutil.rmtree(_DEMO_DATA)
    _DEMO_DATA.mkdir(parents=True, exist_ok=True)
    (_DEMO_DATA / _DEMO_MARK).touch()
    return _DEMO_DATA
