"""Writing many at once: what comes while the last batch was being written goes into the next.

A store that is down holds the batch, not the data: it is tried again with growing pauses until it goes through, and
`trouble` says why in the worker's health. The stage's messages stay unacknowledged and the log grows.
"""

import asyncio
import logging
from asyncio import Future
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from agents.clients.errors import StoreUnavailable

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

_PAUSE_S: Final = 0.25
_PAUSE_S_MAX: Final = 15.0


class Batches(Generic[Item, Result]):
    """Gathers items for `linger_s`, writes up to `items_max` of them in one call, one call at a time.

    Under load it gathers up to four times as long: a call costs the same for ten items as for two.

    `write` returns one result per item.
    """

    def __init__(
        self, write: Callable[[list[Item]], Awaitable[list[Result]]], *, items_max: int, linger_s: float
    ) -> None:
        self._write = write
        self._items_max = items_max
        self._linger_s = linger_s
        self._waiting: list[tuple[Item, Future[Result]]] = []
        self._writer: asyncio.Task[None] | None = None
        self.trouble: str | None = None

    async def add(self, item: Item) -> Result:
        """Write an item with others and return its result once it is stored."""
        done: Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all())
        return await done

    async def _write_all(self) -> None:
        try:
            await asyncio.sleep(self._linger_s)
            while self._waiting:
                batch, self._waiting = self._waiting[: self._items_max], self._waiting[self._items_max :]
                await self._write_one(batch)
                if self._waiting and len(self._waiting) < self._items_max:
                    await asyncio.sleep(self._linger_s * min(4, len(batch)))
        finally:
            self._writer = None

    async def _write_one(self, batch: "list[tuple[Item, Future[Result]]]") -> None:
        try:
            results = await self._until_written([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - a bug: the pump of the item that has it buries the message
            if len(batch) > 1:  # the others must not suffer for it, and writing twice leaves the same state
                for one in batch:
                    await self._write_one([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, done), result in zip(batch, results, strict=True):
            if not done.done():
                done.set_result(result)

    async def _until_written(self, items: list[Item]) -> list[Result]:
        pause_s = _PAUSE_S
        while True:
            try:
                results = await self._write(items)
            except StoreUnavailable as error:
                if self.trouble is None:
                    log.warning("a store is unavailable, waiting for it: %s", error)
                self.trouble = str(error)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _PAUSE_S_MAX)
            else:
                self.trouble = None
                return results
