"""A page out of the archive, by its placement: one range read, one record."""

import asyncio
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isal import isal_zlib
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from agents.archiving.spool import read_spooled
from agents.clients.content import ContentStore, NotStored
from topology.records import Placed

HEAD_BYTES_MAX: Final = 1_048_576
"""Bytes of a record that are not its body: WARC and HTTP headers, which fetch bounds far lower."""

_GZIP: Final = 31  # window bits: gzip header and trailer, CRC checked


class BadRecord(Exception):  # noqa: N818 - what was found
    """The bytes at a placement are not one response record with a body that fits its digest."""


@dataclass(frozen=True, slots=True)
class Archived:
    """A page as it was archived. A revisit's placement leads to the first page with the same body."""

    url: str
    date: str  # WARC-Date
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


async def read_body(
    content: ContentStore, placed: Placed, *, body_bytes_max: int, spool: Path | None = None
) -> Archived:
    """Read one page.

    `spool` is the archive's spool folder, where that is on this machine: a page can be read there before its
    segment is put.

    Raises:
        NotStored: no such segment, or not that long.
        StoreUnavailable: the store does not answer.
        BadRecord: what is there is not a whole response record, or is longer than `body_bytes_max`.
    """
    try:
        member = await content.read(placed.segment, placed.offset, placed.length)
    except NotStored:
        if spool is None:
            raise
        found = await asyncio.to_thread(read_spooled, spool, placed.segment, placed.offset, placed.length)
        # It may have gone from the spool to the store between the two looks.
        member = found or await content.read(placed.segment, placed.offset, placed.length)
    return archived(member, body_bytes_max=body_bytes_max)


def archived(member: bytes, *, body_bytes_max: int) -> Archived:
    """Read the response record in one gzip member, or say why it is none (`BadRecord`).

    The member is inflated here, up to a limit and with its CRC checked: given damaged gzip, warcio takes it
    for an uncompressed file and fails in ways that have no name.
    """
    plain = _inflated(member, body_bytes_max + HEAD_BYTES_MAX)
    try:
        record = next(ArchiveIterator(io.BytesIO(plain), check_digests="raise"), None)
        if record is None or record.rec_type != "response" or record.http_headers is None:
            raise BadRecord("not a response record")
        body = record.raw_stream.read()
    except (ArchiveLoadFailed, ValueError) as error:
        raise BadRecord(str(error)) from error
    if len(body) > body_bytes_max:
        raise BadRecord(f"a body of more than {body_bytes_max} bytes")
    head = record.rec_headers
    return Archived(
        url=head.get_header("WARC-Target-URI"),
        date=head.get_header("WARC-Date"),
        status=int(record.http_headers.get_statuscode()),
        headers=tuple(record.http_headers.headers),
        body=body,
    )


def _inflated(member: bytes, bytes_max: int) -> bytes:
    stream = isal_zlib.decompressobj(_GZIP)
    try:
        plain = stream.decompress(member, bytes_max + 1)
    except isal_zlib.IsalError as error:  # type: ignore[misc]  # typed as an instance
        raise BadRecord(f"not a gzip member: {error}") from error
    if len(plain) > bytes_max:
        raise BadRecord(f"a record of more than {bytes_max} bytes")
    if not stream.eof or stream.unused_data:
        raise BadRecord("not one whole gzip member")
    return bytes(plain)
