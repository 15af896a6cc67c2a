"""What kind of thing a body is: its declared type, or its first bytes when the declaration says nothing.

The patterns are those of the MIME Sniffing Standard (https://mimesniff.spec.whatwg.org/), sections 5 and 7. A
declared type is believed: text/plain stays text even when it looks like a page.
"""

import re
from typing import Final

SNIFF_BYTES_MAX: Final = 1445  # the standard's resource header
KINDS: Final = ("html", "image", "pdf", "audio", "video", "json", "text", "other")

_ESSENCE: Final = re.compile(
    r"[\t\n\r ]*([!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+)[\t\n\r ]*(?:;|$)", re.IGNORECASE
)
_UNKNOWN: Final = frozenset(
    ("", "unknown/unknown", "application/unknown", "*/*", "application/octet-stream", "binary/octet-stream")
)
_HTML: Final = frozenset(("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"))

_HTML_START: Final = re.compile(
    rb"<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]"
)
_MAGIC: Final = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"ID3", "audio/mpeg"),
    (b"OggS\x00", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wave", b"AVI ": "video/avi"}
_BINARY: Final = bytes([*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])


def media_type_of(content_type: str | None, body: bytes) -> str:
    """The MIME type of a body, lower case and without parameters: declared, or sniffed when that says nothing."""
    found = _ESSENCE.match(content_type or "")
    essence = found[1].lower() if found else ""
    return sniffed(body[:SNIFF_BYTES_MAX]) if essence in _UNKNOWN else essence


def kind_of(media_type: str) -> str:
    """The word of `KINDS` for a MIME type."""
    top, _, sub = media_type.partition("/")
    if media_type in _HTML:
        return "html"
    if top in {"image", "audio", "video"}:
        return top
    if sub in {"pdf", "x-pdf"}:
        return "pdf"
    if sub == "json" or sub.endswith("+json"):
        return "json"
    if media_type in {"application/vnd.apple.mpegurl", "application/x-mpegurl", "application/dash+xml"}:
        return "video"
    return "text" if top == "text" else "other"


def sniffed(head: bytes) -> str:
    """The MIME type that the first bytes of a body show."""
    return _markup(head) or _by_magic(head) or _by_container(head) or _text_or_binary(head)


def _markup(head: bytes) -> str | None:
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\t\n\f\r ").lower()
    if _HTML_START.match(head):
        return "text/html"
    if not head.startswith((b"<?xml", b"<svg")):
        return None
    return "image/svg+xml" if b"<svg" in head else "text/html" if b"<html" in head else "text/xml"


def _by_magic(head: bytes) -> str | None:
    return next((media_type for magic, media_type in _MAGIC if head.startswith(magic)), None)


def _by_container(head: bytes) -> str | None:
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return "image/avif" if head[8:12] in {b"avif", b"avis"} else "video/mp4"
    return None


def _text_or_binary(head: bytes) -> str:
    is_text = head.startswith((b"\xfe\xff", b"\xff\xfe")) or head.translate(None, _BINARY) == head
    return "text/plain" if is_text else "application/octet-stream"
