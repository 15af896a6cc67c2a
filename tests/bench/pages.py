"""Pages and images of the synthetic web: made once from a seed, distinct by splicing, cheap to serve.

A template is a whole page with holes for title, address, host, description and number. Generating one costs
milliseconds; filling one costs microseconds, so the server's CPU stays out of the measurement. The
proportions (tags per byte, share of scripts, size) are those of 65 saved real pages of 40-140 kB;
`test_synthetic_web.py` holds the result to them.
"""

import random
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

PAGE_BYTES_MEAN = 83_000
_HOST_BYTES = 12  # what a host name is longer than its hole
_OVERSHOOT_BYTES = 450  # a page ends with the piece that crosses its size: half a piece, and the closing tags
LANGUAGES = ("en", "en", "en", "en-US", "en-GB", "es", "fr", "de", "pt-BR", "it", "nl", "tr", None)
TITLE, ADDRESS, HOST, NUMBER = "\x00T\x00", "\x00A\x00", "\x00H\x00", "\x00N\x00"
_HOLES = {TITLE: 0, ADDRESS: 1, HOST: 2, NUMBER: 3}

# Bytes of a page by what they are: (maker, share). Measured: 60 % inside tags, 13 % scripts, 4 % styles.
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeio"] + [
    *("tra", "ver", "win", "wor", "ing", "ent", "ion", "ter", "al", "er", "est", "par", "con", "pro", "men", "our"),
    *(
        "ight",
        "and",
        "tion",
        "ould",
        "ther",
        "sch",
        "aid",
        "urk",
        "pli",
        "gra",
        "cle",
        "ost",
        "und",
        "ück",
        "né",
        "ció",
    ),
]
_FUNCTION_WORDS = [
    *("the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not"),
    *("he", "his", "but", "at", "are", "this", "have", "from"),
]


class Words:
    """Pseudo-words drawn with the frequencies of a language: a few very common, most rare."""

    def __init__(self, rng: random.Random, size: int = 4000) -> None:
        """Make `size` words; the drawing goes on with the same generator."""
        self.rng = rng
        made = ["".join(rng.choices(_SYLLABLES, k=rng.choice((1, 2, 2, 3, 3)))) for _ in range(size)]
        self.words = _FUNCTION_WORDS + made
        self.cumulative: list[float] = []
        total = 0.0
        for rank in range(len(self.words)):
            total += 1 / (rank + 3) ** 1.2
            self.cumulative.append(total)

    def some(self, count: int) -> list[str]:
        """Draw `count` words."""
        return self.rng.choices(self.words, cum_weights=self.cumulative, k=count)

    def sentence(self) -> str:
        """Draw one sentence of 6 to 22 words."""
        words = self.some(self.rng.randint(6, 22))
        return " ".join(words).capitalize() + "."

    def slug(self) -> str:
        """Draw a path segment as news sites write them."""
        return "-".join(self.some(self.rng.randint(3, 7)))

    def token(self, digits: int) -> str:
        """Draw a hexadecimal token: what identifiers and hashes cost in a compressed page."""
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"


def _paragraph(words: Words) -> str:
    text = " ".join(words.sentence() for _ in range(words.rng.randint(1, 4)))
    link = f'<a href="http://{HOST}/a/{words.rng.randrange(10**6)}" rel="nofollow">{" ".join(words.some(3))}</a>'
    return f"<p>{text} {link} <em>{words.sentence()}</em></p>\n"


