"""The table of addresses that must not be reached, and the spellings that have been used to reach them."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import can_ada
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.fetching.guard import Guard

REFUSED = [
    *("0.0.0.1", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.8.8.8"),
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.7", "192.88.99.1"),
    *("192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.3", "203.0.113.9", "224.0.0.1", "239.255.255.250"),
    *("240.0.0.1", "255.255.255.254", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "100::1"),
    *("2001:db8::1", "3fff::1", "2001:2::1", "2001:10::1", "5f00::1", "4000::1", "::ffff:0:7f00:1"),
    *("::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::127.0.0.1", "::a9fe:a9fe"),
    *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "64:ff9b:1:7f00:0:100::"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:101::1"),
    *("2001:0:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2606:4700::1111%eth0"),
    *("", "example.com", "127.1", "0177.0.0.1", "0x7f.0.0.1", "2130706433", "127.0.0.1:80", "1.2.3.4%eth0", "[::1]"),
]
PUBLIC = [
    *("8.8.8.8", "1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1"),
    *("192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "169.253.1.1", "11.0.0.1", "128.0.0.1"),
    *("2606:4700::1111", "2a00:1450:4001:81b::200e", "2001:200::1", "2001:4860:4860::8888"),
    *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7"),
]
BYPASSES = [  # as written in a tweet
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0/",
    "http://0x0/",
    "http://0177.0.0.1/",
    "http://0177.0x0.0.1/",
    "http://127.0.0.1./",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:169.254.169.254]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[2002:7f00:1::]/",
    "http://\N{CIRCLED DIGIT ONE}\N{CIRCLED DIGIT TWO}\N{CIRCLED DIGIT SEVEN}.0.0.1/",
    "http://\N{FULLWIDTH DIGIT ONE}27.0.0.1/",
    "http://127\N{IDEOGRAPHIC FULL STOP}0.0.1/",
    "http://%31%32%37%2e0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://0xA9.0xFE.0xA9.0xFE/",
    "http://user:pass@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1\\@example.com/",
    "http:127.0.0.1/",
    "http:\\\\127.0.0.1/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://db.localhost/",
    "http://\N{CIRCLED LATIN SMALL LETTER L}ocalhost/",
    "http://loc\tal\nhost/",
    "http://10.1.2.3:8080/",
    "https://192.168.0.1/",
    "http://100.100.100.200/",
]


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_not_public_is_refused_with_a_sentence(address):
    refusal = Guard().refusal(address)
    assert refusal is not None
    assert " is " in refusal


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_not_refused(address):
    assert Guard().refusal(address) is None


@pytest.mark.parametrize("spelling", BYPASSES)
def test_every_known_spelling_of_an_inside_host_is_refused_after_whatwg_parsing(spelling):
    host = can_ada.parse(spelling).hostname
    assert Guard().host_refusal(host) is not None


@pytest.mark.parametrize("host", ["example.com", "localhost.example.com", "notlocalhost", "1.2.3.4.example.com", "a.b"])
def test_a_name_is_judged_when_its_addresses_are_known(host):
    assert Guard().host_refusal(host) is None


def test_networks_of_the_operator_win_and_open_nothing_else():
    guard = Guard((ip_network("127.0.0.0/8"), ip_network("fd00::/8")))
    assert guard.refusal("127.0.0.1") is None
    assert guard.refusal("::ffff:127.0.0.1") is None
    assert guard.refusal("fd00::1") is None
    assert guard.host_refusal("localhost") is None
    assert guard.host_refusal("db.localhost.") is None
    assert guard.refusal("::1") is not None
    assert guard.refusal("10.0.0.1") is not None
    assert guard.refusal("fc00::1") is not None


@given(st.ip_addresses(v=4))
def test_carrying_an_ipv4_address_inside_ipv6_changes_nothing(v4: IPv4Address):
    guard = Guard()
    refused = guard.refusal(str(v4)) is not None
    mapped = IPv6Address(0xFFFF_0000_0000 | int(v4))
    nat64 = IPv6Address((0x64_FF9B << 96) | int(v4))
    sixtofour = IPv6Address((0x2002 << 112) | (int(v4) << 80) | 1)
    assert [guard.refusal(str(a)) is not None for a in (mapped, nat64, sixtofour)] == [refused] * 3


@given(st.ip_addresses())
def test_what_is_judged_public_is_global_for_the_standard_library_too(address):
    """A second opinion; 6to4 and NAT64 are judged by what they carry, which the library does not do."""
    if Guard().refusal(str(address)) is None:
        carried = getattr(address, "sixtofour", None) or getattr(address, "teredo", None)
        assert address.is_global or carried or address in ip_network("64:ff9b::/96")


@given(st.text(max_size=60))
def test_any_text_is_judged_without_an_exception(text):
    Guard().refusal(text)
    Guard().host_refusal(text)
