"""`spiderduck worker`, and what explains it: `topology` and `settings`."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from topology.commands.loop import interrupted_by_signals, run_loop
from topology.commands.options import log_level, set_logs, with_settings
from topology.settings import Settings, explain

_DEFAULT_CHARS: Final = 24
_FILE_WIDTH: Final = 160  # columns, when nobody's terminal says how many there are


@click.command()
@with_settings("data", "web_port", "stages", "rate_per_s", "allow_net", "connect_to")
@log_level
def worker(settings: Settings, log_level: str) -> None:
    """Run as a service until SIGTERM or SIGINT, then finish what is in flight.

    Tweets come in by `spiderduck produce`, `POST /tweets` or the topic; `ready: URL` on standard error says that it
    takes them.

    Exit status: 0 it was told to stop, 1 it crashed and should be started again, 2 it could not start.
    """
    from topology.worker import serve  # noqa: PLC0415 - `settings` and `topology` need nothing of it

    async def work() -> None:
        stop = asyncio.Event()
        with interrupted_by_signals(stop, settings.drain_s_max):
            await serve(settings, stop=stop, ready=lambda url: click.echo(f"ready: {url}", err=True))

    set_logs(log_level)
    run_loop(work())


@click.command()
@with_settings("stages")
@click.option("--mermaid", is_flag=True, help="as a Mermaid diagram")
def topology(settings: Settings, mermaid: bool) -> None:
    """Draw the flow: topics, stages and tables, in the order a tweet meets them."""
    from topology.describe import as_mermaid, as_text, describe, describing  # noqa: PLC0415 - as above

    flow = describe(describing(settings))
    click.echo(as_mermaid(flow) if mermaid else as_text(flow))


@click.command()
def settings() -> None:
    """Print every setting: its default, what it may be, and what it is for.

    A TOML file (--config), then SPIDERDUCK_NAME in the environment, then --set NAME=VALUE; the later wins.
    """
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("default", max_width=_DEFAULT_CHARS, overflow="fold")
    table.add_column("range", no_wrap=True)
    table.add_column("what it is for", overflow="fold")
    ranges = {knob.name: _range(knob.metadata) for knob in fields(Settings)}
    for name, default, why in explain():
        table.add_row(name, default, ranges[name], why)
    width = None if sys.stdout.isatty() else _FILE_WIDTH
    Console(highlight=False, markup=False, width=width).print(table)


def _range(limits: Mapping[str, Any]) -> str:
    least, most = limits.get("least"), limits.get("most")
    return "" if least is None or most is None else f"{_number(least)} to {_number(most)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"
