"""`spiderduck produce`: tweets from files to a worker that runs, over HTTP."""

import asyncio
import http.client
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import click

from topology.commands.options import UNREADABLE, with_settings
from topology.errors import Refusal
from topology.settings import Settings
from topology.sources import Line, check, messages
from topology.worker import whereabouts

_AHEAD_LINES_MAX: Final = 64  # read before they are posted
_BATCH_BYTES_MAX: Final = 1 << 20
_ANSWER_S_MAX: Final = 30.0
_RETRY_S: Final = 0.5
_AGAIN: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)

Lines = asyncio.Queue[Line | None]  # None: there are no more


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="FILE... | -")
@with_settings("data")
@click.option("--to", "to_url", metavar="URL", help="the worker's web views  [default: the worker of --data]")
@click.option(
    "--wait",
    "wait_s_max",
    metavar="S",
    type=click.FloatRange(0, 86_400),
    default=30,
    show_default=True,
    help="seconds to wait for a worker that cannot be reached",
)
def produce(settings: Settings, sources: tuple[str, ...], to_url: str | None, wait_s_max: float) -> None:
    """Send the tweets in FILEs, or on standard input (-), to a running worker, and wait until it has them safe.

    Sending the same again does no harm: a (tweet, URL) is counted once.
    """
    check(sources)
    production = Production(lambda: to_url or whereabouts(settings.data), wait_s_max)
    try:
        asyncio.run(production.run(sources))
    finally:
        click.echo(f"{production.accepted} accepted")
    for line in production.faults:
        click.echo(f"unreadable: {line.source}:{line.number}: {line.fault}", err=True)
    if production.faults:
        sys.exit(UNREADABLE)


class Production:
    """Posts what some sources hold, in batches, each until it is accepted.

    `find` says where the worker is now: one that is started again may have another port. Raises Refusal when the
    worker could not be reached for `wait_s_max` seconds, or will not take what it is sent.
    """

    def __init__(self, find: Callable[[], str | None], wait_s_max: float) -> None:
        self._find = find
        self._wait_s_max = wait_s_max
        self._ended = False
        self.accepted = 0
        self.faults: list[Line] = []

    async def run(self, sources: tuple[str, ...]) -> None:
        """Send everything. A pipe's lines are sent as they come, not when a batch is full."""
        lines: Lines = asyncio.Queue(_AHEAD_LINES_MAX)
        reading = asyncio.create_task(self._read(sources, lines))
        try:
            while batch := await self._batch(lines):
                self.accepted += await self._post(b"\n".join(batch))
            await reading
        finally:
            self._ended = True
            reading.cancel()

    async def _read(self, sources: tuple[str, ...], lines: Lines) -> None:
        for source in sources:
            async with aclosing(messages(source, lambda: self._ended)) as found:
                async for line in found:
                    await lines.put(line)
        await lines.put(None)

    async def _batch(self, lines: Lines) -> list[bytes]:
        """Take what is there, and wait for one if nothing is. Nothing: there are no more."""
        batch: list[bytes] = []
        size = 0
        while size < _BATCH_BYTES_MAX and not (batch and lines.empty()):
            line = await lines.get()
            if line is None:
                lines.put_nowait(None)  # for the next call
                break
            if line.fault is not None:
                self.faults.append(line)
                continue
            batch.append(line.raw.replace(b"\n", b" "))  # an element of an indented array: these are between tokens
            size += len(line.raw)
        return batch

    async def _post(self, body: bytes) -> int:
        until_s = time.monotonic() + self._wait_s_max
        while True:
            found = self._find()
            answer = await asyncio.to_thread(post, found, body) if found else "no worker is running on this directory"
            if isinstance(answer, int):
                return answer
            if time.monotonic() >= until_s:
                raise Refusal(f"{answer}: start `spiderduck worker`, name it with --to, or --wait longer")
            await asyncio.sleep(_RETRY_S)


def post(worker: str, body: bytes) -> int | str:
    """Post lines once; return how many were accepted, or why it may be worth another try.

    Raises Refusal when the worker will not take them at any time.
    """
    headers = {"Content-Type": "application/x-ndjson"}
    request = urllib.request.Request(_tweets_url(worker), body, headers)  # noqa: S310 - the scheme is checked
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_S_MAX) as answer:  # noqa: S310 - the scheme is checked
            return int(json.load(answer)["accepted"])
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(1000).decode("utf-8", "replace")
        if error.code in _AGAIN:
            return f"the worker at {worker} answered {error.code} ({said})"
        raise Refusal(f"the worker at {worker} will not take this: {error.code}: {said}") from error
    except (OSError, http.client.HTTPException) as error:
        return f"the worker at {worker} cannot be reached ({getattr(error, 'reason', error)})"
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(f"what answers at {worker} is no SpiderDuck worker") from error


def _tweets_url(found: str) -> str:
    if urlsplit(found).scheme not in {"http", "https"}:
        raise Refusal(f"--to {found}: it must be a URL such as http://127.0.0.1:6066")
    return f"{found.rstrip('/').removesuffix('/tweets')}/tweets"
