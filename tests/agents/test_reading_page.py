"""What is read from a page, field by field, and that nothing a page holds can make reading raise."""

import json
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.reading.page import Reading, noindex, read
from topology.records import Image, encode

URL = "https://www.example.com/news/2019/story"


def page(head: str, body: str = "", *, url: str = URL, **more: object) -> Reading:
    return read(f"<!doctype html><head>{head}</head><body>{body}".encode(), url=url, content_type="text/html", **more)


def said(head: str, body: str = "", **more: object) -> tuple[object, ...]:
    """Title, description and image URL with where they came from."""
    found = page(head, body, **more).metadata
    image = found.image.url if found.image else None
    return found.title, found.description, image, found.provenance


def cards(prefix: str, words: str, attribute: str) -> str:
    return "".join(
        f'<meta {attribute}="{prefix}:{name}" content="{content}">'
        for name, content in (("title", words), ("description", f"{words} says"), ("image", f"/{words.lower()}.png"))
    )


OG = cards("og", "OG", "property")
TWITTER = cards("twitter", "TW", "name")
LD = (
    '<script type="application/ld+json">'
    '{"@type": "NewsArticle", "headline": "LD", "description": "LD says", "image": ["/ld.png"]}</script>'
)
HTML = '<title>T</title><meta name="description" content="D says"><link rel="image_src" href="/l.png">'


@pytest.mark.parametrize(
    ("head", "fields", "source"),
    [
        (HTML + LD + TWITTER + OG, ("OG", "OG says", "og.png"), "og:title"),
        (HTML + LD + TWITTER, ("TW", "TW says", "tw.png"), "twitter:title"),
        (HTML + LD, ("LD", "D says", "ld.png"), "json-ld"),
        (HTML, ("T", "D says", "l.png"), "title"),
    ],
)
def test_opengraph_wins_over_twitter_over_jsonld_over_html(head: str, fields: tuple[str, ...], source: str) -> None:
    title, description, image, provenance = said(head)
    assert (title, description, image) == (fields[0], fields[1], f"https://www.example.com/{fields[2]}")
    assert provenance["title"] == source


@pytest.mark.parametrize("nothing", ["", "  ", "undefined", "null", "{{ page.title }}", "&nbsp;", "\u200b"])
def test_a_source_that_says_nothing_gives_way_to_the_next(nothing: str) -> None:
    title, *_ = said(f'<meta property="og:title" content="{nothing}"><title>Real</title>')
    assert title == "Real"


@pytest.mark.parametrize(
    "url", ["", "data:image/png;base64,AAAA", "javascript:x", "/1x1.gif", "https://[", "undefined"]
)
def test_an_image_that_cannot_be_shown_gives_way_to_the_next(url: str) -> None:
    _, _, image, _ = said(f'<meta property="og:image" content="{url}"><meta name="twitter:image" content="b.png">')
    assert image == "https://www.example.com/news/2019/b.png"


def test_structured_image_properties_belong_to_the_image_before_them() -> None:
    found = page(
        '<meta property="og:image" content="data:x"><meta property="og:image:width" content="1">'
        '<meta property="og:image" content="http://i/a.png"><meta property="og:image:secure_url" content="https://i/a.png">'
        '<meta property="og:image:width" content="1200px"><meta property="og:image:height" content="630.0">'
        '<meta property="og:image:type" content="image/PNG"><meta property="og:image:alt" content=" An  image ">'
        '<meta property="og:image" content="http://i/b.png"><meta property="og:image:width" content="7">'
    )
    assert found.metadata.image == Image("http://i/a.png", 1200, 630, "image/png", "An image")


def test_relative_addresses_are_resolved_against_the_first_base() -> None:
    found = page(
        '<base href="/b/"><base href="/c/"><link rel="shortcut icon" href="i.ico">'
        '<meta property="og:image" content="p.png">'
    )
    assert found.metadata.icon == "https://www.example.com/b/i.ico"
    assert found.metadata.image == Image("https://www.example.com/b/p.png")


