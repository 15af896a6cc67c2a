"""Bodies as raw deflate streams: compressed once, by fetch, and never again.

A body leaves fetch as an RFC 1951 stream that ends in a sync flush and has no final block. Such a stream ends
on a byte boundary and refers to nothing before it, so it can stand in the middle of another deflate stream:
the archive wraps it in a gzip member without inflating it (`agents/archiving/records.py`). To read it alone,
close it with `LAST_BLOCK_EMPTY` and inflate; `expand` does.

Why isal at level 1. Measured on 65 real pages of 40-140 kB (mean 83.3 kB), one core, best of five, each
ending in a sync flush; CPU per page and what is left of it:

    isal 0       156 us  22.2 kB      zlib-ng 1   299 us  25.0 kB      zlib 1    775 us  20.9 kB
    isal 1       167 us  20.4 kB      zlib-ng 2   522 us  20.1 kB      zlib 6   1879 us  18.0 kB
    isal 2       180 us  20.2 kB      zlib-ng 3   618 us  19.0 kB
    isal 3       270 us  19.6 kB      zlib-ng 6   848 us  18.1 kB

Inflating the same pages: isal 118 us, zlib-ng 160 us. CRC-32 of a page: isal 4 us, zlib 20 us.
`crc32_combine`: 0.4 us.
"""

from dataclasses import dataclass
from typing import Final

from isal import isal_zlib

LEVEL: Final = 1
LAST_BLOCK_EMPTY: Final = b"\x03\x00"  # final, fixed Huffman codes, end of block (RFC 1951, 3.2.3)

_RAW: Final = -15  # window bits of a stream without header and trailer


class NotDeflate(ValueError):  # noqa: N818 - reads as what was found, like every error of this project
    """The bytes are not one whole deflate stream as `squeeze` writes it."""


class TooLong(ValueError):  # noqa: N818 - as above
    """The stream holds more than the caller accepts: a bomb, or a changed limit."""


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A compressed body and what a gzip member around it must know."""

    data: bytes  # raw deflate, ends in a sync flush, no final block
    crc32: int  # of the body
    bytes_len: int  # of the body


def squeeze(body: bytes) -> Squeezed:
    """Compress a body into a stream that can be embedded in another."""
    return Squeezed(squeeze_part(body), crc32(body), len(body))


def squeeze_part(part: bytes) -> bytes:
    """Compress some bytes into a piece of a deflate stream: byte-aligned, self-contained, not final."""
    stream = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _RAW)
    return stream.compress(part) + stream.flush(isal_zlib.Z_SYNC_FLUSH)


def expand(data: bytes, *, bytes_max: int) -> bytes:
    """Inflate what `squeeze` made.

    Never allocates more than `bytes_max` (and one byte) of output.

    Raises:
        NotDeflate: the stream is damaged, cut, or carries its own final block.
        TooLong: the body is longer than `bytes_max`.
    """
    stream = isal_zlib.decompressobj(_RAW)
    try:
        body = stream.decompress(data + LAST_BLOCK_EMPTY, bytes_max + 1)
    except isal_zlib.IsalError as error:  # type: ignore[misc]  # typed as an instance
        raise NotDeflate(str(error)) from error
    if len(body) > bytes_max:
        raise TooLong(f"more than {bytes_max} bytes")
    if not stream.eof or stream.unused_data:
        raise NotDeflate("cut short, or more than one stream")
    return body


def expand_start(data: bytes, *, bytes_max: int) -> bytes:
    """Inflate the first `bytes_max` bytes of what `squeeze` made; all of them when there are fewer.

    Raises NotDeflate when the stream is damaged.
    """
    try:
        start: bytes = isal_zlib.decompressobj(_RAW).decompress(data, bytes_max)
    except isal_zlib.IsalError as error:  # type: ignore[misc]  # typed as an instance
        raise NotDeflate(str(error)) from error
    return start


def crc32(data: bytes, before: int = 0) -> int:
    """CRC-32 (RFC 1952) of `data`, going on from the CRC `before` it."""
    return isal_zlib.crc32(data, before)


def crc32_combine(first: int, second: int, second_len: int) -> int:
    """CRC-32 of two runs of bytes, from their CRCs and the length of the second: 0.4 us at any length."""
    return isal_zlib.crc32_combine(first, second, second_len)
