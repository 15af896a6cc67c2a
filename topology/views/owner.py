"""Who answers for a domain: the worker that owns its partition, and no other may read its tables.

In local mode that is always this worker. In a cluster Faust's assignor knows the URL of every partition's owner (it
travels with the group's metadata), and a request that arrives elsewhere is passed on to it, once.

The domain's bytes are the key, as in every message; Faust's `app.router` would hash the key as its table serialises
it, and the partition of a table entry here is that of the domain, not of the entry's own key (`tables.store`).
"""

from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp import web
from yarl import URL

from topology.embedded_log import partition_of
from topology.views.http import JSON, ROUTED, unavailable
from topology.wiring import Worker

_ASK_S_MAX: Final = 10.0  # another worker may take this long to answer

OwnerUrl = Callable[[str, str], URL | None]  # (table, domain): where its owner listens; None when nobody knows


def assigned(worker: Worker) -> OwnerUrl:
    """Return the ownership Faust's assignor has announced."""

    def owner_url(table: str, domain: str) -> URL | None:
        topic = worker.app.tables[table].changelog_topic.get_topic_name()
        try:
            url: URL = worker.app.assignor.key_store(topic, domain.encode())
        except KeyError:
            return None
        return url

    return owner_url


def only_one(worker: Worker) -> OwnerUrl:
    """Return the ownership of local mode: everything is here."""
    here = URL(str(worker.app.conf.canonical_url))
    return lambda _table, _domain: here


class Owners:
    """Finds the owner of a domain and speaks to it."""

    def __init__(self, worker: Worker, owner_url: OwnerUrl) -> None:
        self._worker = worker
        self._owner_url = owner_url
        self._here = _place(URL(str(worker.app.conf.canonical_url)))

    def partition(self, domain: str) -> int:
        """Return the partition of a domain, as every producer chooses it (murmur2 of the key)."""
        partition = partition_of(domain.encode(), self._worker.settings.partitions)
        assert partition is not None  # noqa: S101 - there is a key
        return partition

    def elsewhere(self, table: str, domain: str, *, routed: bool) -> URL | None:
        """Return where the owner of a domain listens; None when it is this worker.

        503 while this worker starts, while nobody is known to own the domain, and when a request that was passed on
        arrives at one that is not the owner either: the group is being rearranged.
        """
        if not started(self._worker):
            raise unavailable("This worker is starting: its tables are not open yet.")
        owner = self._owner_url(table, domain)
        if owner is None:
            raise unavailable(f"It is not known yet which worker owns {domain}.")
        if _place(owner) == self._here:
            return None
        if routed:
            raise unavailable(f"The owner of {domain} is changing.")
        return owner

    async def forward(self, request: web.Request, owner: URL) -> web.Response:
        """Pass a GET on to the owner, and its answer back."""
        status, body = await self._ask("GET", owner.join(request.rel_url), None)
        return web.Response(body=body, status=status, content_type=JSON, charset="utf-8")

    async def post(self, owner: URL, path: str, body: bytes) -> tuple[int, bytes]:
        """Ask the owner; return status and body of its answer."""
        return await self._ask("POST", owner.join(URL(path)), body)

    async def _ask(self, method: str, url: URL, body: bytes | None) -> tuple[int, bytes]:
        http: Any = self._worker.app.http_client
        headers = {ROUTED: "1", "Content-Type": JSON}
        limit = aiohttp.ClientTimeout(total=_ASK_S_MAX)
        try:
            async with http.request(method, url, data=body, headers=headers, timeout=limit) as answer:
                return answer.status, await answer.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise unavailable(f"The owner at {url.origin()} does not answer: {reason}") from error


def started(worker: Worker) -> bool:
    """Say whether tables may be read: everything is recovered, and no rebalance is under way."""
    return bool(worker.app.tables.recovery.completed.is_set()) and not worker.app.rebalancing


def _place(url: URL) -> tuple[str | None, int | None]:
    return url.host, url.port
