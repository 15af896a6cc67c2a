"""Undoing Content-Encoding, a bounded amount at a time: a small answer must not become a large one in memory.

Every decoder is asked for at most so many bytes and gives no more, whatever stands in its input; what is asked for
is the room left under the cap, so a decompression bomb costs the cap and nothing else.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from isal import isal_zlib

try:
    import brotli  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an optional library, without types
except ImportError:  # pragma: no cover
    brotli = None
try:
    from backports import zstd  # the standard library's compression.zstd, from Python 3.14 on
except ImportError:  # pragma: no cover
    zstd = None  # type: ignore[assignment]  # an optional library

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_WINDOW_LOG_MAX: Final = 23
"""RFC 9659: a content coding needs no more than 8 MB of window."""


class UndecodableError(Exception):
    """The body is not what its Content-Encoding says."""


class Decoder(Protocol):
    """Turns coded bytes into plain ones."""

    def feed(self, data: bytes, room: int) -> bytes:
        """At most `room` decoded bytes; when it gives that many, it must not be fed again."""


class Inflate:
    """gzip (RFC 1952) and deflate (RFC 1950, and RFC 1951 as some servers mean it).

    A body that says gzip and is not is passed on as it came, as browsers do; a second gzip member is decoded, and
    anything else after the first is ignored.
    """

    __slots__ = ("_gzip", "_head", "_stream")

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._head = b""
        self._stream: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        """See `Decoder`."""
        if self._stream is None:
            data = self._head + data
            if len(data) < len(_GZIP_MAGIC):
                self._head = data
                return b""
            self._stream = self._opened(data)
        try:
            return self._inflate(data, room)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub declares an instance
            raise UndecodableError(f"its compressed body is broken ({error})") from error

    def _opened(self, head: bytes) -> Any:
        """A stream for what the first two bytes announce."""
        if self._gzip:
            return isal_zlib.decompressobj(wbits=31) if head[:2] == _GZIP_MAGIC else _Plain()
        wrapped = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0  # noqa: PLR2004  # RFC 1950 2.2
        return isal_zlib.decompressobj(wbits=15 if wrapped else -15)

    def _inflate(self, data: bytes, room: int) -> bytes:
        """Feed the stream, and the next member when one follows."""
        plain: bytes = self._stream.decompress(data, room)
        while self._gzip and self._stream.eof and len(plain) < room:
            rest = self._stream.unused_data
            if rest[:2] != _GZIP_MAGIC:
                break
            self._stream = isal_zlib.decompressobj(wbits=31)
            plain += self._stream.decompress(rest, room - len(plain))
        return plain


class _Plain:
    """Stands in for a stream where the body is not compressed after all."""

    eof = False

    def decompress(self, data: bytes, room: int) -> bytes:
        """The data itself."""
        return data[:room]


class Brotli:
    """br (RFC 7932)."""

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes, room: int) -> bytes:
        """See `Decoder`."""
        pieces: list[bytes] = []
        while room > 0 and not self._stream.is_finished():
            try:
                piece = self._stream.process(data, output_buffer_limit=room)
            except brotli.error as error:
                raise UndecodableError("its brotli body is broken") from error
            pieces.append(piece[:room])  # the limit is where the buffer stops growing, not what it may hold
            room -= len(piece)
            data = b""
            if not piece or self._stream.can_accept_more_data():
                break
        return b"".join(pieces)


class Zstd:
    """zstd (RFC 8878)."""

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        options = {int(zstd.DecompressionParameter.window_log_max): _ZSTD_WINDOW_LOG_MAX}
        self._stream = zstd.ZstdDecompressor(options=options)

    def feed(self, data: bytes, room: int) -> bytes:
        """See `Decoder`."""
        if self._stream.eof:
            return b""
        try:
            return self._stream.decompress(data, room)
        except zstd.ZstdError as error:
            raise UndecodableError("its zstd body is broken") from error


_DECODERS: Final[dict[str, Callable[[], Decoder]]] = {
    "gzip": lambda: Inflate(gzip=True),
    "x-gzip": lambda: Inflate(gzip=True),
    "deflate": lambda: Inflate(gzip=False),
    **({"br": Brotli} if brotli else {}),
    **({"zstd": Zstd} if zstd else {}),
}

ACCEPT_ENCODING: Final = ", ".join(name for name in ("gzip", "deflate", "br", "zstd") if name in _DECODERS)
"""What a request says it accepts: exactly what can be undone here."""


def decoder_for(codings: Sequence[str]) -> Decoder | None:
    """The decoder for the values of the Content-Encoding headers; None when there is nothing to undo.

    A word that is no coding (`utf-8`, `none`) is passed over, as browsers do. Raises UndecodableError for a coding
    that was not asked for, and for codings upon codings, which are a bomb more often than a page.
    """
    words = [word.strip().lower() for value in codings for word in value.split(",")]
    known = [word for word in words if word in _DECODERS or word in {"br", "zstd", "compress", "x-compress"}]
    if not known:
        return None
    if len(known) > 1 or known[0] not in _DECODERS:
        raise UndecodableError(f"its body is coded as {', '.join(known)}")
    return _DECODERS[known[0]]()


RAW_SLACK_BYTES: Final = 65_536
"""A coding may enlarge what cannot be compressed; beyond that, coded bytes that decode to nothing are an attack."""


async def read_body(read: Callable[[], Awaitable[bytes]], codings: Sequence[str], bytes_max: int) -> tuple[bytes, bool]:
    """The decoded body, and whether there was more than `bytes_max`. `read` gives a piece, nothing at the end."""
    decoder = decoder_for(codings)
    pieces: list[bytes] = []
    room = bytes_max + 1  # one more than fits, to know that there was more
    raw_room = bytes_max + RAW_SLACK_BYTES
    while room > 0 and raw_room > 0:
        piece = await read()
        if not piece:
            break
        if decoder is not None:
            raw_room -= len(piece)
            piece = decoder.feed(piece, room)
        room -= len(piece)
        pieces.append(piece)
    body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if room > 0 and raw_room > 0:
        return body, False
    return body[:bytes_max], True
