"""URLs in a text: Twitter's rules, and that no text takes more than its share of time."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.extracting import domains, text
from agents.extracting.text import Found, urls_in_text

SCRAPS = (
    "http://|https://|t.co/|t.co|example.com|ELPAÍS.com|あ.com|これは|。|.|..|-|_|@|#|/|//|(|)|(a)|?|=|&|!|,|:80|:| "
    "|\n|a|B|com|jp|.co|.みんな|xn--|.xn--p1ai|xn--p1ai|…|'s|😀|\u2066|\u202a|\ufeff|\ud83d|é|Ж|—|%20|[|]|$|+|~|;|*|\x00"
)
TEXTS = st.one_of(st.lists(st.sampled_from(SCRAPS.split("|")), max_size=25).map("".join), st.text())


@pytest.mark.parametrize(
    "group", ["urls", "urls_with_indices", "urls_with_directional_markers", "tco_urls_with_params"]
)
def test_the_public_cases_of_twitter_text(shared, group):
    cases = json.loads((shared / "cases" / "twitter_text_urls.json").read_text("utf-8"))[group]
    for case in cases:
        found = urls_in_text(case["text"])
        if case["expected"] and isinstance(case["expected"][0], dict):
            got = [{"url": each.url, "indices": [each.start, each.end]} for each in found]
        else:
            got = [each.url for each in found]
        assert got == case["expected"], case["description"]


@given(TEXTS)
def test_what_is_found_stands_in_the_text_in_order_and_apart(words):
    end = 0
    for found in urls_in_text(words):
        assert words[found.start : found.end] == found.url
        assert found.start >= end
        end = found.end


@given(TEXTS, TEXTS)
def test_a_line_between_two_texts_keeps_them_apart(first, second):
    """A line end is part of no URL and lets one begin after it."""
    joined = urls_in_text(f"{first}\n{second}")
    assert [each.url for each in joined] == [each.url for each in urls_in_text(first) + urls_in_text(second)]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("see (http://example.com/a_(b_(c))_d) now", ["http://example.com/a_(b_(c))_d"]),
        ("(see http://example.com/a)", ["http://example.com/a"]),
        ("http://example.com/((a))", ["http://example.com/((a))"]),
        ("http://example.com/(a", ["http://example.com/"]),
        ("http://example.com/a.?b", ["http://example.com/a"]),
        ("http://example.com?a=b.", ["http://example.com?a=b"]),
        ("HTTPS://Example.COM/Ab", ["HTTPS://Example.COM/Ab"]),
        ("@example.com #example.com $example.com a@example.com", []),
        ("\uff20example.com \uff03example.com", []),
        ("example.com@ example.com+x", []),
        ("it ends.So it does", ["ends.So"]),  # Twitter links these, and so do we
        ("it ends.And it goes on, 2.5%, U.S., v1.2.3", []),
        ("xhttp://example.com", []),
        ("日本http://example.com", ["http://example.com"]),
        ("日本.jp http://日本.jp/あ", ["http://日本.jp/"]),
        ("http://example.みんな/x", ["http://example.みんな/x"]),
        ("http://пример.рф/путь", ["http://пример.рф/путь"]),
        ("http://example.xn--vermgensberater-ctb/x", ["http://example.xn--vermgensberater-ctb/x"]),
        ("http://example.com.invalid/", ["http://example.com"]),
        (f"https://t.co/{'a' * 40}", [f"https://t.co/{'a' * 40}"]),
        (f"https://t.co/{'a' * 41}", []),
        ("http://t.co/abc/def", ["http://t.co/abc"]),
        (f"http://{'a' * 63}.com http://{'a' * 64}.com", [f"http://{'a' * 63}.com"]),
        (f"http://{'あ' * 60}.com", []),  # 63 bytes of punycode hold no more than some 50 kana
        (f"http://example.com/{'a' * 4096}", []),
        ("\ufeffexample.com", []),
        ("http://\ud83d.com http://example.com/\ud83d", ["http://example.com/"]),
        ("", []),
    ],
)
def test_where_urls_begin_and_end(words, found):
    assert [each.url for each in urls_in_text(words)] == found


def test_a_bare_domain_is_asked_for_over_http():
    assert [each.with_scheme for each in urls_in_text("t.co/abc Https://a.com")] == ["http://t.co/abc", "Https://a.com"]
    assert Found("example.com", 0, 11).is_bare


HOSTILE = [
    "http://a.a.",
    "http://",
    "(",
    "a.com/(",
    "a.com/(x",
    "a.com/(a)",
    "中.com",
    "中。",
    "-a.com",
    "_.com",
    "a._",
    ".",
    "a.",
    "a.co_",
    "中.xn--",
    "日本-.com",
    "a.com:1",
    "http://t.co/a'",
    "@a.com",
    "_a.com中",
    "x",
    "a.com/!",
    "é.中国人",
]


@pytest.mark.parametrize("scrap", HOSTILE)
def test_the_steps_grow_with_the_text_and_not_with_its_square(scrap, monkeypatch):
    """Every step is a pattern match, and what they read in all is counted: at most so many times the text."""
    counted = _CountedPatterns(monkeypatch)
    for chars in (5_000, 20_000):
        counted.read = 0
        urls_in_text(scrap * (chars // len(scrap)))
        assert counted.read <= 30 * chars


@pytest.mark.parametrize("lead", ["", "http://a.com/?", "a.com/(a("])
@pytest.mark.parametrize("scrap", HOSTILE)
def test_no_pattern_backtracks(lead, scrap):
    """The engine's own steps cannot be counted. 100 kB take 0.15 s at most; a quadratic search would take minutes."""
    started = time.process_time()
    urls_in_text(lead + scrap * (100_000 // len(scrap)))
    assert time.process_time() - started < 5


class _CountedPatterns:
    """Puts a counter of the characters tried, one at least, in front of every pattern."""

    def __init__(self, monkeypatch):
        self.read = 0
        for module in (text, domains):
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    monkeypatch.setattr(module, name, _Counted(value, self))


class _Counted:
    def __init__(self, pattern, counter):
        self.pattern, self.counter = pattern, counter

    def match(self, *args):
        return self._count(self.pattern.match(*args))

    def finditer(self, *args):
        return map(self._count, self.pattern.finditer(*args))

    def _count(self, match):
        self.counter.read += 1 + (len(match[0]) if match else 0)
        return match
