"""Does the address every connection is sent to speak TLS? Asked once, by the beginning of a handshake."""

import asyncio
import ssl
from contextlib import suppress
from typing import Final

_RECORD_TYPES: Final = (b"\x16", b"\x15")  # handshake, alert: RFC 8446 5.1


def unverified_context() -> ssl.SSLContext:
    """TLS without any idea of whom it is spoken with; for an address that the operator has named."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


async def speaks_tls(host: str, port: int, *, silence_s_max: float = 2.0) -> bool:
    """Whether what listens there answers a ClientHello with a TLS record. Silence and anything else is a no.

    Raises OSError when nothing listens.
    """
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_client_hello())
        async with asyncio.timeout(silence_s_max):
            return await reader.read(1) in _RECORD_TYPES
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _client_hello() -> bytes:
    """The first bytes of a handshake, made by the ssl module itself."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = unverified_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    return outgoing.read()
