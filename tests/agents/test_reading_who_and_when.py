"""Authors, dates and languages: as declared, as printed, as recognised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.reading.authors import byline
from agents.reading.dates import date_in_tag, date_in_text, date_in_url
from agents.reading.language import language_tag, recognise
from agents.reading.page import read
from topology.records import Metadata

URL = "https://www.example.com/story"


def said(markup: str, url: str = URL) -> Metadata:
    return read(markup.encode(), url=url, content_type="text/html; charset=utf-8").metadata


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("By Jane Doe", "Jane Doe"),
        ("Written by: Jane Doe | 3 May 2019", "Jane Doe"),
        ("By Jane Doe, Staff Writer", "Jane Doe"),
        ("von Jürgen von der Lippe", "Jürgen von der Lippe"),
        ("By Jane Doe and John Roe @jane", "Jane Doe and John Roe"),
        ("Jane Doe March 11, 2015 3:46 PM", "Jane Doe"),
        ("17 January 2017 at 6 PM by Jane Doe", "Jane Doe"),
        ("Jane Doe (Example News)", "Jane Doe"),
        ("松岡大地", "松岡大地"),
        ("Read more", None),
        ("3 comments", None),
        ("By", None),
        ("12", None),
    ],
)
def test_a_byline_is_a_name(text: str, name: str | None) -> None:
    assert byline(text) == name


@pytest.mark.parametrize(
    ("markup", "author", "source"),
    [
        (
            '<meta property="article:author" content="Jane Doe"><meta name=author content=X>',
            "Jane Doe",
            "article:author",
        ),
        (
            '<meta property="article:author" content="https://facebook.com/x"><meta name=author content="by J D">',
            "J D",
            "author",
        ),
        (
            '<meta name=citation_author content="A B"><meta name=citation_author content="C D">',
            "A B, C D",
            "citation_author",
        ),
        ('<meta name="site:author" content="Jane Doe">', "Jane Doe", "site:author"),
        ("<p itemprop=author>By <span itemprop=name>Jane Doe</span>, 3 May</p>", "Jane Doe", "itemprop=author"),
        ('<a rel="author" href=x>Jane Doe</a>', "Jane Doe", "rel=author"),
        ('<div class="post-byline">By <b>Jane Doe</b></div>', "Jane Doe", "byline"),
        ("<aside><b class=author>Other One</b></aside><b class=author>Jane Doe</b>", "Jane Doe", "byline"),
        ('<div class="comment-list"><b class=author>Other One</b></div>', None, None),
        ("<h1>Title</h1><p>By Jane Doe</p>", "Jane Doe", "near heading"),
        ("<h1>Title</h1><p>By the time we left it was late</p>", None, None),
        (
            '<meta property=og:site_name content="News"><meta name=author content=News><b class=byline>Jane Doe</b>',
            "Jane Doe",
            "byline",
        ),
        ('<meta property=og:site_name content="News"><meta name=author content=News>', "News", "author"),
        (
            '<meta name="twitter:site" content="@news"><meta name="twitter:creator" content="@jane">',
            "@jane",
            "twitter:creator",
        ),
        ('<meta name="twitter:site" content="@news"><meta name="twitter:creator" content="@news">', None, None),
    ],
)
def test_the_author_is_the_person_a_page_names(markup: str, author: str | None, source: str | None) -> None:
    found = said(markup)
    assert (found.author, found.provenance.get("author")) == (author, source)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2019-04-21T02:51:39.000Z", "2019-04-21T02:51:39Z"),
        ("2016-12-22 05:00 -0800", "2016-12-22T05:00:00-08:00"),
        ("Thu, 22 Dec 2016 14:22:19 GMT", "2016-12-22"),
        ("am 25.08.2015 22:30", "2015-08-25"),
        ("Apr 27th, 2020", "2020-04-27"),
        ("mardi 5 juin 2018", "2018-06-05"),
        ("5 de maio de 2019", "2019-05-05"),
        ("12 мая 2015 года", "2015-05-12"),
        ("2019年4月8日 08時00分", "2019-04-08"),
        ("2024. 09. 4.", "2024-09-04"),
        ("4/5/2019", "2019-05-04"),
        ("26/10/2018", "2018-10-26"),
        ("2019-02-30", None),
        ("31 novembre 2019", None),
        ("1.2.3.2019", None),
        ("Version 10.2.1", None),
        ("", None),
    ],
)
def test_dates_are_read_as_people_write_them(text: str, iso: str | None) -> None:
    assert date_in_text(text) == iso


def test_a_slash_means_what_the_writers_country_means() -> None:
    assert date_in_text("4/5/2019", month_first=True) == "2019-04-05"
    assert date_in_text("26/10/2018", month_first=True) == "2018-10-26"
    assert date_in_text("4.5.2019", month_first=True) == "2019-05-04"


def test_tags_may_hold_numbers() -> None:
    assert date_in_tag("20190421") == "2019-04-21"
    assert date_in_tag("1555814400000") == "2019-04-21T02:40:00Z"
    assert date_in_tag("20191399") is None


@pytest.mark.parametrize(
    ("url", "iso"),
    [
        ("https://a/2019/04/21/x", "2019-04-21"),
        ("https://a/x-2019-4-1", "2019-04-01"),
        ("https://a/20190421-x", "2019-04-21"),
        ("https://a/x?d=2019-04-21", None),
        ("https://a/2019/04/x", None),
        ("https://a/120190421", None),
    ],
)
def test_an_address_may_name_a_day(url: str, iso: str | None) -> None:
    assert date_in_url(url) == iso


@given(st.text(), st.booleans())
def test_any_text_has_a_date_or_not(text: str, month_first: bool) -> None:
    date_in_text(text, month_first=month_first)
    date_in_tag(text)
    date_in_url(text)


@pytest.mark.parametrize(
    ("markup", "url", "published", "source"),
    [
        (
            '<time datetime=2001-01-01><meta property="article:published_time" content="2019-04-21T01:00:00Z">',
            URL,
            "2019-04-21T01:00:00Z",
            "article:published_time",
        ),
        (
            '<script type="application/ld+json">{"@type":"Article","datePublished":"2019-04-21"}</script>',
            URL,
            "2019-04-21",
            "json-ld",
        ),
        ("<meta itemprop=datePublished content=2019-04-21>", URL, "2019-04-21", "itemprop=datePublished"),
        ('<meta name="x-publish-date" content="2019-04-21">', URL, "2019-04-21", "x-publish-date"),
        ("", "https://a/2019/04/21/x", "2019-04-21", "url"),
        ('<time datetime="2019-04-21T10:00Z">', "https://a/2019/04/21/x", "2019-04-21T10:00:00Z", "time"),
        ("<time datetime=2018-01-01></time><time class=published datetime=2019-04-21>", URL, "2019-04-21", "time"),
        ("<i class=comment-date>1 May 2020</i><i class=post-date>21 April 2019</i>", URL, "2019-04-21", "printed date"),
        ("<i class=update-notice>1 May 2020</i>", URL, None, None),
        ("<h1>T</h1><small>Donnerstag, 15.2.2018, 19:51</small>", URL, "2018-02-15", "near heading"),
        ('<meta property="og:updated_time" content="2019-04-21">', URL, "2019-04-21", "og:updated_time"),
    ],
)
def test_the_date_is_when_it_was_published(markup: str, url: str, published: str | None, source: str | None) -> None:
    found = said(markup, url)
    assert (found.published, found.provenance.get("published")) == (published, source)


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        ("en", "en"),
        ("EN_us", "en-US"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("de_DE.UTF-8", "de-DE"),
        ("es-419", "es-419"),
        ("en, fr", "en"),
        ("sr-latn", "sr-Latn"),
        ("und", None),
        ("{{lang}}", None),
        ("", None),
        ("english", None),
    ],
)
def test_a_language_is_a_bcp_47_tag(value: str, tag: str | None) -> None:
    assert language_tag(value) == tag


@pytest.mark.parametrize(
    ("markup", "language", "source"),
    [
        ('<html lang="pt-br"><meta http-equiv=content-language content=en>', "pt-BR", "html lang"),
        ("<html lang=''><meta http-equiv=content-language content=fr>", "fr", "content-language"),
        ('<meta property="og:locale" content="de_AT">', "de-AT", "og:locale"),
        ("<p>Ceci est une phrase en français, et encore une autre pour que ce soit bien certain.", "fr", "text"),
        ("<p>ok", None, None),
    ],
)
def test_the_language_is_declared_or_recognised(markup: str, language: str | None, source: str | None) -> None:
    found = said(markup)
    assert (found.language, found.provenance.get("language")) == (language, source)


def test_too_little_text_is_of_no_language() -> None:
    assert recognise("") is None
    assert recognise("OK 12 34") is None