def _card(words: Words) -> str:
    ident, image = words.token(6), words.token(8)
    label = " ".join(words.some(5))
    return (
        f'<div class="card card--teaser js-card grid__item grid__item--m-6" data-id="{ident}"'
        f' data-pos="{words.rng.randrange(99)}">\n'
        f'  <a class="card__link" href="http://{HOST}/a/{words.slug()}-{words.rng.randrange(10**6)}"'
        f' data-track="teaser|{ident}">\n'
        f'    <img class="card__image lazyload" alt="{label}" width="320" height="180" loading="lazy"'
        f' data-src="http://{HOST}/img/{image}.jpg?w=320&amp;q=75"'
        f' srcset="http://{HOST}/img/{image}.jpg?w=320 320w, http://{HOST}/img/{image}.jpg?w=640 640w">\n'
        f'    <h3 class="card__title">{label}</h3></a>\n'
        f'  <span class="card__time" title="{words.some(1)[0]}">{words.rng.randint(1, 59)} min</span></div>\n'
    )


def _navigation(words: Words) -> str:
    items = "".join(
        f'<li class="nav__item nav__item--level-2"><a class="nav__link" href="/{words.slug()}/"'
        f' title="{words.some(1)[0]}">'
        f"{' '.join(words.some(2))}</a></li>\n"
        for _ in range(words.rng.randint(4, 9))
    )
    return f'<ul class="nav nav--secondary" role="menu">\n{items}</ul>\n'


def _form(words: Words) -> str:
    fields = "".join(
        f'<label class="form__label" for="f{words.token(6)}"><input type="hidden" name="{words.some(1)[0]}"'
        f' value="{words.token(12)}" data-rule="required|max:{words.rng.randrange(500)}"></label>\n'
        for _ in range(words.rng.randint(2, 5))
    )
    return f'<form class="form js-form" method="post" action="/{words.slug()}">\n{fields}</form>\n'


def _icon(words: Words) -> str:
    points = " ".join(f"{words.rng.randrange(240) / 10}" for _ in range(words.rng.randint(10, 40)))
    return f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M{points}z"></path></svg>\n'


def _script(words: Words) -> str:
    pairs = ",".join(
        f'"{words.some(1)[0]}":{{"id":"{words.token(6)}","on":true,"v":{words.rng.randrange(10**5)}}}'
        for _ in range(words.rng.randint(8, 40))
    )
    return f"<script>window.__d=window.__d||[];window.__d.push({{{pairs}}});</script>\n"


def _style(words: Words) -> str:
    rules = "".join(
        f".{words.some(1)[0]}__{words.some(1)[0]}{{margin:{words.rng.randrange(40)}px;color:#{words.token(6)};display:block}}\n"
        for _ in range(words.rng.randint(5, 25))
    )
    return f"<style>\n{rules}</style>\n"


_BODY: tuple[tuple[Callable[[Words], str], float], ...] = (
    (_paragraph, 0.17),
    (_card, 0.36),
    (_navigation, 0.19),
    (_form, 0.07),
    (_icon, 0.04),
    (_script, 0.13),
    (_style, 0.04),
)


def _head(words: Words, language: str | None) -> str:
    section = words.some(1)[0]
    size = '<meta property="og:image:width" content="1200"><meta property="og:image:height" content="630">\n'
    description = f"{words.sentence()} {TITLE} {words.sentence()}"
    lang = f' lang="{language}"' if language else ""
    date = f"2026-{words.rng.randint(1, 12):02}-{words.rng.randint(1, 28):02}"
    author = " ".join(words.some(2)).title()
    return (
        f'<!DOCTYPE html>\n<html{lang} class="no-js">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{TITLE} | {section}</title>\n'
        f'<meta name="description" content="{description}">\n<link rel="canonical" href="{ADDRESS}">\n'
        f'<link rel="icon" href="/favicon.ico">\n<meta property="og:title" content="{TITLE}">\n'
        f'<meta property="og:type" content="article">\n<meta property="og:url" content="{ADDRESS}">\n'
        f'<meta property="og:site_name" content="The {section.title()}">\n'
        f'<meta property="og:description" content="{description}">\n'
        f'<meta property="og:image" content="http://{HOST}/img/{NUMBER}.jpg">\n'
        f"{size if words.rng.random() < 0.5 else ''}"
        f'<meta name="twitter:card" content="summary_large_image">\n<meta name="twitter:title" content="{TITLE}">\n'
        f'<meta name="twitter:image" content="http://{HOST}/img/{NUMBER}.jpg">\n'
        f'<meta property="article:published_time" content="{date}T08:30:00Z">\n'
        f'<script type="application/ld+json">{{"@context":"https://schema.org","@type":"NewsArticle",'
        f'"headline":"{TITLE}","mainEntityOfPage":"{ADDRESS}","author":{{"@type":"Person","name":"{author}"}}}}</script>\n'
        f"</head>\n"
    )


