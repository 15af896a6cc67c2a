"""The `spiderduck` command. A subcommand's module is imported when it is given, so that `--help` is there at once."""

import importlib
import os
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import click

from topology.commands.options import CRASHED, INTERRUPTED
from topology.errors import Crashed, Refusal

# name -> (module, what it is for), in the order a newcomer needs them
_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("topology.commands.run", "crawl the demonstration web that comes with it: no internet, no servers"),
    "run": ("topology.commands.run", "crawl what the tweets in files or on standard input share, and say how it ended"),
    "get": ("topology.commands.read", "the metadata of URLs, through any of their names"),
    "content": ("topology.commands.read", "the archived body of a URL"),
    "tweet": ("topology.commands.read", "what was answered to each URL of a tweet"),
    "completed": (
        "topology.commands.completed",
        "the announcements (url-completed) as JSON lines, as they come with --follow",
    ),
    "worker": ("topology.commands.worker", "run as a service, until it is told to stop"),
    "produce": ("topology.commands.produce", "send tweets to a running worker"),
    "topology": ("topology.commands.worker", "draw the flow: topics, stages, tables"),
    "settings": ("topology.commands.worker", "every setting with its default, range and reason"),
}


class Commands(click.Group):
    """The subcommands. What goes wrong outside the program becomes one line on standard error and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name them in the order above."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import one."""
        if cmd_name not in _COMMANDS:
            return None
        found: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name][0]), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """List them without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, purpose) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run one; status 2 when it is refused, 130 when interrupted, 0 when nobody reads its output any more."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except Crashed as crash:
            click.echo(f"spiderduck: {crash}; nothing is lost: the same command goes on where it stopped", err=True)
            ctx.exit(CRASHED)
        except Refusal as refusal:
            click.echo(f"spiderduck: {refusal}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # The interpreter flushes standard output once more when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        return result


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"spiderduck {_version()}")
        ctx.exit()


def _version() -> str:
    try:
        return version("spiderduck")
    except PackageNotFoundError:  # a checkout that is not installed
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
        return str(project["version"])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`spiderduck COMMAND --help` says more.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """SpiderDuck: tweets in, every URL resolved, fetched politely, parsed, stored and announced within seconds."""


if __name__ == "__main__":
    main(prog_name="spiderduck")
