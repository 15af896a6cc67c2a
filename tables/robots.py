"""The `robots` table: robots.txt as it was last read, by origin. Owned by fetch; key: scheme://host:port."""

from typing import Final

import msgspec

from topology.records import Wire


class Row(Wire, frozen=True):
    """One robots.txt. `status` 0: it could not be reached."""

    status: int
    body: bytes  # at most robots_bytes_max
    fetched_s: float  # seconds since the epoch
    expires_s: float


decode: Final = msgspec.msgpack.Decoder(Row).decode
