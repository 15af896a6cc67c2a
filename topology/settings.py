"""Every knob: one frozen object, read once from defaults, a TOML file, the environment and flags, in that order.

A name says its unit, and `_max` marks a bound. Nothing is unlimited. An unknown or impossible value stops the start
with the name, the value and the range.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final

from topology.errors import Refusal

PREFIX: Final = "SPIDERDUCK_"
STAGES: Final = ("extract", "decide", "fetch", "parse", "archive", "complete")
_DAY_S: Final = 86_400.0
_PORT_MAX: Final = 65_535

Network = IPv4Network | IPv6Network


def _number(default: float, why: str, least: float, most: float, kind: Callable[[Any], Any] = float) -> Any:
    return field(default=kind(default), metadata={"why": why, "least": least, "most": most, "kind": kind})


def _count(default: int, why: str, least: int, most: int) -> Any:
    return _number(default, why, least, most, _whole)


def _whole(value: Any) -> int:
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError("a whole number")
    return number


def _other(default: Any, why: str, kind: Callable[[Any], Any]) -> Any:
    return field(default=default, metadata={"why": why, "kind": kind})


def _text(value: Any) -> str:
    """Printable ASCII: what goes into a header or a URL must not end a line there."""
    if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable():
        raise ValueError("a text of printable ASCII characters")
    return value


def _product_token(value: Any) -> str:
    """RFC 9309, 2.2.1: letters, `_` and `-`; a robots.txt could not name anything else."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_-]+", value):
        raise ValueError("a product token: letters, _ and - (RFC 9309, 2.2.1)")
    return value


