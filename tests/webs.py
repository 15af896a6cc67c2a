"""A web for the tests: any host, on one loopback port, saying what a test tells it to say.

    with SavedWeb() as web:
        web.redirect("http://a.test/1", "http://b.test/2")
        ...                      # point the product at 127.0.0.1:web.port
        assert web.times("b.test") == pytest.approx([...])

Whatever a test says nothing about is a small page made from its own URL; robots.txt is a 404. Given the
folder of shared data, the saved pages answer at their own addresses, and `http://s.test/<n>` is a short link
to page n.
"""

import asyncio
import contextlib
import gzip
import html
import itertools
import json
import pathlib
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.bench.pages import jpeg, png

HEAD_BYTES_MAX = 1 << 20
START_S_MAX = 10.0
SHORT_HOST = "s.test"
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived: monotonic seconds, host without port, path with query, headers in lower case."""

    at_s: float
    method: str
    host: str
    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What to say, and how badly.

    `delay_s` passes before the first byte. `pause_s` passes between pieces of `piece_bytes`.
    `cut_after_bytes` of the body, the connection is cut. `declared_bytes` lies in Content-Length. `raw`
    replaces everything by these bytes.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", HTML),)
    delay_s: float = 0.0
    pause_s: float = 0.0
    piece_bytes: int = 1 << 16
    cut_after_bytes: int | None = None
    declared_bytes: int | None = None
    raw: bytes | None = None


Say = Answer | Callable[[Asked], Answer]


def page(title: str, *, head: str = "", body: str = "", charset: str = "utf-8") -> Answer:
    """Return a small page in `charset`, which its Content-Type names."""
    text = f"<!DOCTYPE html><html><head><title>{html.escape(title)}</title>{head}</head><body>{body}</body></html>"
    return Answer(body=text.encode(charset), headers=(("Content-Type", f"text/html; charset={charset}"),))


def redirect(to: str, status: int = 301) -> Answer:
    """Return a redirect; `to` goes into Location as it is."""
    return Answer(status, headers=(("Location", to),))


def image(width: int, height: int, kind: str = "png") -> Answer:
    """Return a picture of this size in pixels, png or jpeg."""
    return Answer(
        body=png(width, height) if kind == "png" else jpeg(width, height), headers=(("Content-Type", f"image/{kind}"),)
    )


def bomb(decoded_bytes: int) -> Answer:
    """Return a gzip body that decodes to this many bytes of spaces: a thousandth of it travels."""
    packer, block = zlib.compressobj(9, zlib.DEFLATED, 31), b" " * (1 << 20)
    parts = [
        packer.compress(block[: min(len(block), decoded_bytes - done)]) for done in range(0, decoded_bytes, 1 << 20)
    ]
    return Answer(
        body=b"".join([*parts, packer.flush()]), headers=(("Content-Type", HTML), ("Content-Encoding", "gzip"))
    )


def key(url: str) -> tuple[str, str]:
    """Return (host, path with query): what a request shows of a URL. Scheme, port and fragment do not arrive."""
    parts = urlsplit(url)
    return parts.hostname or "", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def generated(asked: Asked) -> Answer:
    """Return the page of a URL nobody said anything about; the same URL gives the same bytes."""
    if asked.target == "/robots.txt":
        return Answer(404, b"", ())
    name = f"{asked.host}{asked.target}"
    tags = f'<meta property="og:description" content="All about {html.escape(name)}">'
    return page(f"Page {name}", head=tags, body=f"<p>This is {html.escape(name)}.</p>")


@dataclass(slots=True)
class _Saved:
    """The saved pages: manifest entries in order, found by (host, path); read when first asked for."""

    folder: pathlib.Path | None
    entries: list[dict[str, str]] = field(default_factory=list)
    at: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is not None:
            self.entries = json.loads((self.folder / "manifest.json").read_text())
            self.at = {key(self.url(number)): entry["file"] for number, entry in enumerate(self.entries)}

    def answer(self, asked: Asked) -> Answer | None:
        if asked.host == SHORT_HOST and asked.target[1:].isdigit() and int(asked.target[1:]) < len(self.entries):
            return redirect(self.url(int(asked.target[1:])))
        name = self.at.get((asked.host, asked.target))
        if name is None or self.folder is None:
            return None
        return Answer(body=gzip.decompress((self.folder / name).read_bytes()))

    def url(self, number: int) -> str:
        # The test web speaks no TLS, so every saved page is at the http form of its address. Some were saved under
        # one made-up address: a number keeps them apart.
        address = self.entries[number]["url"].partition("://")[2].partition("#")[0]
        same = sum(entry["url"] == self.entries[number]["url"] for entry in self.entries)
        return f"http://{address}" if same == 1 else f"http://{address}?saved={number}"


class SavedWeb:
    """A web in a thread. Use as a context manager; `port` is a free loopback port while it runs."""

    def __init__(self, shared: pathlib.Path | None = None) -> None:
        """Serve generated pages, and the saved pages of `shared` / web when given."""
        self.port = 0
        self.requests: list[Asked] = []
        self._saved = _Saved(shared / "web" if shared else None)
        self._said: dict[tuple[str, str], list[Say]] = {}
        self._count: dict[tuple[str, str], int] = defaultdict(int)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="saved-web", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    # -- what a test says ------------------------------------------------------------------------------------

    def say(self, url: str, *answers: Say) -> str:
        """Answer `url` with each of these in turn, the last for ever after; return `url`."""
        self._said[key(url)] = list(answers)
        return url

    def redirect(self, *urls: str, status: int = 301) -> str:
        """Make each URL lead to the next; return the first. A loop is a list that ends where it began."""
        for url, to in itertools.pairwise(urls):
            self.say(url, redirect(to, status))
        return urls[0]

    def refresh(self, url: str, to: str, seconds: int = 0) -> str:
        """Make `url` a page that leads on by meta refresh (HTML, pragma directives); return `url`."""
        return self.say(
            url, page("Moved", head=f'<meta http-equiv="refresh" content="{seconds}; url={html.escape(to)}">')
        )

    def robots(self, host: str, rules: str | Answer) -> None:
        """Give `host` a robots.txt."""
        plain = (("Content-Type", "text/plain"),)
        self.say(
            f"http://{host}/robots.txt", Answer(body=rules.encode(), headers=plain) if isinstance(rules, str) else rules
        )

    # -- what a test asks ------------------------------------------------------------------------------------

    def url(self, number: int) -> str:
        """Return the address saved page `number` answers at here."""
        return self._saved.url(number)

    def short(self, number: int) -> str:
        """Return the short link to saved page `number`."""
        return f"http://{SHORT_HOST}/{number}"

    @property
    def saved(self) -> int:
        """Return how many saved pages there are."""
        return len(self._saved.entries)

    def times(self, domain: str, *, robots: bool = False) -> list[float]:
        """Return when requests reached `domain` and its subdomains (monotonic seconds, in order)."""
        return [
            asked.at_s
            for asked in self.requests
            if (asked.host == domain or asked.host.endswith("." + domain)) and (robots or asked.target != "/robots.txt")
        ]

    def asked(self, url: str) -> int:
        """Return how often `url` was asked for."""
        wanted = key(url)
        return sum((asked.host, asked.target) == wanted for asked in self.requests)

    # -- serving ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_S_MAX):
            raise TimeoutError("the test web did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_S_MAX)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=HEAD_BYTES_MAX, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()  # the connections end with their tasks, which asyncio.run() cancels

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            # Abort: a close would wait for a client that may read a slow body for ever.
            with contextlib.suppress(OSError):
                await _flushed(writer)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = parse(await reader.readuntil(b"\r\n\r\n"))
        await reader.readexactly(int(asked.headers.get("content-length", "0")))
        self.requests.append(asked)
        answer = self._answer(asked)
        await asyncio.sleep(answer.delay_s)
        await _send(writer, answer, with_body=asked.method != "HEAD")
        keeps = answer.raw is None and answer.cut_after_bytes is None
        return keeps and asked.headers.get("connection", "").lower() != "close"

    def _answer(self, asked: Asked) -> Answer:
        wanted = (asked.host, asked.target)
        said = self._said.get(wanted)
        if not said:
            return self._saved.answer(asked) or generated(asked)
        say = said[min(self._count[wanted], len(said) - 1)]
        self._count[wanted] += 1
        return say if isinstance(say, Answer) else say(asked)


def parse(head: bytes) -> Asked:
    """Read a request head (RFC 9112); raise ValueError when its first line is not one."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    return Asked(time.monotonic(), method, headers.get("host", "").partition(":")[0].lower(), target, headers)


async def _send(writer: asyncio.StreamWriter, answer: Answer, *, with_body: bool) -> None:
    if answer.raw is not None:
        writer.write(answer.raw)
        return
    reason = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else "Unknown"
    size = len(answer.body) if answer.declared_bytes is None else answer.declared_bytes
    fields: Iterable[tuple[str, str]] = (*answer.headers, ("Content-Length", str(size)))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    writer.write(f"HTTP/1.1 {answer.status} {reason}\r\n{lines}\r\n".encode("latin-1"))
    body = answer.body[: answer.cut_after_bytes] if with_body else b""
    for start in range(0, len(body), answer.piece_bytes):
        writer.write(body[start : start + answer.piece_bytes])
        await writer.drain()
        if answer.pause_s:
            await asyncio.sleep(answer.pause_s)


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """Let what was written leave before the connection is cut."""
    for _ in range(100):
        if not writer.transport.get_write_buffer_size():
            return
        await asyncio.sleep(0.01)
