"""Laws of URLs: what is fetched, what a redirect leads to, what a row is keyed by, whose domain it is."""

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topology import urls
from topology.urls import Address, Refusal, canonical, domain_of, join, normal_form, parse

# Pieces in which URLs go wrong, put together at random: more telling than random letters.
PIECES_SPELT = (
    "http://,https://,HTTP://,http:,//,file:,ftp:,user:pw@,example.com,EXAMPLE.Org,bücher.de,xn--bcher-kva.de,中国.cn"
    ",127.0.0.1,0x7f.1,1.2.3.4.,[::1],localhost,a..b,a.,.a,:80,:443,:8080,:0,:99999,/,//,/./,/../,/..,/%2e%2e/,a,B,é,中"
    ",😀,%41,%7e,%zz,%,%25,%2541,%c3%a9,%C0,;jsessionid=A1,.;jsessionid=,;x=1,?,??,&,&&,=,b=,a=1,a=2,utm_source=x,UTM_A"
    ",gclid=1,PHPSESSID=9,+,|,^,[,],{,`,',\",<,\\,\t,\n, ,\x00,\x1f,\x7f,\xad,\u3002,\ud83d,\udce9,#,#f,#!x,@,*,~,!$"
)
PIECES = PIECES_SPELT.split(",")
MADE_URLS = st.builds(
    lambda start, rest: start + "".join(rest),
    st.sampled_from(["http://", "https://", "http://example.com/", "https://a.co.uk/x?", ""]),
    st.lists(st.sampled_from(PIECES), max_size=12),
)
ANY_URLS = st.one_of(MADE_URLS, st.text())


@given(ANY_URLS)
@example("http://0x7f.1../")
@example("http://a/;jsessionid=1;jsessionid=.;jsessionid=2")
def test_normal_form_twice_is_normal_form_once(url):
    once = normal_form(url)
    if once is not None:
        assert normal_form(once) == once


@given(ANY_URLS)
def test_canonical_twice_is_canonical_once(url):
    once = canonical(url)
    if once is not None:
        assert canonical(once) == once
        assert len(once) <= urls.CANONICAL_BYTES_MAX


@given(ANY_URLS)
def test_parsing_what_was_parsed_changes_nothing(url):
    address = parse(url)
    if isinstance(address, Address):
        assert parse(address.href) == address
        assert address.href.isascii()
        assert "#" not in address.href
    else:
        assert address.reason.endswith(".")


@given(ANY_URLS)
def test_the_row_of_a_url_is_on_the_host_that_was_asked(url):
    """Normalising must not lead to another site: the host only loses the dot of the root."""
    address = parse(url)
    form = canonical(url)
    if isinstance(address, Address) and form is not None:
        row = parse(form)
        assert isinstance(row, Address)
        assert (row.host, row.port, row.domain) == (address.host.removesuffix("."), address.port, address.domain)


@given(ANY_URLS, ANY_URLS)
def test_join_gives_a_url_or_nothing(base, reference):
    joined = join(base, reference)
    assert joined is None or joined.isascii()


@given(st.text(alphabet="abcXYZ019-._~", min_size=1).filter(lambda text: text.strip(".")))
def test_the_case_of_a_path_is_kept(name):
    """Short links are case-sensitive: bit.ly/AbC is not bit.ly/abc."""
    assert canonical(f"HTTP://Bit.LY/x{name}") == f"http://bit.ly/x{name}"
    assert parse(f"HTTP://Bit.LY/x{name}").href == f"http://bit.ly/x{name}"


def test_the_public_cases_of_url_normalisation(shared):
    """crawler-commons' cases, but one: a host's Unicode form is for showing, and a row has no use for it."""
    cases = json.loads((shared / "cases" / "url_normal_form.json").read_text("utf-8"))
    shown = "http://xn--schne-lua.xn--bcher-kva.de/"
    wrong = {
        case["input"]: normal_form(case["input"])
        for case in cases
        if normal_form(case["input"]) != case["output"] and case["input"] != shown
    }
    assert wrong == {}
    assert normal_form(shown) == shown


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://example.com/a?utm_source=tw&id=7&UTM_Medium=x&gclid=1", "http://example.com/a?id=7"),
        ("http://example.com/a?utm_source=tw", "http://example.com/a"),
        ("http://example.com/a?b=2&a=3&a=1", "http://example.com/a?a=3&a=1&b=2"),  # order of one name has a meaning
        ("http://example.com/a?sid=4&ref=home", "http://example.com/a?ref=home&sid=4"),  # may choose the content
        ("http://example.com/a;JSESSIONID=1F?x", "http://example.com/a?x"),
        ("http://example.com./", "http://example.com/"),
        ("http://user:pw@example.com:80/", "http://example.com/"),
        ("https://example.com:8443//a//b", "https://example.com:8443/a/b"),
        ("http://example.com/%7Ea%2fb^", "http://example.com/~a%2Fb%5E"),
        ("mailto:a@example.com", None),
        ("not a url", None),
        ("http://example.com/a/.b/./c/%2e%2E/d", "http://example.com/a/.b/d"),  # can_ada leaves these dots
    ],
)
def test_a_canonical_form_names_the_document_and_not_who_shared_it(url, form):
    assert canonical(url) == form


