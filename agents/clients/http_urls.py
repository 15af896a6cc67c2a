"""The parts of a URL that a request is made of. Pure; for URLs in the form the WHATWG parser writes."""

from typing import Final

from yarl import URL

_SCHEMES: Final = frozenset({"http", "https"})


class UnusableUrlError(ValueError):
    """No request can be made of this URL."""


def split(url: str) -> tuple[str, str, str]:
    """Scheme, authority, and what is asked for: path and query. Raises UnusableUrlError."""
    scheme, _, tail = url.partition("://")
    authority, slash, path = tail.partition("/")
    if scheme not in _SCHEMES or not slash or not authority:
        raise UnusableUrlError(f"{url[:200]!r} is not an http URL in the form of the WHATWG parser")
    return scheme, authority, slash + path.partition("#")[0]


def wire_url(url: str) -> URL:
    """The URL as aiohttp takes it, with nothing rewritten: escapes mean something to their server."""
    try:
        wire = URL(url, encoded=True)
        host = wire.raw_host  # looked at here, because yarl reads the authority when it is first asked for
    except ValueError as error:
        raise UnusableUrlError(str(error)) from error
    if not host:
        raise UnusableUrlError("it has no host")
    return wire


def host_of(authority: str) -> str:
    """The host of an authority, an IPv6 address in its brackets."""
    host = authority.rpartition("@")[2]
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]


def authority_of(target: tuple[str, int]) -> str:
    """Host and port as they stand in a URL."""
    host, port = target
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
