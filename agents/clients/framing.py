"""Messages through a pipe: a big-endian length, then the message. It imports nothing: every process of ours has it."""

from typing import Final

FRAME: Final = 4  # bytes of the length


def framed(message: bytes) -> bytes:
    """Put a message's length before it."""
    return len(message).to_bytes(FRAME, "big") + message
