"""Whether a page is a wall: a captcha, a consent form or a log-in that stands where the page should be.

A wall must never become a card, and an article about captchas must. So no sign is enough alone: an address that
bounces to a log-in, a title that only walls have, the script of a challenge service or a sentence that asks for
something counts only on a page that says little else, and only a log-in may have a card of its own.
"""

import re
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from selectolax.lexbor import LexborHTMLParser

from agents.reading.body import visible_text
from agents.reading.tags import Tags

MARKUP_BYTES_MAX: Final = 64 * 1024  # challenge pages are small; in a large page a marker is an ordinary script
TEXT_CHARS_MAX: Final = 1_500
SENTENCE_TEXT_CHARS_MAX: Final = 600
TITLE_CHARS_MAX: Final = 120

_ROBOT: Final = "a challenge for robots stands in front of the page"
_CONSENT: Final = "a consent form stands in front of the page"
_LOG_IN: Final = "a log-in stands in front of the page"
_SCRIPTS: Final = "the page asks for JavaScript or cookies before it shows anything"

# What walls are titled, whole titles but for punctuation.
_TITLES: Final = {
    _ROBOT: (
        r"just a moment|one more step|please wait|un momento|einen moment|un instant",
        r"attention required|access (?:to this page has been )?denied|pardon our interruption|client challenge",
        r"(?:bloomberg - )?are you (?:a )?(?:robot|human)|robot (?:check|or human)|ddos-guard|captcha|bot detection",
        r"(?:vercel )?security (?:check|checkpoint|verification|challenge)|making sure you're not a bot",
        r"(?:human|captcha|bot) (?:verification|check|challenge)",
        r"(?:please )?(?:verify|verifying|prove|confirm)(?: that)? you(?:'re| are) (?:a )?(?:human|not a robot)",
        r"checking (?:your browser|if the site connection is secure).{0,60}",
    ),
    _CONSENT: (
        r"before you continue(?: to .{1,40})?|bevor sie .{0,40}(?:fortfahren|weitergehen)|avant d.accéder à .{1,40}",
        r"prima di continuare.{0,40}|antes de continuar.{0,40}|cookie consent|consent (?:form|required)",
        r"yahoo is part of the yahoo family of brands|your privacy choices",
    ),
    _LOG_IN: (
        r"(?:log ?in|sign ?in|sign up|anmelden|connexion|se connecter|accedi)(?:(?: to| into| or| [|•·-]) .{1,60})?",
        r"(?:iniciar sesión|entrar)(?: .{1,60})?",
        r".{1,30} [|•·-] (?:log ?in|sign ?in|anmelden)|authwall",
    ),
    _SCRIPTS: (
        r"(?:please )?(?:enable|turn on) (?:javascript|cookies|js).{0,40}",
        r"javascript (?:is )?(?:required|disabled)",
    ),
}
_TITLE_PATTERNS: Final = tuple(
    (reason, re.compile(rf"\W*(?:{'|'.join(titles)})\W*(?:[|-] (?:cloudflare|akamai|imperva)\W*)?", re.IGNORECASE))
    for reason, titles in _TITLES.items()
)

# What only the pages of challenge services carry, besides a title of the site's own.
_MARKERS: Final = (
    b"_cf_chl_opt",
    b"cf-browser-verification",
    b"_Incapsula_Resource?",
    b"px-captcha",
    b"captcha-delivery.com",
    b"/_sec/cp_challenge/",
    b"AwsWafIntegration",
    b"/.ddos-guard/",
    b"/.within.website/",
    b"distil_r_captcha",
    b'id="challenge-form"',
)
_SENTENCE: Final = re.compile(
    r"(?:enable|turn on) javascript and cookies|verify (?:that )?you(?:'re| are) (?:a )?(?:human|not a robot)|"
    r"are you a robot|unusual traffic from your|complete the security check|press (?:&|and) hold|"
    r"checking your browser before|confirm (?:that )?you are (?:a )?human|not a robot",
    re.IGNORECASE,
)
_LOG_IN_PATH: Final = re.compile(
    r"/(?:log-?in|sign-?in|authwall|servicelogin|sso|oauth2?/authorize|uas/login)(?:[/.?]|$)", re.IGNORECASE
)
_CONSENT_HOST: Final = re.compile(r"(?:^|\.)(?:consent|guce)\.", re.IGNORECASE)
_REFUSALS: Final = frozenset((401, 403, 429, 503))
_WAY_BACK: Final = frozenset(
    (
        "next",
        "return",
        "returnurl",
        "return_url",
        "return_to",
        "returnto",
        "redirect",
        "redirect_uri",
        "redirect_url",
        "redirecturl",
        "continue",
        "destination",
        "dest",
        "session_redirect",
        "sessionredirect",
        "trk_original",
        "url",
        "goto",
        "from",
    )
)


def wall(tags: Tags, tree: LexborHTMLParser, *, body: bytes, url: str, status: int = 200) -> str | None:
    """Why a page is a wall, in words; None for a page that is what it seems."""
    if reason := _bounced(url):
        return reason
    if reason := _titled(tags, tree):
        return reason if len(visible_text(tree, TEXT_CHARS_MAX)) < TEXT_CHARS_MAX else None
    if len(body) > MARKUP_BYTES_MAX or tags.meta("og:title", "og:description", "description"):
        return None
    return _asks(tree, body, refused=status in _REFUSALS)


def _titled(tags: Tags, tree: LexborHTMLParser) -> str | None:
    title = " ".join((tags.title or tags.meta("og:title") or "").split())[:TITLE_CHARS_MAX]
    reason = next((reason for reason, pattern in _TITLE_PATTERNS if pattern.fullmatch(title)), None)
    if reason == _LOG_IN:
        return reason if tree.css_first("input[type=password i]") is not None else None
    return None if tags.meta("og:image", "og:description") else reason


def _bounced(url: str) -> str | None:
    """Whether an address is a log-in or a consent page that knows the way back."""
    parts = urlsplit(url)
    if _CONSENT_HOST.search(parts.hostname or ""):
        return _CONSENT
    if not parts.query or not _LOG_IN_PATH.search(parts.path):
        return None
    return _LOG_IN if any(key.lower() in _WAY_BACK for key, _ in parse_qsl(parts.query)) else None


def _asks(tree: LexborHTMLParser, body: bytes, *, refused: bool) -> str | None:
    if any(marker in body for marker in _MARKERS):
        return _ROBOT if len(visible_text(tree, TEXT_CHARS_MAX)) < TEXT_CHARS_MAX else None
    text = visible_text(tree, SENTENCE_TEXT_CHARS_MAX)
    if len(text) < SENTENCE_TEXT_CHARS_MAX and _SENTENCE.search(text):
        return _ROBOT
    captcha = refused and any(name in body for name in (b"g-recaptcha", b"h-captcha", b"cf-turnstile"))
    return _ROBOT if captcha and len(text) < SENTENCE_TEXT_CHARS_MAX else None
