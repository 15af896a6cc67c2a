r"""WARC 1.1 records, each a gzip member of its own, so that one range read returns one page.

Rules: ISO 28500:2017, https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/.

A body arrives compressed (`topology/deflate.py`) and is not compressed again. The member of a response is put
together from pieces that are each a part of one deflate stream:

    gzip header
    deflate(WARC and HTTP headers), ending in a sync flush
    the body as it came, ending in a sync flush
    a last block, stored: "\r\n\r\n"
    CRC-32 and length

The CRC of the whole is combined from the CRCs of the headers and the body. Measured for pages of 83 kB: see
`agents/archiving/archive.py`.

Record ids are derived from the fetch, so a page that is archived again by a replay has the same ids and can
be told.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agents.archiving.http_block import one_line, request_block, response_block
from topology.deflate import Squeezed, crc32, crc32_combine, squeeze_part
from topology.public import iso
from topology.records import Page, Placed

REVISIT_PROFILE: Final = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
CONFORMS_TO: Final = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"

_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # RFC 1952: deflate, no time, unknown OS
_END: Final = b"\r\n\r\n"  # of every record
_END_BLOCK: Final = b"\x01\x04\x00\xfb\xff" + _END  # RFC 1951, 3.2.4: last block, stored, 4 bytes
_NO_BODY: Final = Squeezed(b"", 0, 0)
_IDS: Final = b"spiderduck record "  # the namespace of our record ids

RESPONSE: Final = "application/http;msgtype=response"
REQUEST: Final = "application/http;msgtype=request"


@dataclass(frozen=True, slots=True)
class Original:
    """A response record that later pages with the same body refer to."""

    url: str
    date: str  # its WARC-Date
    placed: Placed


def response(page: Page) -> bytes:
    """The member of the response record: the page as it was received, body included."""
    block = response_block(page)
    fields = [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", record_id(page, "response")),
        *_about(page),
        ("WARC-Payload-Digest", payload_digest(page.body_sha1)),
        ("Content-Type", RESPONSE),
        ("Content-Length", str(len(block) + page.http.body_bytes)),
    ]
    return _member(_head(fields) + block, Squeezed(page.body, page.body_crc32, page.http.body_bytes))


def revisit(page: Page, original: Original) -> bytes:
    """The member of a revisit record: this page came again with a body that is archived already."""
    block = response_block(page)
    fields = [
        ("WARC-Type", "revisit"),
        ("WARC-Record-ID", record_id(page, "response")),
        *_about(page),
        ("WARC-Profile", REVISIT_PROFILE),
        ("WARC-Refers-To-Target-URI", one_line(original.url)),
        ("WARC-Refers-To-Date", original.date),
        ("WARC-Payload-Digest", payload_digest(page.body_sha1)),
        ("Content-Type", RESPONSE),
        ("Content-Length", str(len(block))),
    ]
    return _member(_head(fields) + block)


def request(page: Page) -> bytes:
    """The member of the request record, or nothing when the page does not say what was asked."""
    if not page.request_headers:
        return b""
    block = request_block(page)
    fields = [
        ("WARC-Type", "request"),
        ("WARC-Record-ID", record_id(page, "request")),
        ("WARC-Concurrent-To", record_id(page, "response")),
        ("WARC-Target-URI", one_line(page.url)),
        ("WARC-Date", warc_date(page.visit.started_ms)),
        ("Content-Type", REQUEST),
        ("Content-Length", str(len(block))),
    ]
    return _member(_head(fields) + block)


def warcinfo(segment: str, info: Mapping[str, str], now_ms: int) -> bytes:
    """The member that begins a segment and says who wrote it."""
    told = {**info, "format": "WARC File Format 1.1", "conformsTo": CONFORMS_TO}
    text = "".join(f"{name}: {one_line(value)}\r\n" for name, value in told.items())
    block = text.encode("utf-8", "replace")
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", _id(segment)),
        ("WARC-Date", warc_date(now_ms)),
        ("WARC-Filename", segment),
        ("Content-Type", "application/warc-fields"),
        ("Content-Length", str(len(block))),
    ]
    return _member(_head(fields) + block)


@lru_cache(maxsize=1024)  # parse and archive ask for the same page's within moments
def payload_digest(sha1: bytes) -> str:
    """SHA-1 as WARC files and `Document.digest` write it."""
    return "sha1:" + base64.b32encode(sha1).decode()


def record_id(page: Page, kind: str) -> str:
    """The id of a record of this fetch: the same whenever the same fetch is archived."""
    return _id(f"{kind} {page.visit.started_ms} {page.fetch_id} {page.url}")


def warc_date(epoch_ms: int) -> str:
    """A point in time in UTC with milliseconds, which WARC 1.1 allows and 1.0 did not."""
    return iso(epoch_ms)


def _id(text: str) -> str:
    """A UUID of version 5 (RFC 9562, 5.5), written out here because `uuid.uuid5` takes four times as long."""
    sha1 = hashlib.sha1(_IDS + text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return f"<urn:uuid:{sha1[:8]}-{sha1[8:12]}-5{sha1[13:16]}-8{sha1[17:20]}-{sha1[20:32]}>"


def _about(page: Page) -> list[tuple[str, str]]:
    """What response and revisit say of the visit."""
    fields = [("WARC-Target-URI", one_line(page.url)), ("WARC-Date", warc_date(page.visit.started_ms))]
    if page.visit.address:
        fields.append(("WARC-IP-Address", one_line(page.visit.address)))
    if page.http.truncated:
        fields.append(("WARC-Truncated", "length"))
    return fields


def _head(fields: list[tuple[str, str]]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"WARC/1.1\r\n{lines}\r\n".encode("utf-8", "replace")


def _member(head: bytes, body: Squeezed = _NO_BODY) -> bytes:
    """One gzip member: `head`, then a body compressed before, then the end of the record."""
    crc = crc32(_END, crc32_combine(crc32(head), body.crc32, body.bytes_len))
    length = (len(head) + body.bytes_len + len(_END)) & 0xFFFFFFFF
    trailer = crc.to_bytes(4, "little") + length.to_bytes(4, "little")
    return b"".join((_GZIP_HEADER, squeeze_part(head), body.data, _END_BLOCK, trailer))
