"""Which address a page gives as its own, when it can be believed.

`rel=canonical` (RFC 6596) is written by templates and often wrong: it points at the home page, at another site,
at nothing. It is believed only for an http(s) address of the same site, and never when a page below the root
claims to be the root. og:url is asked when there is no link, under the same rules.
"""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from agents.reading.tags import Tags
from agents.reading.text import web_url

CANONICAL_CHARS_MAX: Final = 1000

SameSite = Callable[[str, str], bool]  # of two host names

_ROOTS: Final = frozenset(("", "/", "/index.html", "/index.htm", "/index.php", "/home"))


def same_site(one: str, other: str) -> bool:
    """Whether two hosts are one but for `www.`, or one is below the other.

    Cheap, and without a list of public suffixes: the caller that has one passes its own comparison.
    """
    one, other = one.removeprefix("www."), other.removeprefix("www.")
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")


def canonical_url(tags: Tags, *, url: str, same_site: SameSite) -> str | None:
    """The address a page declares as its own, absolute; None when it declares none that can be believed."""
    for declared in (tags.href("canonical"), tags.meta("og:url")):
        absolute = web_url(declared, tags.base)
        if absolute and believable(absolute, url=url, same_site=same_site):
            return absolute.split("#", 1)[0]
    return None


def believable(canonical: str, *, url: str, same_site: SameSite) -> bool:
    """Whether a page at `url` may be known as `canonical`. Both are absolute http(s) URLs."""
    if len(canonical) > CANONICAL_CHARS_MAX:
        return False
    try:
        theirs, ours = urlsplit(canonical), urlsplit(url)
        if not theirs.hostname or not ours.hostname or not same_site(theirs.hostname, ours.hostname):
            return False
    except ValueError:
        return False
    to_root = theirs.path in _ROOTS and not theirs.query
    return not to_root or (ours.path in _ROOTS and not ours.query)
