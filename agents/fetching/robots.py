"""What a robots.txt says to one agent (RFC 9309). Pure: bytes in, `Rules` out.

Theory. A file is groups: some `User-agent` lines, then rules. Only the groups that name our product token count,
all of them merged; when none does, the groups for `*` (2.2.1). Of the rules that match a path the longest wins,
and `Allow` wins a tie (2.2.2). Lines of any other kind do not exist (2.2.4), so they neither end a list of agents
nor break a group.

Hostile files stay cheap: the groups of other agents are jumped over by one regular expression, and rules are kept
by the text they begin with, so a path asks once per distinct length, not once per rule (`robots_rules`).
"""

import re
from collections.abc import Iterator
from typing import Final

from agents.fetching.robots_rules import Rules, normal_pattern, rules_of

PARSED_BYTES_MAX: Final = 512 * 1024
"""RFC 9309 2.5 asks for at least 500 KiB; what stands after is not read."""
LINE_BYTES_MAX: Final = 16_663
"""Eight times the longest URL browsers took (2,083), as in Google's parser; the rest of a line is cut."""

_UTF8_BOM: Final = re.compile(rb"\xef(?:\xbb\xbf?)?")  # some editors have written half of it
_UTF16_BOMS: Final = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

_AGENT_NAMES: Final = rb"user-agent|useragent|user agent"
_RULE_NAMES: Final = rb"allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw|crawl-delay|crawl delay"
_VALUE: Final = rb"([^#\n]*)"
# A colon ends the name, or, forgiving as Google's parser and protego are, a space. A record we do not know counts
# when its value is a path: then it is a rule of some kind.
_LINE: Final = re.compile(
    rb"^[ \t\0]*(?:(" + _AGENT_NAMES + rb"|" + _RULE_NAMES + rb")[ \t]*[: \t]|([a-z_-]+)[ \t]*:(?=[ \t]*/))" + _VALUE,
    re.IGNORECASE | re.MULTILINE,
)
_AGENT_LINE: Final = re.compile(
    rb"^[ \t\0]*(" + _AGENT_NAMES + rb")()[ \t]*[: \t]" + _VALUE, re.IGNORECASE | re.MULTILINE
)
_USER_AGENT, _DISALLOW, _ALLOW, _CRAWL_DELAY, _OTHER_RULE = b"u", b"d", b"a", b"c", b""

_TOKEN: Final = re.compile(r"(?:[^\W\d]|-)+")  # RFC 9309 2.2.1: letters, "_" and "-"
_WORD: Final = re.compile(r"[\w-]+")


def parse(body: bytes, agent: str) -> Rules:
    """Read the rules for `agent`, a product token such as `SpiderDuck` (RFC 9309 2.2.1). Takes any bytes.

    A group for `SpiderDuck` also holds for an agent `SpiderDuck-Images` that has no group of its own; of all the
    groups that hold, those with the longest name count.
    """
    groups = {name: _Group() for name in ("*", *_names(agent))}
    named: set[str] = set()
    reading: set[str] = set()  # rules before any User-agent line are for nobody (2.2)
    in_agents = False
    text, line = _text(body), None
    while line := (_LINE if reading else _AGENT_LINE).search(text, line.end() if line else 0):
        kind = (line.group(1) or b"")[:1].lower()
        value = _value(line)
        if kind == _USER_AGENT:
            reading = (reading if in_agents else set()) | (_named(value) & groups.keys())
            named |= reading
            in_agents = True
            continue
        in_agents = in_agents and kind == _CRAWL_DELAY
        for name in reading:
            groups[name].add(kind, value)
    return groups[max(named - {"*"}, key=len, default="*")].rules()


def _text(body: bytes) -> bytes:
    """The bytes to read: without a byte order mark, with one kind of line end, in an encoding that contains ASCII."""
    body = body[:PARSED_BYTES_MAX]
    for mark, encoding in _UTF16_BOMS:
        if body.startswith(mark):
            body = body[len(mark) :].decode(encoding, "replace").encode()
    mark_utf8 = _UTF8_BOM.match(body)
    return body[mark_utf8.end() if mark_utf8 else 0 :].replace(b"\r", b"\n")


def _value(line: re.Match[bytes]) -> bytes:
    """What a line says, without comment and spaces around it, and without what is too far from its beginning."""
    value = line.group(3)
    if len(value) > LINE_BYTES_MAX // 2:
        value = value[: LINE_BYTES_MAX - (line.start(3) - line.start())]
    return value.strip()


def _names(agent: str) -> Iterator[str]:
    """The names of groups that hold for an agent: its product tokens, and what stands before each hyphen."""
    for word in _WORD.findall(agent.lower().replace("*", "")):
        yield word
        yield from (word[: hyphen.start()] for hyphen in re.finditer("-", word))


def _named(value: bytes) -> set[str]:
    """The product token a User-agent line names, or `*`: versions and whatever follows a space do not count.

    A token has no digits (2.2.1), yet real ones have: `MJ12bot` names both what RFC 9309 reads and what it says.
    """
    text = value.decode("utf-8", "replace").lower()
    bare = text.replace("*", "")
    found = {token.group() for token in (_TOKEN.match(bare), _WORD.match(bare)) if token}
    return found or {text[:1]}


class _Group:
    """The rules for one name while the file is being read."""

    __slots__ = ("crawl_delay_s", "patterns")

    def __init__(self) -> None:
        self.patterns: dict[str, bool] = {}
        self.crawl_delay_s: float | None = None

    def add(self, kind: bytes, value: bytes) -> None:
        """Take one line. An empty Disallow forbids nothing (2.2.2); of two delays the longer holds."""
        if kind == _CRAWL_DELAY:
            delay_s = _seconds(value)
            if delay_s is not None:
                self.crawl_delay_s = max(delay_s, self.crawl_delay_s or 0.0)
        elif value and kind != _OTHER_RULE:
            pattern = _pattern(value)
            self.patterns[pattern] = self.patterns.get(pattern, False) or kind == _ALLOW

    def rules(self) -> Rules:
        """The group as a value."""
        return rules_of(self.patterns, self.crawl_delay_s)


def _seconds(value: bytes) -> float | None:
    """A Crawl-delay: a plain decimal number (`nan`, `inf` and `1e9` are not)."""
    return float(value) if re.fullmatch(rb"\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}", value) else None


def _pattern(value: bytes) -> str:
    """A rule's path, spelled as `matched_part` spells URLs, one character per byte."""
    text = value.decode("latin-1")
    if text.startswith(("http://", "https://")):
        text = f"/{text}"  # written by mistake: it matches what it says, a path with a URL in it
    return normal_pattern(text)