@pytest.mark.parametrize(
    ("title", "heading", "kept"),
    [
        ("A fine headline | The Site", "", "A fine headline"),
        ("The Site: A fine headline", "", "A fine headline"),
        ("A fine headline - News - The Site", "A fine headline", "A fine headline"),
        ("A fine long headline (Published 2016)", "A fine long headline", "A fine long headline"),
        ("Breaking News: a fine headline follows", "Breaking News", "Breaking News: a fine headline follows"),
        ("The Site", "", "The Site"),
        ("A fine headlineThe Site", "", "A fine headlineThe Site"),
    ],
)
def test_the_site_is_not_part_of_the_headline(title: str, heading: str, kept: str) -> None:
    found = page(f'<meta property="og:site_name" content="The Site"><title>{title}</title>', f"<h1>{heading}</h1>")
    assert found.metadata.title == kept


def test_text_is_one_clean_line_of_bounded_length() -> None:
    title, description, *_ = said(
        f'<title>A &amp;quot;quoted&amp;quot;\n\t title\x01</title><meta name="description" content="{"word " * 2000}">'
    )
    assert title == 'A "quoted" title'
    assert isinstance(description, str)
    assert len(description) <= 2000
    assert description.endswith("word…")


@pytest.mark.parametrize(
    ("script", "title"),
    [
        ('/*<![CDATA[*/{"@type":"Article","headline":"H"}/*]]>*/', "H"),
        ('<!-- {"@type":"Article","headline":"H"} -->', "H"),
        ('{"@type":"Article","headline":"two\nlines",}', "two lines"),
        ("{&quot;@type&quot;:&quot;Article&quot;,&quot;headline&quot;:&quot;H&quot;}", "H"),
        ('[{"@type":"BreadcrumbList"},{"@type":["Thing","http://schema.org/NewsArticle"],"headline":"H"}]', "H"),
        ('{"@graph":[{"@type":"WebPage","name":"W"},{"@type":"BlogPosting","headline":"H"}]}', "H"),
        ('{"@type":"WebPage","mainEntity":{"@type":"Product","name":"P"}}', "P"),
        ('{"@type":"Article","headline":"H"};{"@type":"Article"}', "H"),
        ('{"@type":"Article","headline":"\\ud800H"}', "H"),
        ('{"@type":"Article","headline":' + "[" * 5000, None),
        ("[" * 100_000, None),
        ("{broken", None),
        ("", None),
    ],
)
def test_json_ld_is_forgiven_its_form(script: str, title: str | None) -> None:
    assert page(f'<script type="application/ld+json">{script}</script>').metadata.title == title


def test_authors_by_reference_are_named() -> None:
    graph = {
        "@graph": [
            {"@type": "Article", "author": {"@id": "#jane"}},
            {"@type": "Person", "@id": "#jane", "name": "Jane Doe"},
        ]
    }
    assert page(f'<script type="application/ld+json">{json.dumps(graph)}</script>').metadata.author == "Jane Doe"


@pytest.mark.parametrize(
    ("og_type", "ld_type", "category"),
    [
        ("article", "Product", "article"),
        ("video.movie", None, "video"),
        ("music.song", None, "music"),
        ("product", None, "product"),
        ("website", "NewsArticle", "article"),
        ("website", None, "website"),
        ("my_ns:product", None, "product"),
        (None, "MusicRecording", "music"),
        (None, "WebPage", "website"),
        ("nonsense", None, None),
    ],
)
def test_the_category_is_a_word_of_ours(og_type: str | None, ld_type: str | None, category: str | None) -> None:
    head = f'<meta property="og:type" content="{og_type}">' if og_type else ""
    head += f'<script type="application/ld+json">{{"@type": "{ld_type}"}}</script>' if ld_type else ""
    assert page(head).metadata.category == category


def test_a_body_that_is_not_a_page_has_only_its_kind() -> None:
    assert read(b"%PDF-1.7", url=URL).metadata.media_type == "pdf"
    assert read(b"<p>hello", url=URL, content_type="text/plain").metadata.media_type == "text"
    assert read(b"GIF89a", url=URL).metadata.image == Image(URL, media_type="image/gif")


def test_the_encoding_of_a_page_is_found_and_used() -> None:
    found = read(
        "<meta charset=windows-1251><title>Привет</title>".encode("windows-1251"), url=URL, content_type="text/html"
    )
    assert (found.encoding, found.metadata.title) == ("windows-1251", "Привет")


