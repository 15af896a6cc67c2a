"""What the demo's sites answer: one table of addresses, and a pure function over it."""

import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

ANSWERS_MAX: Final = 256  # answers remembered, several times what the demo asks
_PAGES: Final = files("topology.demo") / "pages"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the demo's web. `delay_s` passes before it."""

    status: int
    content_type: str
    body: bytes = b""
    location: str | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of `pages/`. `charset` is what it travels in; the header names it only when `declared`."""

    file: str
    status: int = 200
    charset: str = "utf-8"
    declared: bool = True
    delay_s: float = 0.0

    def answer(self) -> Answer:
        text = (_PAGES / self.file).read_text(encoding="utf-8")
        content_type = f"text/html; charset={self.charset}" if self.declared else "text/html"
        return Answer(self.status, content_type, text.encode(self.charset), delay_s=self.delay_s)


@dataclass(frozen=True, slots=True)
class _Moved:
    """A redirect, as shorteners and moved pages give it (RFC 9110, 15.4)."""

    to: str
    status: int = 301

    def answer(self) -> Answer:
        return Answer(self.status, "text/html", location=self.to)


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture drawn here: two colours, top and bottom. Sizes in pixels, colours in RGB."""

    width: int
    height: int
    sky: tuple[int, int, int]
    ground: tuple[int, int, int]

    def answer(self) -> Answer:
        return Answer(200, "image/png", png(self.width, self.height, self.sky, self.ground))


@dataclass(frozen=True, slots=True)
class _Text:
    """A plain text."""

    text: str

    def answer(self) -> Answer:
        return Answer(200, "text/plain; charset=utf-8", self.text.encode())


_SITES: Final[dict[str, dict[str, _Page | _Moved | _Picture | _Text]]] = {
    "news.example.com": {
        "/2026/heron": _Page("heron.html"),
        "/2026/bakery": _Page("bakery.html"),
        "/live": _Page("live.html"),  # leads on by meta refresh
        "/drafts/canal": _Page("draft.html"),
        "/robots.txt": _Text("User-agent: *\nDisallow: /drafts/\n"),
        "/img/heron.png": _Picture(1200, 630, (40, 60, 90), (200, 170, 120)),
        "/img/rolls.png": _Picture(640, 640, (240, 220, 190), (150, 90, 40)),
    },
    "blog.example.org": {
        "/sterne": _Page("stars.html"),
        "/sourdough": _Page("sourdough.html", declared=False),
        "/img/stars.png": _Picture(800, 450, (5, 5, 30), (20, 30, 20)),
        "/robots.txt": _Text("User-agent: *\nAllow: /\n"),
    },
    "shop.example.net": {
        "/lampe-canard": _Page("lamp.html"),
        "/img/lampe.png": _Picture(1000, 1000, (250, 245, 235), (190, 150, 60)),
    },
    "video.example": {
        "/w/pulpo": _Page("video.html"),
        "/img/pulpo.png": _Picture(1280, 720, (10, 40, 60), (120, 40, 60)),
    },
    "museum.example": {
        "/ukiyoe": _Page("prints.html", charset="shift_jis", declared=False),
        "/en/rain": _Page("rain.html"),
        "/img/rain.png": _Picture(900, 1350, (90, 110, 130), (60, 70, 60)),
    },
    "library.example": {
        "/ko/night": _Page("library.html"),
        "/opening-hours.txt": _Text("Monday to Thursday 10-18, Friday 10-24.\nClosed when it is too sunny to read.\n"),
        "/img/icon.png": _Picture(64, 64, (30, 30, 60), (240, 200, 80)),
    },
    "slow.example": {"/relatorio": _Page("report.html", delay_s=1.5)},
    "s.example": {
        "/heron": _Moved("http://news.example.com/2026/heron"),
        "/Pulpo": _Moved("http://l.example/q7"),  # the first of two shorteners
        "/round": _Moved("http://l.example/round", 302),  # a loop with the next
        "/lamp": _Moved("http://shop.example.net/lampe-canard?utm_source=shortener&utm_medium=social", 302),
    },
    "l.example": {
        "/q7": _Moved("http://video.example/w/pulpo", 302),
        "/round": _Moved("http://s.example/round"),
    },
}

HOSTS: Final = frozenset(_SITES)


@lru_cache(ANSWERS_MAX)
def answer(host: str, target: str) -> Answer:
    """Answer `host` (no port) and `target` (path and query); what nobody wrote is a 404. Queries change nothing."""
    found = _SITES.get(host, {}).get(target.partition("?")[0])
    return (found or _Page("missing.html", 404)).answer()


def png(width: int, height: int, sky: tuple[int, int, int], ground: tuple[int, int, int]) -> bytes:
    """Draw a picture in two colours as a PNG (ISO/IEC 15948): a signature, then IHDR, PLTE, IDAT and IEND."""
    upper = height * 2 // 3
    # One bit per pixel, each row behind its filter byte; 0 is the sky, 1 the ground.
    row = (width + 7) // 8
    rows = (b"\0" + bytes(row)) * upper + (b"\0" + b"\xff" * row) * (height - upper)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)),
        (b"PLTE", bytes((*sky, *ground))),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
