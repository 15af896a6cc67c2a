"""What a URL is here: reading one, following a redirect, the form rows are keyed by, the domain that is paced.

A shared URL has two identities. `Address.href` is what is fetched: the URL as the WHATWG URL standard reads it,
without fragment and credentials, otherwise untouched, because short links are case-sensitive and servers may
mind the order of a query. `canonical` is the key of a metadata row: the normal form (RFC 3986, section 6)
without the parameters that only say who shared it. A canonical form is never fetched.

Pure, and hot: every hop of every URL passes here. The parser is can_ada, a binding of ada, the WHATWG parser of
Node.js: 0.9 us for the six attributes `parse` reads, where ada_url needs 10 us through cffi. On 350,000
generated URLs the two differ in four ways: can_ada leaves some dot segments after a segment like `.well-known`
(mended here), leaves `^` in a path as it is and loses the empty query of a base URL (`normal_form` levels both),
and refuses invalid punycode.
"""

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

import can_ada
import msgspec

if TYPE_CHECKING:
    from tldextract import TLDExtract

# The limit Twitter's own back end sets on a URL in a tweet; search engines and CDNs cut at 2,048 to 8,192.
URL_BYTES_MAX: Final = 4096
# A host name has 253 characters at most (RFC 1035); its percent-encoded or Unicode spelling may be longer. The
# bound comes before parsing because converting a name to punycode takes quadratic time: 4,096 Chinese
# characters took 70 ms, 512 take 1 ms.
HOST_SPELLING_CHARS_MAX: Final = 512
HOST_BYTES_MAX: Final = 253
LABEL_BYTES_MAX: Final = 63
# Twitter's URL store asked again without the query when a canonical URL was longer, and then gave up.
CANONICAL_BYTES_MAX: Final = 1000
DOMAINS_CACHED_MAX: Final = 65_536  # about 200 bytes each
# `session_id` and `sid` are not among them: conferences and newspapers name documents that way.
SESSION_PARAMETERS: Final = frozenset({"phpsessid", "jsessionid", "cfid", "cftoken"})

