"""Which addresses the fetcher may connect to: public ones, and what the operator allows. Pure.

Theory. A URL in a tweet is written by a stranger; without a guard the fetcher is a way to speak to everything
inside the operator's network (server-side request forgery). Names say nothing: a public name may resolve to a
private address, and to another one a second later (DNS rebinding). So what is judged is an *address*, at the
moment a socket for it is made, on every hop. The lists are the IANA special-purpose address registries
(RFC 6890, as updated); IPv6 is judged the other way round: only 2000::/3 is global unicast, and out of it some is
refused. IPv6 addresses that carry an IPv4 address are judged by the address they carry.
"""

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

JUDGED_MAX: Final = 4096
"""How many judgements of each kind a guard remembers; one costs some 10 µs, and a request needs two."""

_V4_REFUSED: Final[tuple[tuple[IPv4Network, str], ...]] = tuple(
    (IPv4Network(net), why)
    for net, why in (
        ("0.0.0.0/8", "this host on this network (RFC 1122)"),
        ("10.0.0.0/8", "private (RFC 1918)"),
        ("100.64.0.0/10", "shared carrier space (RFC 6598)"),
        ("127.0.0.0/8", "loopback (RFC 1122)"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata service (RFC 3927)"),
        ("172.16.0.0/12", "private (RFC 1918)"),
        ("192.0.0.0/24", "reserved for protocol assignments (RFC 6890)"),
        ("192.0.2.0/24", "documentation (RFC 5737)"),
        ("192.88.99.0/24", "the retired 6to4 relay (RFC 7526)"),
        ("192.168.0.0/16", "private (RFC 1918)"),
        ("198.18.0.0/15", "benchmarking (RFC 2544)"),
        ("198.51.100.0/24", "documentation (RFC 5737)"),
        ("203.0.113.0/24", "documentation (RFC 5737)"),
        ("224.0.0.0/4", "multicast (RFC 5771)"),
        ("255.255.255.255/32", "broadcast (RFC 919)"),
        ("240.0.0.0/4", "reserved (RFC 1112)"),
    )
)

_V6_GLOBAL: Final = IPv6Network("2000::/3")
_V6_REFUSED: Final[tuple[tuple[IPv6Network, str], ...]] = tuple(
    (IPv6Network(net), why)
    for net, why in (
        # Outside 2000::/3; listed for the sentence they give.
        ("fc00::/7", "private (unique local, RFC 4193)"),
        ("fe80::/10", "link-local (RFC 4291)"),
        ("fec0::/10", "site-local (RFC 3879)"),
        ("ff00::/8", "multicast (RFC 4291)"),
        ("64:ff9b:1::/48", "a local translation prefix (RFC 8215)"),
        # Inside 2000::/3.
        ("2001::/23", "reserved for protocol assignments (RFC 2928)"),
        ("2001:db8::/32", "documentation (RFC 3849)"),
        ("3fff::/20", "documentation (RFC 9637)"),
    )
)

_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: the IPv4 address is the last 32 bits
_COMPATIBLE: Final = IPv6Network("::/96")  # RFC 4291 2.5.5.1, deprecated; holds :: and ::1 as well


class Guard:
    """Says of an address why it may not be connected to. `allow`: networks the operator has opened."""

    __slots__ = ("_allow", "host_refusal", "refusal")

    def __init__(self, allow: tuple[Network, ...] = ()) -> None:
        self._allow = allow
        self.refusal = lru_cache(JUDGED_MAX)(self._judge)
        """`refusal(address)`: a sentence if this address must not be connected to, else None."""
        self.host_refusal = lru_cache(JUDGED_MAX)(self._judge_host)
        """`host_refusal(host)`: the same for the host of a URL, before anybody asks the DNS."""

    def _judge_host(self, host: str) -> str | None:
        """Judge the host of a WHATWG-parsed URL as far as it can be without asking the DNS.

        An address is judged as itself, `localhost` and everything under it as 127.0.0.1 (RFC 6761 6.3). Any other
        name is None here: its addresses are judged when they are known. The WHATWG parser has already turned
        decimal, octal, hexadecimal and short spellings of IPv4 addresses into dotted quads.
        """
        if host.startswith("["):
            return self.refusal(host[1:-1])
        name = host.rstrip(".").lower()
        if name == "localhost" or name.endswith(".localhost"):
            refusal = self.refusal("127.0.0.1")
            return refusal and f"{host} is this machine itself: {refusal}"
        return self.refusal(name) if name[-1:].isdigit() else None

    def _judge(self, address: str) -> str | None:
        """Why `address`, in text, must not be connected to; None when it may."""
        parsed = _parse(address)
        if parsed is None:
            return f"{address} is not an IP address"
        if self._allowed(parsed):
            return None
        if isinstance(parsed, IPv4Address):
            why = _v4_reason(parsed)
            return why and f"{address} is not public: {why}"
        if parsed.scope_id is not None:
            return f"{address} is not public: a zone has a meaning on one machine only (RFC 4007)"
        carried = _carried(parsed)
        if not carried:
            why = _v6_reason(parsed)
            return why and f"{address} is not public: {why}"
        return self._carried_refusal(address, carried)

    def _carried_refusal(self, address: str, carried: tuple[IPv4Address, ...]) -> str | None:
        """Judge an IPv6 address by every IPv4 address it carries."""
        for inner in carried:
            why = None if self._allowed(inner) else _v4_reason(inner)
            if why:
                return f"{address} is not public: it carries {inner}, which is {why}"
        return None

    def _allowed(self, address: Address) -> bool:
        """Whether the operator has opened this address."""
        return any(address in net for net in self._allow if net.version == address.version)


def _parse(address: str) -> Address | None:
    """The address in the strict notation `inet_pton` takes, zone ids included; None for anything else."""
    try:
        return IPv6Address(address) if ":" in address else IPv4Address(address)
    except AddressValueError:
        return None


def _v4_reason(address: IPv4Address) -> str | None:
    """What an IPv4 address is instead of public."""
    return next((why for net, why in _V4_REFUSED if address in net), None)


def _v6_reason(address: IPv6Address) -> str | None:
    """What an IPv6 address is instead of public."""
    why = next((why for net, why in _V6_REFUSED if address in net), None)
    return why or (None if address in _V6_GLOBAL else "outside the global unicast space (RFC 4291)")


def _carried(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses inside an IPv6 address: mapped, compatible, NAT64, 6to4, Teredo (server and client)."""
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    if address in _NAT64 or address in _COMPATIBLE:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    return ()
