"""Compressing and digesting bodies beside the event loop.

It takes a quarter of a millisecond a page, nearly all of it without the interpreter's lock, so another core can have
it. One thread: more would only fight for the lock in between.
"""

import asyncio
import contextlib
import hashlib
from asyncio import Future
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Self

from topology.deflate import Squeezed, squeeze


@dataclass(frozen=True, slots=True)
class Packed:
    """A body as pages carry it. `sha1` is of the body before compression."""

    squeezed: Squeezed
    sha1: bytes


def pack(body: bytes) -> Packed:
    """Compress a body and take its digest."""
    return Packed(squeeze(body), hashlib.sha1(body, usedforsecurity=False).digest())


_Wanted = tuple[bytes, "Future[Packed]"]
Pack = Callable[[bytes], Awaitable[Packed]]


async def pack_here(body: bytes) -> Packed:
    """Pack a body at once, on the event loop."""
    return pack(body)


class Packer:
    """`await packer(body)` packs in its thread. A context manager.

    `concurrent.futures` would make two futures, a condition and three locks for every body: a fifth of the work.
    """

    def __init__(self) -> None:
        self._bodies: SimpleQueue[_Wanted | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="pack", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let the thread finish and go."""
        self._bodies.put(None)
        self._thread.join()

    async def __call__(self, body: bytes) -> Packed:
        """Pack one body."""
        packed: Future[Packed] = asyncio.get_running_loop().create_future()
        self._bodies.put((body, packed))
        return await packed

    def _work(self) -> None:
        while (wanted := self._bodies.get()) is not None:
            body, packed = wanted
            try:
                done = partial(_resolve, packed, pack(body))
            except Exception as error:  # noqa: BLE001 - it is for whoever waits
                done = partial(_fail, packed, error)
            with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
                packed.get_loop().call_soon_threadsafe(done)


def _resolve(packed: "Future[Packed]", result: Packed) -> None:
    if not packed.done():
        packed.set_result(result)


def _fail(packed: "Future[Packed]", error: Exception) -> None:
    if not packed.done():
        packed.set_exception(error)