def test_a_long_canonical_form_loses_its_query_and_then_is_refused():
    """As Twitter's own URL store did it at 1,000 characters."""
    assert canonical(f"http://example.com/a?{'q' * 1000}") == "http://example.com/a"
    assert canonical(f"http://example.com/{'a' * 1000}?q") is None


def test_an_address_knows_what_is_fetched_from_where_and_whose_it_is():
    assert parse("  HTTPS://me:secret@News.Example.co.uk:8443/A%20b?x=1&b=#top\n") == Address(
        href="https://news.example.co.uk:8443/A%20b?x=1&b=",
        host="news.example.co.uk",
        port=8443,
        origin="https://news.example.co.uk:8443",
        domain="example.co.uk",
    )
    assert parse("http://example.com").port == 80
    assert parse("https://example.com").port == 443
    assert parse("http://[::ffff:7f00:1]/").domain == "[::ffff:7f00:1]"
    assert parse("http://0x7f.1/").domain == "127.0.0.1"


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("", "absolute"),
        ("example.com", "absolute"),
        ("http://", "absolute"),
        ("http://exa mple.com", "absolute"),
        ("http://example.com:99999", "absolute"),
        ("http://\ud83d/", "absolute"),
        ("javascript:alert(1)", "javascript"),
        ("ftp://example.com/", "ftp"),
        ("http://a..b/", "label"),
        (f"http://{'a' * 64}.com/", "label"),
        (f"http://{'a.' * 127}com/", "label"),
        (f"http://example.com/{'a' * 4096}", "limit is 4096"),
        (f"http://example.com/{'é' * 1000}", "limit is 4096"),
        (f"http://{'中' * 4000}.com/", "more than 512"),
        (f"ht\ttp:\n//{'中' * 4000}.com/", "more than 512"),
    ],
)
def test_a_refusal_says_why(url, word):
    refusal = parse(url)
    assert isinstance(refusal, Refusal)
    assert word in refusal.reason


def test_a_fragment_does_not_count_for_the_length():
    assert parse(f"http://example.com/#{'a' * 10_000}").href == "http://example.com/"


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("/b?c", "http://example.com/b?c"),
        ("b", "http://example.com/a/b"),
        ("//other.org/x", "http://other.org/x"),
        ("https://other.org", "https://other.org/"),
        ("\\\\other.org\\x", "http://other.org/x"),
        ("/caf\u00c3\u00a9", "http://example.com/caf%C3%A9"),  # UTF-8 handed over as Latin-1
        ("/caf\u00e9", "http://example.com/caf%C3%A9"),  # decoded already, or Latin-1
        ("/caf\udcc3\udca9", "http://example.com/caf%C3%A9"),  # UTF-8 handed over escaped
        ("/caf\udce9", "http://example.com/caf%E9"),  # neither: the byte itself
        ("/x/.well-known/../y", "http://example.com/x/y"),
        ("/中", "http://example.com/%E4%B8%AD"),
        ("http://", None),
        ("http://exa mple", None),
        (f"//{'中' * 4000}.com", None),
        ("/a\ud83d", None),
    ],
)
def test_a_location_leads_where_a_browser_would_go(reference, joined):
    assert join("http://example.com/a/x?y#z", reference) == joined


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.bbc.co.uk", "bbc.co.uk"),
        ("bbc.co.uk", "bbc.co.uk"),
        ("co.uk", "co.uk"),
        ("a.b.alice.github.io", "alice.github.io"),  # the owner's, not the platform's
        ("github.io", "github.io"),
        ("www.xn--bcher-kva.xn--p1ai", "xn--bcher-kva.xn--p1ai"),
        ("example.com.", "example.com"),
        ("a.b.site.internal", "site.internal"),  # a suffix nobody knows
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:db8::1]", "[2001:db8::1]"),
    ],
)
def test_a_domain_is_whose_site_it_is(host, domain):
    assert domain_of(host) == domain


def test_top_level_domains_are_known_in_every_script():
    known = urls.top_level_domains()
    assert {"com", "jp", "co", "ck", "みんな", "рф"} <= known
    assert not {"", "blogspot", "test", "htm"} & known


def test_the_suffix_list_costs_nothing_until_a_domain_is_asked_for():
    """Processes that only normalise (parsers) should not pay its 0.2 s and 25 MB."""
    code = "import sys, topology.urls as u; u.canonical('http://a.com/'); print('tldextract' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
