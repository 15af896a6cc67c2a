"""HTTP messages as the archive writes them: true to what was received, and true of the body that is stored.

The stored body is decoded, and perhaps cut, so three headers as received would be false of it. They are kept
under another name, `X-Crawler-Content-Encoding`, `X-Crawler-Transfer-Encoding` and
`X-Crawler-Content-Length`, which is the practice of Common Crawl's news-crawl and StormCrawler's WARC module,
and a Content-Length is corrected. All else is as received, in its order, except that no value can end its
line: a site must not be able to write headers, let alone records, into the archive.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from topology.records import Page

HIDDEN: Final = "X-Crawler-"

_CODINGS: Final = frozenset({"content-encoding", "transfer-encoding"})
_LINE_ENDS: Final = re.compile(r"[\r\n\0]+")
_NOT_TOKEN: Final = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]")  # RFC 9110, 5.6.2


def response_block(page: Page) -> bytes:
    """Status line and headers of a response, ending in the empty line."""
    lines = [f"HTTP/1.1 {page.http.status} {one_line(page.reason_phrase)}"]
    length, told = str(page.http.body_bytes), False
    corrected = False
    for name, value in page.response_headers:
        lower = name.lower()
        if lower in _CODINGS:
            name = HIDDEN + name  # noqa: PLW2901 - the header goes on under this name
        elif lower == "content-length":
            if value.strip() == length:
                told = True
            else:
                name, corrected = HIDDEN + name, True  # noqa: PLW2901 - as above
        lines.append(_header(name, value))
    if corrected and not told:
        lines.append(f"Content-Length: {length}")
    return _block(lines)


def request_block(page: Page) -> bytes:
    """Request line and headers of the request, ending in the empty line."""
    parts = urlsplit(page.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"GET {one_line(target)} HTTP/1.1"]
    lines += [_header(name, value) for name, value in page.request_headers]
    return _block(lines)


def one_line(text: str) -> str:
    """Replace whatever would end the line by a space."""
    return text if text.isprintable() else _LINE_ENDS.sub(" ", text)


def _header(name: str, value: str) -> str:
    return f"{_NOT_TOKEN.sub('_', name)}: {one_line(value)}"


def _block(lines: list[str]) -> bytes:
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")
