"""The long-running worker: `spiderduck worker`, and the app Faust's own commands look at.

`serve` runs the stages and the web views until it is told to stop. What had begun by then is finished, within
`drain_s_max`; what had not stands in the log, and the next start goes on with it.

`faust -A topology.worker agents` (or `tables`) describes the app. It is made when it is asked for, from placeholders:
importing this module does nothing, and this app cannot be started.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yarl import URL

from topology.errors import Crashed
from topology.service import drain, running
from topology.settings import Settings
from topology.wiring import Worker

_FILE: Final = "worker.json"  # under the data directory, while a worker runs: {"pid", "url"}
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what a listener on every address is called here


async def serve(settings: Settings, *, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Run a worker until `stop` is set, then let what has begun be announced. `ready` is told the URL of its views.

    Raises:
        Refusal: the port, the log or a store cannot be had.
        Crashed: a service of the app crashed.
    """
    async with running(settings, web=True) as worker:
        url = url_of(settings)
        with announced(settings.data, url):
            ready(url)
            await _until_stopped(worker, stop)
            await drain(worker)
            await worker.app.consumer.commit()


async def _until_stopped(worker: Worker, stop: asyncio.Event) -> None:
    if (await worker.app.wait(stop)).stopped:
        reason = worker.app.crash_reason
        raise Crashed(f"the worker crashed: {reason!r}") from reason


def url_of(settings: Settings) -> str:
    """Return where the web views of a worker with these settings are asked from this machine."""
    host = _ANY_ADDRESS.get(settings.web_host, settings.web_host)
    return str(URL.build(scheme="http", host=host, port=settings.web_port))


@contextmanager
def announced(data: Path, url: str) -> Iterator[None]:
    """Say in the data directory which process serves it, and where; take it back at the end."""
    path = data / _FILE
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps({"pid": os.getpid(), "url": url}) + "\n")
    scratch.replace(path)  # at once: a reader never finds half of it
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def whereabouts(data: Path) -> str | None:
    """Return the URL of the worker that serves a data directory; None when none does.

    A worker that was killed leaves its file behind: it counts only while its process lives.
    """
    try:
        found = json.loads((data / _FILE).read_text())
        pid, url = int(found["pid"]), str(found["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if _lives(pid) else None


def _lives(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError, OverflowError):
        try:
            os.kill(pid, 0)  # signal 0 asks, and does nothing (POSIX, kill)
        except PermissionError:
            return True  # another user's
        return pid > 0
    return False


def __getattr__(name: str) -> Any:
    """Make `app` when Faust's commands ask for it (PEP 562)."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from topology.describe import describing  # noqa: PLC0415 - serving a worker needs nothing of it

    return describing(Settings.load()).app
