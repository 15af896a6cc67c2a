"""The `domains` table: what must outlive the owner of a domain. Owned by fetch; key: registered domain.

Today that is the reservation of slots: no request may be sent by a new owner before `reserved_s`. Halts, failures
and learned rates join it here as fields.
"""

from typing import Final

import msgspec

from topology.records import Wire


class Row(Wire, frozen=True):
    """One domain. `reserved_s`: slots before this (seconds since the epoch) may have been used."""

    reserved_s: float = 0.0


FRESH: Final = Row()

decode: Final = msgspec.msgpack.Decoder(Row).decode
