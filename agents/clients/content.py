"""The content store: whole objects under a name, read by range.

One class over obstore, whose stores (a local directory, memory, S3) differ only in how they are made. Laws,
held by `tests/agents/test_content_store.py`: an object is there whole or not at all; putting it again
replaces it; a read returns exactly the bytes asked for or says why not; deleting what is not there is no
error.

Calls go to obstore's blocking functions on threads of our own (they release the GIL), not to its `*_async`
ones. Those finish a call on a thread that knows nothing of the interpreter's end: a short program that read
one object and returned was aborted (SIGABRT) in 4 of 113 runs, in none of 40 this way, at 84 us a read against
67. The trouble is known: https://github.com/PyO3/pyo3-async-runtimes/issues/40. obstore is not safe to use
after a fork either.
"""

import asyncio
import errno
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, ObjectStore

from agents.clients.errors import StoreUnavailable
from topology.errors import Refusal

CALLS_MAX: Final = 4
"""Calls made at the same time by one store."""

# The characters that every store keeps as they are, and no segment that begins with a dot.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=-]*(/[A-Za-z0-9_][A-Za-z0-9._=-]*)*")
_LISTED_AT_ONCE: Final = 1000

T = TypeVar("T")


class NotStored(Exception):  # noqa: N818 - an answer of the store
    """There is no such object, or it does not have the bytes asked for."""

    def __init__(self, name: str, reason: str = "no such object") -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name


class ContentStore(Protocol):
    """What the archive and its readers ask of a content store.

    Every method may raise `StoreUnavailable`. A name is segments of ASCII letters, digits and `._=-` joined
    by slashes; any other is a ValueError.
    """

    async def put(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Store an object, or replace it. It is visible when it is whole, never before."""

    async def put_file(self, name: str, path: Path) -> None:
        """Store a file as an object and take the file away. It is not read into memory."""

    async def read(self, name: str, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes from `offset` in one range read; `NotStored` when they are not there."""

    async def size(self, name: str) -> int:
        """Length of an object in bytes, or `NotStored`."""

    def names(self, prefix: str = "") -> AsyncIterator[str]:
        """List the objects under a folder, in no order. `a/b` is no prefix of `a/bc`."""

    async def delete(self, name: str) -> None:
        """Remove an object. It is no error when it is not there."""

    async def close(self) -> None:
        """Wait for the calls under way. Every later call is `StoreUnavailable`."""


def open_content(url: str) -> ContentStore:
    """Open the content store at `file:///folder` (made when missing) or `memory://` (empty, gone when closed).

    Raises:
        Refusal: the URL names no kind of store.
        StoreUnavailable: the folder cannot be made.
    """
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return ObstoreContent(MemoryStore(), url)
    if parts.scheme == "file" and not parts.netloc and parts.path:
        folder = Path(url2pathname(parts.path))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return ObstoreContent(LocalStore(folder), url, folder)
        except (OSError, BaseError) as error:
            raise StoreUnavailable(f"{url}: {error}") from error
    raise Refusal(f"{url!r} is no content store: use file:///absolute/folder or memory://")


class ObstoreContent:
    """A `ContentStore` in an obstore store. `folder` says where a local store keeps its objects."""

    def __init__(self, store: ObjectStore, url: str, folder: Path | None = None) -> None:
        self._store, self._url, self._folder = store, url, folder
        self._threads = ThreadPoolExecutor(CALLS_MAX, thread_name_prefix="content")
        self._closed = False

    async def put(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Store an object; an error while producing its chunks leaves nothing visible."""
        _check(name)
        await self._call(name, lambda: obstore.put(self._store, name, data))

    async def put_file(self, name: str, path: Path) -> None:
        """Rename the file into the folder where the store has one, else upload it in parts and remove it."""
        _check(name)
        await self._call(name, lambda: self._put_file(name, path))

    def _put_file(self, name: str, path: Path) -> None:
        if self._folder is None or not _moved(path, self._folder / name):
            obstore.put(self._store, name, path)
            path.unlink()

    async def read(self, name: str, offset: int, length: int) -> bytes:
        """Read a range. What is short or beyond the end is told from a broken store by the object's size."""
        _check(name)
        if offset < 0 or length < 1:
            raise ValueError(f"no such range: {length} bytes from {offset}")
        try:
            found = await self._call(
                name, lambda: bytes(obstore.get_range(self._store, name, start=offset, length=length))
            )
        except StoreUnavailable:
            if offset + length <= await self.size(name):
                raise
            found = b""
        if len(found) != length:
            raise NotStored(name, f"has not the {length} bytes from {offset}")
        return found

    async def size(self, name: str) -> int:
        """Length of an object in bytes."""
        _check(name)
        return await self._call(name, lambda: obstore.head(self._store, name)["size"])

    async def names(self, prefix: str = "") -> AsyncIterator[str]:
        """List the objects under a folder, a thousand at a time."""
        listed = obstore.list(self._store, prefix or None, chunk_size=_LISTED_AT_ONCE)
        while chunk := await self._call(prefix, lambda: next(listed, None)):
            for found in chunk:
                yield found["path"]

    async def delete(self, name: str) -> None:
        """Remove an object if it is there."""
        _check(name)
        try:
            await self._call(name, lambda: obstore.delete(self._store, name))
        except NotStored:
            return

    async def close(self) -> None:
        """Wait for the calls under way. Closing twice is closing once."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)

    async def _call(self, name: str, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"{self._url} is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except FileNotFoundError as error:
            raise NotStored(name) from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"{self._url}: {str(error).splitlines()[0]}") from error


def _check(name: str) -> None:
    """Refuse a name that a store would change, or that leads out of a folder."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"not the name of an object: {name!r}")


def _moved(path: Path, target: Path) -> bool:
    """Rename a file that is safe on the disk; False when it is on another file system."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True
