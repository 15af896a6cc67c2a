"""From names to addresses, in threads of our own, with a memory for names that do not exist.

The loop's own resolver shares its few threads with everything else (six on two cores; libuv has four), so a handful
of name servers that do not answer would stop all lookups. aiohttp keeps the addresses that were found and lets one
lookup serve all who wait; it keeps no failures, and dead names are shared as often as live ones.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

Lookup = Callable[[str], list[str]]
"""The addresses of a name, blocking; raises OSError (`socket.gaierror`) when there are none."""

NO_SUCH_NAME: Final = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""What getaddrinfo says of a name without addresses; its other errors may pass."""

MISSING_MAX: Final = 10_000
"""How many names that do not exist are remembered."""


def system_lookup(name: str) -> list[str]:
    """Ask the operating system, for the address families this machine has (AI_ADDRCONFIG)."""
    infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [str(info[4][0]) for info in infos]


class Resolver(AbstractResolver):
    """Looks names up with `lookup` in at most `threads_max` threads at a time."""

    def __init__(self, lookup: Lookup, *, threads_max: int, missing_ttl_s: float) -> None:
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(threads_max, thread_name_prefix="names")
        self._missing_ttl_s = missing_ttl_s
        self._missing: OrderedDict[str, tuple[float, OSError]] = OrderedDict()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of `host`, as aiohttp wants them. Raises OSError."""
        del family  # aiohttp drops the addresses of families it was told not to use
        loop = asyncio.get_running_loop()
        self._raise_if_missing(host, loop.time())
        try:
            addresses = await loop.run_in_executor(self._threads, self._lookup, host)
        except socket.gaierror as error:
            if error.errno not in NO_SUCH_NAME:
                raise
            self._missing[host] = (loop.time() + self._missing_ttl_s, error)
            if len(self._missing) > MISSING_MAX:
                self._missing.popitem(last=False)
            raise
        except (UnicodeError, ValueError) as error:  # a label too long or empty for the IDNA codec
            raise socket.gaierror(socket.EAI_NONAME, f"{host} is not a name") from error
        return [_result(host, port, address) for address in dict.fromkeys(addresses)]

    async def close(self) -> None:
        """Let the threads end; lookups under way are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _raise_if_missing(self, host: str, now_s: float) -> None:
        """Fail as the last lookup of this name failed, if that was a short while ago."""
        expires_s, error = self._missing.get(host, (0.0, None))
        if error is None:
            return
        if expires_s > now_s:
            raise socket.gaierror(*error.args)
        del self._missing[host]


def _result(host: str, port: int, address: str) -> ResolveResult:
    """One address in aiohttp's form."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
