"""Where a page says it is: canonical addresses, meta refresh, walls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.reading.canonical import same_site
from agents.reading.page import Reading, read
from agents.reading.refresh import parse_refresh

URL = "https://www.example.com/a/story?id=7"
ROOT = "https://www.example.com/"


def page(markup: str, url: str = URL, status: int = 200) -> Reading:
    return read(markup.encode(), url=url, content_type="text/html; charset=utf-8", status=status)


@pytest.mark.parametrize(
    ("declared", "url", "believed"),
    [
        ("https://example.com/a/story", URL, "https://example.com/a/story"),
        ("/a/story#part", URL, "https://www.example.com/a/story"),
        ("http://m.example.com/a", URL, "http://m.example.com/a"),
        ("https://other.org/a", URL, None),
        ("https://notexample.com/a", URL, None),
        ("https://www.example.com/", URL, None),
        ("https://www.example.com/", ROOT, "https://www.example.com/"),
        ("https://www.example.com/?p=7", URL, "https://www.example.com/?p=7"),
        ("", URL, None),
        ("javascript:void(0)", URL, None),
        ("https://[", URL, None),
        ("https://www.example.com/" + "x" * 1000, URL, None),
        ("undefined", URL, None),
    ],
)
def test_a_canonical_address_is_believed_only_within_reason(declared: str, url: str, believed: str | None) -> None:
    assert page(f'<link rel="canonical" href="{declared}">', url).canonical_url == believed


def test_og_url_is_asked_when_the_link_cannot_be_believed() -> None:
    head = '<link rel="canonical" href="https://www.example.com/"><meta property="og:url" content="/a/b">'
    assert page(head).canonical_url == "https://www.example.com/a/b"


def test_the_caller_may_say_what_one_site_is() -> None:
    head = b'<link rel="canonical" href="https://example.co.uk/a">'
    found = read(head, url=URL, content_type="text/html", same_site=lambda *_: True)
    assert found.canonical_url == "https://example.co.uk/a"


@given(st.text(max_size=20), st.text(max_size=20))
def test_same_site_is_symmetric_and_reflexive(one: str, other: str) -> None:
    assert same_site(one, one)
    assert same_site(one, other) == same_site(other, one)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0;url=/b", (0.0, "https://h/b")),
        ("5; URL = 'b c' junk", (5.0, "https://h/b%20c")),
        ('1,url="b', (1.0, "https://h/b")),
        ("  3\n b", (3.0, "https://h/b")),
        ("3.9;b", (3.0, "https://h/b")),
        (".5;b", (0.0, "https://h/b")),
        ("0;urlb", (0.0, "https://h/urlb")),
        ("0;url=", (0.0, "https://h/")),
        ("0;", (0.0, "https://h/")),
        ("7", (7.0, "https://h/")),
        ("0;url=//other/x", (0.0, "https://other/x")),
        ("0;url=javascript:x", None),
        ("0url=b", None),
        ("url=b", None),
        ("-1;url=b", None),
        ("", None),
        ("9" * 5000, (1e9, "https://h/")),
    ],
)
def test_refresh_is_parsed_by_the_standards_steps(value: str, expected: tuple[float, str] | None) -> None:
    """https://html.spec.whatwg.org/#shared-declarative-refresh-steps."""
    assert parse_refresh(value, "https://h/") == expected


@given(st.text())
def test_any_refresh_is_a_value(value: str) -> None:
    found = parse_refresh(value, "https://h/")
    assert found is None or found[0] >= 0


def test_a_page_that_reloads_itself_sends_nobody_anywhere() -> None:
    assert page(f'<meta http-equiv="refresh" content="600;url={URL}#top">').refresh is None
    assert page('<meta http-equiv="Refresh" content="600">').refresh is None


def test_what_stands_in_noscript_declares_nothing() -> None:
    found = page('<noscript><meta http-equiv="refresh" content="0;url=/x"></noscript><link rel="canonical" href="/c">')
    assert found.refresh is None
    assert found.canonical_url == "https://www.example.com/c"


LONG = "<p>" + "This page has a lot to say about the matter. " * 50
WALLS = {
    "cloudflare": ("<title>Just a moment...</title><p>Enable JavaScript and cookies to continue", URL, 403),
    "access denied": ("<title>Access Denied</title><h1>Access Denied</h1>", URL, 200),
    "bloomberg": ("<title>Bloomberg - Are you a robot?</title>", URL, 200),
    "imperva": ('<title>shop</title><iframe src="/_Incapsula_Resource?x=1">', URL, 200),
    "sentence": ("<title>shop.example</title><p>Please verify you are a human", URL, 200),
    "captcha": ('<title>shop</title><div class="g-recaptcha">', URL, 429),
    "youtube consent": ("<title>Before you continue to YouTube</title>", URL, 200),
    "consent host": ("<title>x</title>" + LONG, "https://consent.example.com/m?continue=https://x", 200),
    "log-in form": ("<title>Log in - Example</title><input type=password>", URL, 200),
    "log-in bounce": ("<title>x</title>", "https://www.example.com/login/?next=%2Fa", 200),
}
PAGES = {
    "an article with a wall's title": ("<title>Are you a robot?</title>" + LONG, URL, 200),
    "a card with a wall's title": ('<title>Captcha</title><meta property="og:image" content="a.png">', URL, 200),
    "an article about them": ("<title>x</title><p>Sites ask: are you a robot?" + LONG, URL, 200),
    "a page with a script of theirs": (
        '<title>x</title><script src="/_Incapsula_Resource?x">' + "</script>" + LONG,
        URL,
        200,
    ),
    "a page with a form": ('<title>Contact</title><div class="g-recaptcha">', URL, 200),
    "a page that names a log-in": ("<title>Log in - a short history</title>" + LONG, URL, 200),
    "a log-in page asked for": ("<title>x</title>", "https://www.example.com/login/", 200),
    "nothing": ("", URL, 200),
}


@pytest.mark.parametrize(("markup", "url", "status"), WALLS.values(), ids=WALLS)
def test_a_wall_is_known(markup: str, url: str, status: int) -> None:
    assert page(markup, url, status).wall


@pytest.mark.parametrize(("markup", "url", "status"), PAGES.values(), ids=PAGES)
def test_a_page_is_not_a_wall(markup: str, url: str, status: int) -> None:
    assert page(markup, url, status).wall is None
