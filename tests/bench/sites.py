"""What the synthetic web says: a pure function of (seed, host, path).

The path says what the URL is, so that a workload chooses the shares and every side of a benchmark gets the
same:

    /a/N            a page                      /img/X.jpg /img/X.png   an image
    /private/N      a page robots.txt forbids   /gone/N                 404
    /broken/N       500                         /slow/MS/N              a page after MS milliseconds
    /RANK.N         on s*.bench: 301 to page N of host RANK
    /SHORT.RANK.N   on s*.bench: 302 to the same on another shortener
"""

from hashlib import blake2b
from random import Random
from typing import NamedTuple

from tests.bench.pages import Template, Words, jpeg, png, pool

TEMPLATES = 64
IMAGE_SIZES = ((1200, 630), (1296, 729), (800, 450), (640, 640), (120, 90), (1920, 1080))
DELAY_S_MAX = 30.0
_TITLE_WORDS = 2048
_NO_RULES_EVERY = 8  # one host in eight has no robots.txt, as on the web


class Reply(NamedTuple):
    """One answer: the head as it goes on the wire, the body, and how long the site takes to think (s)."""

    status: int
    head: bytes
    body: bytes
    delay_s: float = 0.0


def head(status: bytes, content_type: bytes, size: int, extra: bytes = b"") -> bytes:
    """Return a response head; `size` is the body's length in bytes."""
    return b"HTTP/1.1 %b\r\nServer: bench\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n" % (
        status,
        content_type,
        size,
        extra,
    )


class SyntheticWeb:
    """Every host of the synthetic web: power-law sites `h<rank>.bench` and shorteners `s<n>.bench`."""

    def __init__(self, seed: int) -> None:
        """Make the pool of templates and images; about half a second."""
        self.seed = seed
        self.templates: list[Template] = pool(seed, TEMPLATES)
        words = Words(Random(seed), 1000)
        self.words = [word.encode() for word in words.some(_TITLE_WORDS)]
        self.images = {
            b"png": [png(*size) for size in IMAGE_SIZES],
            b"jpg": [jpeg(*size) for size in IMAGE_SIZES],
        }

    def reply(self, host: bytes, target: bytes) -> Reply:
        """Answer one request; `host` is the Host header (port included), `target` path and query."""
        path = target.partition(b"?")[0]
        kind, _, rest = path[1:].partition(b"/")
        if kind in (b"a", b"private"):
            return self._page(host, target)
        if not rest and host[:1] == b"s" and kind.count(b".") in (1, 2):
            return _short(host, kind)
        match kind:
            case b"robots.txt":
                reply = self._robots(host)
            case b"img":
                reply = self._image(host, path)
            case b"slow":
                reply = self._page(host, target)._replace(delay_s=_delay_s(rest))
            case b"broken":
                reply = _error(500, b"500 Internal Server Error")
            case _:
                reply = _error(404, b"404 Not Found")
        return reply

    def _mark(self, host: bytes, target: bytes) -> int:
        """Return 64 bits that depend on (seed, host without port, target) alone."""
        key = b"%d\0%b\0%b" % (self.seed, host.partition(b":")[0], target)
        return int.from_bytes(blake2b(key, digest_size=8).digest(), "little")

    def _page(self, host: bytes, target: bytes) -> Reply:
        mark = self._mark(host, target)
        chosen = self.templates[mark % TEMPLATES]
        words = self.words
        title = b"%b %b %b %b %08x" % (
            words[mark >> 8 & 2047].capitalize(),
            words[mark >> 19 & 2047],
            words[mark >> 30 & 2047],
            words[mark >> 41 & 2047],
            mark >> 32,
        )
        body = chosen.fill(title, b"http://" + host + target, host, b"%x" % (mark & 0xFFFFFF))
        return Reply(200, head(b"200 OK", b"text/html; charset=utf-8", len(body)), body)

    def _robots(self, host: bytes) -> Reply:
        if self._mark(host, b"/robots.txt") % _NO_RULES_EVERY == 0:
            return _error(404, b"404 Not Found")
        body = (
            b"User-agent: *\nDisallow: /private/\nDisallow: /admin\nAllow: /\n\nSitemap: http://%b/sitemap.xml\n" % host
        )
        return Reply(200, head(b"200 OK", b"text/plain", len(body)), body)

    def _image(self, host: bytes, path: bytes) -> Reply:
        suffix = path.rpartition(b".")[2]
        kind = suffix if suffix in self.images else b"jpg"
        body = self.images[kind][self._mark(host, path) % len(IMAGE_SIZES)]
        return Reply(200, head(b"200 OK", b"image/png" if kind == b"png" else b"image/jpeg", len(body)), body)


def _delay_s(rest: bytes) -> float:
    delay_ms = rest.partition(b"/")[0]
    return min(int(delay_ms) / 1000, DELAY_S_MAX) if delay_ms.isdigit() else 0.0


def _error(status: int, line: bytes) -> Reply:
    body = b"<!DOCTYPE html><html lang=en><title>%b</title><p>%b</p></html>\n" % (line, line)
    return Reply(status, head(line, b"text/html; charset=utf-8", len(body)), body)


def _short(host: bytes, code: bytes) -> Reply:
    """Redirect a short link: its code is its target, so the web needs no table of links."""
    _, _, port = host.partition(b":")
    colon = b":" + port if port else b""
    parts = code.split(b".")
    if len(parts) == 3:
        line, status = b"302 Found", 302
        location = b"http://s%b.bench%b/%b.%b" % (parts[0], colon, parts[1], parts[2])
    else:
        line, status = b"301 Moved Permanently", 301
        location = b"http://h%b.bench%b/a/%b" % (parts[0], colon, parts[1])
    return Reply(status, head(line, b"text/html", 0, b"Location: %b\r\n" % location), b"")