@dataclass(frozen=True, slots=True)
class Template:
    """A page with holes: `literals[i]` is followed by the hole `holes[i]`, and one literal ends it."""

    literals: tuple[bytes, ...]
    holes: tuple[int, ...]

    def fill(self, title: bytes, address: bytes, host: bytes, number: bytes) -> bytes:
        """Return the page of this title and address."""
        values = (title, address, host, number)
        parts: list[bytes] = []
        for literal, hole in zip(self.literals, self.holes, strict=False):
            parts.append(literal)
            parts.append(values[hole])
        parts.append(self.literals[-1])
        return b"".join(parts)


def template(rng: random.Random, words: Words, bytes_wanted: int) -> Template:
    """Make a page of about `bytes_wanted` bytes: a head with the usual cards, then a body in the usual shares."""
    pieces = [_head(words, rng.choice(LANGUAGES)), f'<body class="page">\n<h1 class="title">{TITLE}</h1>\n']
    size = sum(map(len, pieces))
    spent = [0.0] * len(_BODY)
    while size < bytes_wanted:
        # The kind that is furthest behind its share comes next: every page has the same proportions.
        index = min(range(len(_BODY)), key=lambda kind: spent[kind] / _BODY[kind][1])
        piece = _BODY[index][0](words)
        spent[index] += len(piece)
        size += len(piece) + piece.count(HOST) * _HOST_BYTES
        pieces.append(piece)
    body = pieces[2:]
    rng.shuffle(body)
    text = "".join([*pieces[:2], *body, "</body>\n</html>\n"])
    parts = re.split("(\x00[TAHN]\x00)", text)
    return Template(
        tuple(part.encode() for part in parts[::2]),
        tuple(_HOLES[part] for part in parts[1::2]),
    )


def pool(seed: int, count: int) -> list[Template]:
    """Make `count` templates whose mean size is `PAGE_BYTES_MEAN`; sizes are spread as real pages' are (log-normal)."""
    rng = random.Random(seed)
    words = Words(rng)
    sizes = [min(max(rng.lognormvariate(0, 0.45), 0.3), 3.0) for _ in range(count)]
    scale = PAGE_BYTES_MEAN * count / sum(sizes)
    return [template(rng, words, int(size * scale) - _OVERSHOOT_BYTES) for size in sizes]


def png(width: int, height: int) -> bytes:
    """Return a black PNG of this size in pixels (PNG specification: signature, IHDR, IDAT, IEND)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + bytes((width + 7) // 8)) * height, 9)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, bytes_wanted: int = 16_000) -> bytes:
    """Return a JPEG of this size in pixels: headers (ITU T.81: JFIF, DQT, DHT, SOF0, SOS), then noise for a scan."""

    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data

    tables = (
        segment(0xDB, b"\0" + bytes([16] * 64)) + segment(0xC4, b"\0" + bytes(16)) + segment(0xC4, b"\x10" + bytes(16))
    )
    frame = segment(0xC0, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    start = b"\xff\xd8" + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0") + tables + frame + segment(0xDA, b"\1\1\0\0\x3f\0")
    noise = random.Random(width * height).randbytes(max(bytes_wanted - len(start) - 2, 0)).replace(b"\xff", b"\xfe")
    return start + noise + b"\xff\xd9"
