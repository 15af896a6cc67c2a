"""Starting the processes a worker works through, and reading what they say."""

import asyncio
import os
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Final

from agents.clients.framing import FRAME

_ROOT: Final = Path(__file__).resolve().parents[2]
_READ_BYTES_MAX: Final = 1 << 22


async def spawn(module: str) -> tuple[Process, StreamReader, StreamWriter]:
    """Start a module of ours as a process: the process, what it says, and where it listens.

    A fresh interpreter, never a fork: RocksDB and the stores have threads. It lives in a session of its own, so that
    Ctrl-C in a terminal is for the worker, which stops and then lets its processes go.
    """
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=PIPE,
        stdout=PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        limit=_READ_BYTES_MAX,
        start_new_session=True,
    )
    assert process.stdin is not None  # noqa: S101 - asked for above
    assert process.stdout is not None  # noqa: S101 - likewise
    return process, process.stdout, process.stdin


async def read_message(source: StreamReader) -> bytes:
    """Read one framed message. Raises IncompleteReadError at the end."""
    return await source.readexactly(int.from_bytes(await source.readexactly(FRAME), "big"))