def _path(value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError("a path")
    return Path(value)


def _flag(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = words.get(str(value).lower())
    if found is None:
        raise ValueError("true or false")
    return found


def _words(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ValueError("a list")  # noqa: TRY004 - it becomes a Refusal like every other value
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _stages(value: Any) -> tuple[str, ...]:
    chosen = _words(value)
    if not chosen or set(chosen) - set(STAGES):
        raise ValueError(f"some of {', '.join(STAGES)}")
    return chosen


def _networks(value: Any) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(part) for part in _words(value))
    except ValueError as error:
        raise ValueError(f"networks such as 127.0.0.0/8 ({error})") from None


def _host_port(value: Any) -> tuple[str, int] | None:
    if value is None or isinstance(value, tuple):
        return value
    host, colon, port = str(value).rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) <= _PORT_MAX:
        raise ValueError("HOST:PORT")
    return host.strip("[]"), int(port)


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("a table (TOML)")  # noqa: TRY004 - it becomes a Refusal like every other value
    return value


@dataclass(frozen=True, slots=True)
class DomainSettings:
    """What one domain has otherwise than the rest: `[domains."example.com"]` in the TOML file."""

    rate_per_s: float | None = None
    window_fetched_s: float | None = None
    window_gone_s: float | None = None
    window_failed_s: float | None = None
    window_refused_s: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one worker. See the fields' reasons: `spiderduck settings` prints them."""

    # Where things are
    data: Path = _other(Path("data"), "directory of the log, tables, metadata and content of local mode", _path)  # noqa: RUF009 - a Path is immutable
    log_url: str = _other("embedded:", "embedded: or kafka://host:port", _text)
    metadata_url: str = _other("sqlite:", "metadata store; sqlite: is a file under data", _text)
    content_url: str = _other("file:", "content store; file: is a directory under data", _text)
    stages: tuple[str, ...] = _other(STAGES, "the stages this worker runs", _stages)
    partitions: int = _count(4, "partitions of every topic; cannot change once there is data", 1, 1024)
    web_host: str = _other("127.0.0.1", "address the web views listen on", _text)
    web_port: int = _count(6066, "port of the web views", 1, 65535)
    commit_interval_s: float = _number(0.5, "how often progress is committed", 0.05, 60)
    drain_s_max: float = _number(10, "how long a stopping worker finishes what is in flight", 0, 600)
    tail_keep_s: float = _number(7 * _DAY_S, "how long url-completed and dead-letters are kept", 60, 365 * _DAY_S)

    # Deciding
    window_fetched_s: float = _number(7 * _DAY_S, "a fetched URL is answered from memory", 0, 365 * _DAY_S)
    window_gone_s: float = _number(_DAY_S, "a 404, 410 or other refusal by status", 0, 365 * _DAY_S)
    window_failed_s: float = _number(600, "a transient failure", 0, 365 * _DAY_S)
    window_refused_s: float = _number(_DAY_S, "a refusal by robots.txt or by the guard", 0, 365 * _DAY_S)
    grace_s: float = _number(_DAY_S, "an entry is kept this long past its window", 0, 365 * _DAY_S)
    pending_s_max: float = _number(6 * 3600, "a request that waited this long ends as expired", 10, 30 * _DAY_S)
    waiting_max: int = _count(500, "requests attached to one fetch; more are deferred", 1, 100_000)
    sweep_interval_s: float = _number(300, "how often the urls table is swept", 1, _DAY_S)

    # Fetching
    rate_per_s: float = _number(10, "requests per second per registered domain", 0.001, 100_000)
    wait_s_max: float = _number(10, "a slot further away than this defers the request", 0, 3600)
    queue_urls_max: int = _count(2_000, "requests queued for one domain; more are rejected", 1, 1_000_000)
    queued_urls_max: int = _count(8_000, "requests queued over all domains; more stay in the log", 16, 1_000_000)
    deferred_urls_max: int = _count(10_000, "deferred requests held in memory; more stay in the log", 16, 1_000_000)
    fetches_max: int = _count(128, "fetches under way at the same time", 1, 10_000)
    redirects_max: int = _count(10, "redirects followed for one request", 0, 50)
    refresh_s_max: float = _number(5, "a meta refresh of at most this delay is a redirect", 0, 60)
    body_bytes_max: int = _count(2 << 20, "a body is cut here, after content decoding", 1024, 1 << 28)
    image_bytes_max: int = _count(256 << 10, "an image is cut here: its header is what counts", 1024, 1 << 28)
    header_bytes_max: int = _count(64 << 10, "response headers, together", 1024, 1 << 20)
    fetch_s_max: float = _number(15, "one fetch, from connecting to the last byte", 0.1, 600)
    connect_s_max: float = _number(5, "connecting, TLS included", 0.1, 60)
    retries_max: int = _count(2, "retries of a transient failure", 0, 20)
    retry_s: float = _number(1, "wait before the first retry; doubles each time", 0.01, 3600)
    user_agent: str = _other(
        "Mozilla/5.0 (compatible; SpiderDuck/0.1; +https://spiderduck.example/bot)", "User-Agent sent", _text
    )
    robots_agent: str = _other("SpiderDuck", "product token looked for in robots.txt", _product_token)
    robots_s: float = _number(_DAY_S, "robots.txt is kept (RFC 9309: no more than a day)", 1, _DAY_S)
    robots_error_s: float = _number(
        300, "an unreachable robots.txt forbids this long before it is asked again", 1, 3600
    )
    robots_bytes_max: int = _count(
        512 << 10, "robots.txt is read up to here (RFC 9309: at least 500 KiB)", 512_000, 1 << 23
    )
    web_process: bool = _other(default=True, why="ask the web from a process of its own", kind=_flag)
    images: bool = _other(default=True, why="fetch the representative image for its type and size", kind=_flag)
    allow_net: tuple[Network, ...] = _other((), "networks the SSRF guard lets through", _networks)
    connect_to: tuple[str, int] | None = _other(None, "HOST:PORT every connection goes to (testing)", _host_port)

    # Parsing
    parse_processes: int = _count(1, "processes that parse", 1, 64)
    parse_s_max: float = _number(5, "one page may take this long to parse", 0.1, 60)
    parse_bytes_max: int = _count(1 << 20, "this much of a page is parsed", 1024, 1 << 28)

    # Archiving
    segment_bytes_max: int = _count(256 << 20, "a WARC segment is closed at this size", 1 << 16, 8 << 30)
    segment_s_max: float = _number(600, "a WARC segment is closed at this age", 1, _DAY_S)

    # By domain (TOML only)
    domains: Mapping[str, Any] = field(
        default_factory=dict, metadata={"why": "overrides by registered domain", "kind": _table}
    )
    site_rules: Mapping[str, Any] = field(
        default_factory=dict, metadata={"why": "selectors by registered domain", "kind": _table}
    )

    def domain(self, name: str) -> DomainSettings:
        """Return what this registered domain has otherwise than the rest."""
        own: DomainSettings = self.domains.get(name, _NOTHING_SPECIAL)
        return own

    @staticmethod
    def load(
        *,
        config: Path | None = None,
        environ: Mapping[str, str] = os.environ,
        flags: Mapping[str, Any] | None = None,
    ) -> "Settings":
        """Read defaults, then the TOML file, then `SPIDERDUCK_*`, then flags; later ones win.

        Raises:
            Refusal: a name is unknown, or a value is not of its kind or out of its range.
        """
        values: dict[str, Any] = {}
        if config is not None:
            values.update(_from_toml(config))
        values.update(_from_environment(environ))
        values.update({name: _checked(name, value, "flag") for name, value in (flags or {}).items()})
        return Settings(**values)


_NOTHING_SPECIAL: Final = DomainSettings()
_FIELDS: Final = {knob.name: knob for knob in fields(Settings)}


def explain() -> list[tuple[str, str, str]]:
    """Return (name, default, reason) of every setting."""
    return [
        (knob.name, "" if knob.default is MISSING else str(knob.default), str(knob.metadata["why"]))
        for knob in fields(Settings)
    ]


def _from_toml(path: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Refusal(f"the configuration {path} cannot be read: {error}") from error
    return {name: _checked(name, value, str(path)) for name, value in raw.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _checked(name, value, PREFIX + name.upper())
        for name, value in (
            (key[len(PREFIX) :].lower(), text) for key, text in environ.items() if key.startswith(PREFIX)
        )
    }


def _checked(name: str, value: Any, where: str) -> Any:
    knob = _FIELDS.get(name)
    if knob is None:
        raise Refusal(f"{where}: there is no setting {name!r}; the settings are {', '.join(sorted(_FIELDS))}")
    if name == "domains":
        tables = _in_range(name, value, where, knob.metadata)
        return {domain.lower(): _checked_domain(domain, own, where) for domain, own in tables.items()}
    return _in_range(name, value, where, knob.metadata)


def _in_range(name: str, value: Any, where: str, limits: Mapping[str, Any]) -> Any:
    kind = limits["kind"]
    try:
        if isinstance(value, bool) and kind is not _flag:
            raise ValueError("not a boolean")  # noqa: TRY301 - caught below, with the name
        good = kind(value)
    except (TypeError, ValueError, OverflowError) as error:
        expected = {_whole: "a whole number", float: "a number"}.get(kind, str(error))
        raise Refusal(f"{where}: {name} = {value!r} is impossible: it must be {expected}") from None
    least, most = limits.get("least"), limits.get("most")
    if least is not None and most is not None and not least <= good <= most:
        raise Refusal(f"{where}: {name} = {value!r} is impossible: it must lie between {least:.12g} and {most:.12g}")
    return good


def _checked_domain(domain: str, own: Any, where: str) -> DomainSettings:
    known = {knob.name for knob in fields(DomainSettings)}
    values = _in_range(f"domains.{domain}", own, where, _FIELDS["domains"].metadata)
    for name in values:
        if name not in known:
            raise Refusal(f"{where}: domains.{domain} has no setting {name!r}; it may set {', '.join(sorted(known))}")
    return DomainSettings(
        **{
            name: _in_range(f"domains.{domain}.{name}", value, where, _FIELDS[name].metadata)
            for name, value in values.items()
        }
    )
