"""Site rules: what the configuration says of the pages of single domains, as CSS or XPath.

    {"example.com": {"title": {"css": "h1.headline::text"}, "price": {"xpath": "//b[@id='price']/text()"}}}

A rule of a metadata field wins over everything the page declares; a rule of any other name goes to `extra`. The
selectors are parsel's (`::text` and `::attr(name)` in CSS). They are translated and tried once, when the
configuration is read, and only pages of the domains named in it pay for a second parse.
"""

from collections.abc import Mapping
from typing import Any, Final

from agents.reading.text import DESCRIPTION_CHARS_MAX, line

FIELD_CHARS_MAX: Final = 100
MATCHES_MAX: Final = 100


class RuleError(ValueError):
    """A rule that cannot work: the message names its domain, its field and its selector."""


class SiteRules:
    """Checked rules by domain. Construct with the mapping of the configuration; raises `RuleError`."""

    __slots__ = ("_paths",)

    def __init__(self, configured: Mapping[str, Any]) -> None:
        """Check every rule, so that a mistake is found when the configuration is read."""
        self._paths = {domain.lower().rstrip("."): _checked(domain, rules) for domain, rules in configured.items()}

    def for_host(self, host: str) -> dict[str, str]:
        """Field -> XPath for a host: the rules of its own name, or of the nearest domain above it."""
        while host:
            if host in self._paths:
                return self._paths[host]
            host = host.partition(".")[2]
        return {}


def apply(paths: dict[str, str], markup: str) -> dict[str, str]:
    """The fields that rules find in a page: the first match of each that says something, as one line."""
    from parsel import Selector  # noqa: PLC0415  # lxml is a cost only of workers that have rules

    document = Selector(text=markup)
    found = {field: _first(document, path) for field, path in paths.items()}
    return {field: text for field, text in found.items() if text}


def _first(document: Any, path: str) -> str | None:
    for match in document.xpath(path)[:MATCHES_MAX]:
        text = match.get() if isinstance(match.root, str | float | bool) else match.xpath("string()").get()
        if said := line(str(text), DESCRIPTION_CHARS_MAX):
            return said
    return None


def _checked(domain: str, rules: Any) -> dict[str, str]:
    if not isinstance(rules, Mapping):
        raise RuleError(f"site rules of {domain}: expected a mapping of fields to selectors, not {rules!r}")
    return {field: _xpath(domain, field, rule) for field, rule in rules.items()}


def _xpath(domain: str, field: Any, rule: Any) -> str:
    """Translate one rule to XPath and try it on an empty page."""
    from parsel import Selector, css2xpath  # noqa: PLC0415  # as in `apply`

    where = f"site rule {field!r} of {domain}"
    if not isinstance(field, str) or not 0 < len(field) <= FIELD_CHARS_MAX:
        raise RuleError(f"{where}: a field is a name of 1 to {FIELD_CHARS_MAX} characters")
    if not isinstance(rule, Mapping) or len(rule) != 1 or not set(rule) <= {"css", "xpath"}:
        raise RuleError(f"{where}: expected {{'css': selector}} or {{'xpath': selector}}, not {rule!r}")
    ((kind, selector),) = rule.items()
    try:
        path = css2xpath(selector) if kind == "css" else str(selector)
        _first(Selector(text="<html></html>"), path)
    except Exception as error:
        raise RuleError(f"{where}: {selector!r} is not a {kind} selector: {error}") from error
    return path
