"""Site rules: they win on their own domains, and mistakes in them are named."""

import pickle

import pytest

from agents.reading.page import read
from agents.reading.rules import RuleError, SiteRules
from topology.records import Image

PAGE = (
    b'<meta property="og:title" content="Declared"><h1>Shown <b>here</b></h1><img src="/a.png"><b id=price>12 EUR</b>'
)
RULES = SiteRules(
    {
        "example.com": {
            "title": {"css": "h1"},
            "image": {"css": "img::attr(src)"},
            "price": {"xpath": "//b[@id='price']/text()"},
            "links": {"xpath": "count(//a)"},
            "missing": {"css": ".none"},
        }
    }
)


def test_a_rule_wins_over_what_the_page_declares() -> None:
    found = read(PAGE, url="https://www.example.com/x", content_type="text/html", rules=RULES).metadata
    assert found.title == "Shown here"
    assert found.image == Image("https://www.example.com/a.png")
    assert found.provenance["title"] == "rule"
    assert found.extra == {"price": "12 EUR", "links": "0.0"}


@pytest.mark.parametrize("host", ["other.org", "notexample.com", "com"])
def test_a_rule_is_only_for_its_domain(host: str) -> None:
    found = read(PAGE, url=f"https://{host}/x", content_type="text/html", rules=RULES).metadata
    assert (found.title, found.extra) == ("Declared", {})


def test_the_nearest_domain_wins() -> None:
    rules = SiteRules({"example.com": {"title": {"css": "h1"}}, "blog.example.com": {"title": {"css": "b"}}})
    assert rules.for_host("a.blog.example.com") == rules.for_host("blog.example.com") != rules.for_host("example.com")


def test_rules_travel_to_the_pool() -> None:
    assert pickle.loads(pickle.dumps(RULES)).for_host("example.com") == RULES.for_host("example.com")  # noqa: S301  # our own bytes


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ({"css": "h1["}, "'h1['"),
        ({"xpath": "//b["}, "'//b['"),
        ({"xpath": "nosuch(//b)"}, "nosuch"),
        ({"css": "a", "xpath": "//a"}, "expected"),
        ({"regex": "a"}, "expected"),
        ("h1", "expected"),
    ],
)
def test_a_mistake_is_named_with_its_domain_and_field(rule: object, named: str) -> None:
    with pytest.raises(RuleError) as raised:
        SiteRules({"example.com": {"title": rule}})
    assert "example.com" in str(raised.value)
    assert "title" in str(raised.value)
    assert named in str(raised.value)


def test_rules_of_a_domain_must_be_a_mapping() -> None:
    with pytest.raises(RuleError, match=r"example\.com"):
        SiteRules({"example.com": ["h1"]})