@pytest.mark.parametrize(
    ("robots", "forbidden"),
    [
        ("noindex", True),
        ("index, NoIndex ", True),
        ("none", True),
        ("index,follow", False),
        ("", False),
        ("otherbot: noindex", False),
        ("googlebot: noindex", True),
        ("noindex, unavailable_after: 25 Jun 2010", True),
        ("unavailable_after: 25 Jun 2010", False),
    ],
)
def test_noindex_is_honoured(robots: str, forbidden: bool) -> None:
    assert noindex(robots) is forbidden
    assert page(f'<meta name="robots" content="{robots}">').noindex is forbidden


def test_heavy_libraries_wait_until_a_page_needs_them() -> None:
    """The memory of a parse worker: Pillow, lxml and numpy are for images, site rules and undeclared languages."""
    heavy = "{'PIL', 'lxml', 'parsel', 'numpy', 'py3langid'} & set(sys.modules)"
    code = f"import sys, agents.reading.page; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # ours
    assert done.stdout == "set()\n"


ATTRIBUTES = " ".join(f"a{number}=b" for number in range(100_000))
HOSTILE = {
    "nested": b"<div>" * 100_000,
    "nested classes": b'<div class="author date comment">x' * 20_000,
    "formatting": b"<b><i><a>" * 20_000,
    "headings": b"<h1><div>x" * 20_000,
    "tables": b"<table><tr><td>" * 20_000,
    "paragraphs": b"<p><button>" * 20_000,
    "half closed": b"<div></x>" * 100_000,
    "attributes": f"<html {ATTRIBUTES}><body {ATTRIBUTES}><p class=author {ATTRIBUTES}>x".encode(),
    "long attribute": b'<meta property="og:title" content="' + b"x" * 5_000_000 + b'"><title>y</title>',
    "title": b"<title>" + b"x " * 500_000,
    "braces": b"<title>" + b"{{" * 500_000,
    "entities": b"<title>" + b"&#xD800;&amp;" * 100_000,
    "metas": b'<meta name="x-author-date" content="2019-99-99">' * 50_000,
    "times": b"<time>1 1 1 1 1 1</time>" * 50_000,
    "itemprops": b'<i itemprop="author date name">' * 20_000,
    "json nesting": b'<script type="application/ld+json">' + b'{"@graph":[' * 50_000,
    "json spaces": b'<script type="application/ld+json">' + b" " * 500_000 + b"x",
    "json nodes": b'<script type="application/ld+json">[' + b'{"@type":"Article"},' * 40_000 + b"{}]",
    "nul": b"\x00" * 1_000_000,
    "nul in tags": b"<ti\x00tle>a\x00b</title><meta property=og:title content='a\x00b'>",
    "comment": b"<!--" * 200_000,
    "open tag": b"<meta " + b"charset " * 100_000,
    "script": b"<script>" + b"<!--<script>" * 80_000,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_page_is_read_in_bounded_time(body: bytes) -> None:
    """Two seconds is far above what any of them takes here, and far below what an unbounded step would."""
    started = time.process_time()
    encode(read(body, url=URL, content_type="text/html").metadata)
    assert time.process_time() - started < 2


TAGS = st.sampled_from(
    (
        *(
            "<title>",
            "</title>",
            "<meta property=og:title content='",
            "'>",
            "<meta name=author content=",
            "<h1>",
            "<time datetime=",
        ),
        *(
            "<script type=application/ld+json>",
            "</script>",
            '{"@type":"Article","author":',
            '"headline":"',
            '"}',
            "[",
            "\\ud800",
        ),
        *(
            "<p class=byline>By ",
            "<link rel=canonical href=",
            "<base href=",
            "<meta http-equiv=refresh content='0;url=",
            "&#xD800;",
        ),
        *(
            "<img src=",
            ">",
            "2019-02-30",
            "http://[::",
            "\x00",
            "\u2028",
            "<svg>",
            "<noscript>",
            "<html lang=",
            "<body class=date>",
        ),
    )
)


@given(
    st.lists(TAGS | st.text(max_size=8), max_size=30).map("".join),
    st.sampled_from(["text/html", "text/html; charset=utf-16le"]),
)
def test_any_soup_of_tags_is_read(soup: str, content_type: str) -> None:
    encode(read(soup.encode("utf-8", "surrogatepass"), url=URL, content_type=content_type).metadata)


@given(
    st.binary(), st.none() | st.sampled_from(["text/html", "image/svg+xml", "image/png", "text/html; charset=euc-jp"])
)
def test_any_bytes_are_read_and_give_utf_8(body: bytes, content_type: str | None) -> None:
    encode(read(body, url=URL, content_type=content_type).metadata)
