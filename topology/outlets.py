"""Sending to a topic: the key is written where the message is sent, and sending is an argument of every stage."""

from asyncio import Future
from collections.abc import Awaitable, Callable
from typing import Any

from topology.records import Wire, encode

Send = Callable[[str | None, Wire], Awaitable["Future[Any]"]]


class Outlet:
    """A topic to send records to. `await outlet(key, record)` returns a future, done when the record is safe."""

    def __init__(self, app: Any, topic: str) -> None:
        self._app = app
        self.topic = topic

    async def __call__(self, key: str | None, record: Wire) -> "Future[Any]":
        """Send an internal record."""
        return await self.raw(key, encode(record))

    async def raw(self, key: str | None, value: bytes, partition: int | None = None) -> "Future[Any]":
        """Send bytes: public topics carry JSON. `partition`: where the key does not matter for it."""
        sent: Future[Any] = await self._app.producer.send(
            self.topic, None if key is None else key.encode(), value, partition, None, None
        )
        return sent

    async def to_partition(self, partition: int, record: Wire) -> "Future[Any]":
        """Send a record to one partition: a note to its owner."""
        sent: Future[Any] = await self._app.producer.send(self.topic, None, encode(record), partition, None, None)
        return sent
