"""What the subcommands share: options that are settings, and how the program was called."""

import functools
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from topology.errors import Refusal
from topology.settings import Settings

UNREADABLE: Final = 3  # exit status: everything ended, and some input could not be read
CRASHED: Final = 1
INTERRUPTED: Final = 130  # exit status, as shells say it: 128 and the number of SIGINT

Command = Callable[..., None]

# setting -> (option, what to write behind it, whether it may be repeated, help)
_OPTIONS: Final[dict[str, tuple[str, str, bool, str]]] = {
    "data": ("--data", "DIR", False, "directory of the log, the metadata and the content  [default: data]"),
    "rate_per_s": ("--rate", "R", False, "requests per second per registered domain  [default: 10]"),
    "allow_net": ("--allow-net", "CIDR", True, "let this private network be fetched from (repeatable)"),
    "connect_to": ("--connect-to", "HOST:PORT", False, "connect to this address, whatever the URL says (testing)"),
    "web_port": ("--web-port", "PORT", False, "port of the web views  [default: 6066]"),
    "stages": ("--stages", "A,B", False, "run only these stages  [default: all]"),
}


def with_settings(*names: str) -> Callable[[Command], Command]:
    """Give a command options for these settings, --config and --set, and hand it `settings`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(*, config: Path | None, assignments: tuple[str, ...], **given: Any) -> None:
            flags = {name: given.pop(name) for name in names}
            command(settings=_load(flags, config, assignments), **given)

        # click lists options in the order the decorators stand on the page, which is from the last applied
        wrapped_: Command = _SET(wrapped)
        wrapped_ = _CONFIG(wrapped_)
        for name in reversed(names):
            option, metavar, multiple, text = _OPTIONS[name]
            wrapped_ = click.option(option, name, metavar=metavar, multiple=multiple, help=text)(wrapped_)
        return wrapped_

    return decorate


_CONFIG: Final = click.option(
    "--config", metavar="FILE", type=click.Path(path_type=Path), help="settings in TOML; flags win over it"
)
_SET: Final = click.option(
    "--set",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="any setting (repeatable); `spiderduck settings` lists them",
)

no_progress = click.option("--no-progress", is_flag=True, help="show nothing until the end")
log_level = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="what is logged on standard error",
)


def _load(flags: dict[str, Any], config: Path | None, assignments: tuple[str, ...]) -> Settings:
    """Check every flag by itself first, so that a refusal names it as it was written."""
    values: dict[str, Any] = {}
    for name, value in flags.items():
        if value is not None and value != ():
            values |= _checked(_OPTIONS[name][0], name, value)
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise Refusal(f"--set {assignment}: write --set NAME=VALUE")
        values |= _checked("--set", name.strip(), value.strip())
    return Settings.load(config=config, flags=values)


def _checked(option: str, name: str, value: Any) -> dict[str, Any]:
    try:
        Settings.load(environ={}, flags={name: value})
    except Refusal as refusal:
        raise Refusal(f"{option}: {str(refusal).removeprefix('flag: ')}") from None
    return {name: value}


def set_logs(level: str) -> None:
    """Log to standard error, one line each."""
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def program() -> str:
    """Return what to type to call this program again."""
    called = Path(sys.argv[0])
    if called.name != "spiderduck":
        return "python -m topology.cli"
    found = shutil.which("spiderduck")
    return "spiderduck" if found and Path(found).samefile(called) else os.path.relpath(called)


def how_to_go_on() -> str:
    """Say how an interrupted command is taken up again."""
    return f"the same command goes on where it stopped: {program()} {shlex.join(sys.argv[1:])}"