# Parameters that name the campaign, the click or the sharer and never the document. Conservative: a parameter
# that some site uses to choose its content (`ref`, `source`, `si`) splits a row at worst; removing it could
# join two documents.
TRACKING_PREFIX: Final = "utm_"
TRACKING_PARAMETERS: Final = frozenset(
    {"_ga", "_gl", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid"}  # Google
    | {"fbclid", "fb_action_ids", "fb_action_types", "fb_source", "igshid", "igsh"}  # Facebook, Instagram
    | {"twclid", "ref_src", "ref_url", "__twitter_impression"}  # Twitter
    | {"msclkid", "yclid", "ysclid", "ttclid", "li_fat_id", "epik"}  # Bing, Yandex, TikTok, LinkedIn, Pinterest
    | {"mc_cid", "mc_eid", "_hsenc", "_hsmi", "mkt_tok", "vero_id", "oly_anon_id", "oly_enc_id"}  # newsletters
)

_NOT_IN_A_KEY: Final = SESSION_PARAMETERS | TRACKING_PARAMETERS
_PORTS: Final = {"http:": 80, "https:": 443}
_LONG_HOST: Final = re.compile(
    rf"[\x00-\x20]*+(?:[a-z][a-z0-9+.-]*+:[/\\]*+|[/\\]{{2,}}+)[^/\\?#]{{{HOST_SPELLING_CHARS_MAX + 1}}}",
    re.IGNORECASE,
)
_IGNORED_BY_PARSERS: Final = re.compile(r"[\t\n\r]+")  # WHATWG: removed wherever they stand
_RAW_BYTE: Final = re.compile("[\udc80-\udcff]")  # how `surrogateescape` writes a byte that is not UTF-8

_NO_HOST: Final = re.compile(r"(https?):/*", re.IGNORECASE)
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_SLASHES: Final = re.compile(r"/{2,}")
# Not after `/` or `.`: what is left of such a segment would be empty or a dot segment.
_SESSION_IN_PATH: Final = re.compile(r"(?<=[^/.;])(?:;jsessionid=[^/;]*)+", re.IGNORECASE)
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986, 2.3
# Not allowed anywhere in a URL by RFC 3986, yet left alone in a path or a query by the WHATWG standard.
_ENCODED: Final = str.maketrans({char: f"%{ord(char):02X}" for char in "[]^`{|}"})


class Address(msgspec.Struct, frozen=True, gc=False):
    """A URL that can be asked for: http or https, with a host.

    `href` is absolute, ASCII, without fragment and credentials: what is fetched and the identity in the urls
    table. `host` is ASCII, an IPv6 address in brackets. `origin` is the WHATWG one (the default port is not
    written), the key of robots.txt (RFC 9309, 2.3). `domain` is the registered domain: see `domain_of`.
    """

    href: str
    host: str
    port: int
    origin: str
    domain: str


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Why something is not a URL that can be asked for, in a sentence a person can act on."""

    reason: str


def parse(url: str) -> Address | Refusal:
    """Read a URL as a browser would (WHATWG URL standard); never raises, whatever the string.

    White space and control characters around it are dropped, tabs and line ends inside it too.
    """
    if len(url) > HOST_SPELLING_CHARS_MAX and (refusal := _too_long(url)):
        return refusal
    parsed = _whatwg(url)
    if parsed is None:
        return Refusal("It is not an absolute URL with a valid host.")
    scheme = parsed.protocol
    if scheme not in _PORTS:
        return Refusal(f"Its scheme is {scheme[:-1][:32]}; only http and https are fetched.")
    if parsed.has_hash():
        parsed.hash = ""
    if parsed.has_credentials():
        parsed.username = parsed.password = ""
    href, host, port = parsed.href, parsed.hostname, parsed.port
    if len(href) > URL_BYTES_MAX:
        return Refusal(f"It is {len(href)} bytes long when encoded; the limit is {URL_BYTES_MAX}.")
    if not _can_be_looked_up(host):
        return Refusal("Its host name has an empty or overlong label: DNS cannot know it (RFC 1035).")
    return Address(href, host, int(port) if port else _PORTS[scheme], parsed.origin, domain_of(host))


def join(base: str, reference: str) -> str | None:
    """Resolve what a page or a `Location` header refers to; None if that is not a URL. The fragment is kept.

    A header is bytes. Browsers read non-ASCII bytes of `Location` as UTF-8 where they can; clients hand them
    over decoded as Latin-1, or as UTF-8 with `surrogateescape`. Both come back to the bytes that were sent.
    """
    if not reference.isascii():
        reference = _as_sent(reference)
    parsed = _whatwg(base)
    if parsed is None or (len(reference) > HOST_SPELLING_CHARS_MAX and _has_long_host(reference)):
        return None
    try:
        return _resolve_dots(parsed + reference).href
    except (ValueError, TypeError):  # not a URL; not encodable as UTF-8
        return None


@lru_cache(maxsize=DOMAINS_CACHED_MAX)
def domain_of(host: str) -> str:
    """Return whose site a host belongs to: its registered domain, the unit of pacing, halts and partitions.

    The public suffix list decides, private suffixes included: `alice.github.io` and `bob.github.io` have
    different owners, and one dead or slow tenant must not halt or queue up all of them; the platforms that
    enter the private part of the list serve many tenants by trade. Those not on it (medium.com) are one domain.
    A host that is itself a suffix, a single label and an IP address stand for themselves. Under a suffix the
    list does not know, the last two labels count (publicsuffix.org, the `*` rule).
    """
    name = host.rstrip(".")
    labels = name.split(".")
    # After WHATWG parsing a host whose last label is a number is an IPv4 address.
    if len(labels) == 1 or name.startswith("[") or labels[-1].isdigit():
        return name or host
    found = _suffix_list().extract_str(name)
    if not found.suffix:
        return ".".join(labels[-2:])
    return found.top_domain_under_public_suffix or name


@cache
def top_level_domains() -> frozenset[str]:
    """Every top-level domain the public suffix list knows, lower case, internationalised ones in Unicode."""
    return frozenset(rule.rpartition(".")[2] for rule in _suffix_list().tlds)


def normal_form(url: str) -> str | None:
    """Return the spelling all equivalent spellings of a URL share (RFC 3986, section 6), or None for no URL.

    WHATWG parsing does case of scheme and host, IDN to ASCII, default ports and dot segments. On top: no
    fragment, no credentials, no trailing dot of the host, percent-encoding only where needed and in capitals,
    single slashes, no session identifier, query parameters sorted by name (those of one name keep their order),
    `b=` written `b`. The case of the path is kept. Without a scheme, http is assumed, as people write.
    """
    text = url.strip()
    if hostless := _NO_HOST.fullmatch(text):
        return f"{hostless[1].lower()}:/"
    parsed = _whatwg(text)
    if parsed is None and not _SCHEME.match(text):
        parsed = _whatwg(f"http://{text}")
    if parsed is None:
        return None
    if parsed.protocol == "file:":
        authority = f"//{parsed.host}" if text.lower().startswith("file://") else ""
        return f"file:{authority}{_path_form(parsed.pathname)}"
    return _web_form(parsed, SESSION_PARAMETERS)


def canonical(url: str) -> str | None:
    """Return the key of the row a URL's metadata is kept under, or None if the URL can have no row.

    The normal form without tracking parameters; over `CANONICAL_BYTES_MAX`, without its query.
    """
    parsed = _whatwg(url)
    form = None if parsed is None else _web_form(parsed, _NOT_IN_A_KEY, TRACKING_PREFIX)
    if form is None or len(form) <= CANONICAL_BYTES_MAX:
        return form
    form = form.partition("?")[0]
    return form if len(form) <= CANONICAL_BYTES_MAX else None


def _whatwg(url: str) -> can_ada.URL | None:
    """Parse an absolute URL; lone surrogates count as U+FFFD, as in a USVString."""
    if len(url) > HOST_SPELLING_CHARS_MAX and _has_long_host(url):
        return None
    try:
        parsed = can_ada.parse(url)
    except ValueError:
        return None
    except TypeError:  # it cannot be encoded as UTF-8
        mended = url.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return _whatwg(mended) if mended != url else None
    return _resolve_dots(parsed)


def _resolve_dots(parsed: can_ada.URL) -> can_ada.URL:
    """Resolve the `.` and `..` (WHATWG, path state) that can_ada 3.0 leaves: in `/a/.b/../c`, for one."""
    path = parsed.pathname
    if "/." not in path:
        return parsed
    kept: list[str] = []
    plain = ""
    for segment in path.split("/")[1:]:
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            del kept[-1:]
        elif plain != ".":
            kept.append(segment)
    parsed.pathname = "/" + "/".join([*kept, ""] if plain in {".", ".."} else kept)
    return parsed


def _too_long(url: str) -> Refusal | None:
    """Refuse by length before the cost of parsing is paid. A fragment is not counted: it is not sent."""
    if _has_long_host(url):
        return Refusal(f"Its host is spelt in more than {HOST_SPELLING_CHARS_MAX} characters.")
    if len(url) > URL_BYTES_MAX and (chars := len(url.partition("#")[0])) > URL_BYTES_MAX:
        return Refusal(f"It is {chars} characters long; the limit is {URL_BYTES_MAX} bytes.")
    return None


def _has_long_host(reference: str) -> bool:
    return _LONG_HOST.match(_IGNORED_BY_PARSERS.sub("", reference)) is not None


def _can_be_looked_up(host: str) -> bool:
    """Whether DNS could hold the name: no empty label but the root's, none too long."""
    if ".." in host or host.startswith("."):
        return False
    longest = len(host) if len(host) <= LABEL_BYTES_MAX else max(map(len, host.split(".")))
    return longest <= LABEL_BYTES_MAX and len(host.rstrip(".")) <= HOST_BYTES_MAX


def _as_sent(reference: str) -> str:
    """Undo a client's decoding of header bytes; text that is neither Latin-1 nor escaped bytes stays as it is."""
    if _RAW_BYTE.search(reference):
        return _RAW_BYTE.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", reference)
    try:
        return reference.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return reference


@cache
def _suffix_list() -> "TLDExtract":
    """Read the public suffix list that tldextract bundles: once, and from disk only."""
    from tldextract import TLDExtract  # noqa: PLC0415 - 0.2 s and 25 MB, which not every process needs

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def _web_form(parsed: can_ada.URL, dropped: frozenset[str], dropped_prefix: str | None = None) -> str | None:
    """Write an http(s) URL in normal form, without the query parameters named; None for any other scheme."""
    if parsed.protocol not in _PORTS or not _can_be_looked_up(parsed.hostname):
        return None
    host = parsed.hostname.removesuffix(".")
    port = f":{parsed.port}" if parsed.has_port() else ""
    query = _query_form(parsed.search[1:], dropped, dropped_prefix) if parsed.has_search() else ""
    return f"{parsed.protocol}//{host}{port}{_path_form(parsed.pathname)}{query}"


def _path_form(path: str) -> str:
    return _SLASHES.sub("/", _SESSION_IN_PATH.sub("", _encoding_form(path)))


def _query_form(query: str, dropped: frozenset[str], dropped_prefix: str | None) -> str:
    pairs = []
    for parameter in _encoding_form(query).split("&"):
        name, _, value = parameter.partition("=")
        lower = name.lower()
        if name and lower not in dropped and not (dropped_prefix and lower.startswith(dropped_prefix)):
            pairs.append((name, f"{name}={value}" if value else name))
    pairs.sort(key=lambda pair: pair[0])
    return "?" + "&".join(text for _, text in pairs) if pairs else ""


def _encoding_form(text: str) -> str:
    return (_ESCAPE.sub(_escape_form, text) if "%" in text else text).translate(_ENCODED)


def _escape_form(escape: re.Match[str]) -> str:
    """Decode what needs no encoding, capitalise the rest, encode a percent sign that encodes nothing."""
    if escape[1] is None:
        return "%25"
    char = chr(int(escape[1], 16))
    return char if char in _UNRESERVED else escape[0].upper()
