"""Cut a page where it would make the parser work for more than its length.

Two shapes cost lexbor time that grows with the square of the page: block elements nested thousands deep (each
looks up the stack for an open `p`), and thousands of attributes on one tag (each is compared with all before
it). 100,000 nested `div` took it 29 s, three tags with 100,000 attributes 37 s; browsers stop nesting at 512.
Ordinary pages pay two counts and a few searches: the exact look is taken only when those are suspicious.
"""

import re
from typing import Final

DEPTH_MAX: Final = 1_000
ATTRIBUTES_MAX: Final = 2_000
TAG_BYTES_MAX: Final = 32 * 1024
UNCLOSED_SUSPICIOUS: Final = 5_000
TAGS_SUSPICIOUS: Final = 40_000

_TAG: Final = re.compile(rb"<(/?)([a-zA-Z][^\s/>]{0,40})")
_QUOTED: Final = re.compile(rb"\"[^\"]*\"|'[^']*'")
# Without an end tag: void elements, and the shapes of SVG, which end in `/>`.
_VOID: Final = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"path circle ellipse line polygon polyline rect use stop image".split()
)
_CLOSED_BY_ITSELF: Final = frozenset(b"p li td th tr dd dt option optgroup tbody thead tfoot rp rt".split())
_RAW: Final = frozenset((b"script", b"style"))
_RAW_TEXT: Final = re.compile(rb"<(?:script|style)\b[^>]*>\s*\Z", re.IGNORECASE)


def tamed(markup: bytes) -> bytes:
    """The markup up to where it turns hostile: all of it, for all but hostile pages."""
    markup = _without_huge_tag(markup)
    tags = markup.count(b"<")
    if tags < UNCLOSED_SUSPICIOUS:
        return markup
    if tags - 2 * markup.count(b"</") < UNCLOSED_SUSPICIOUS and tags < TAGS_SUSPICIOUS:
        return markup
    return _without_deep_nesting(markup)


def _without_huge_tag(markup: bytes) -> bytes:
    """Cut before the first tag with too many attributes. A tag that long leaves a long stretch without `>`."""
    at = 0
    while at + TAG_BYTES_MAX < len(markup):
        last = markup.rfind(b">", at, at + TAG_BYTES_MAX)
        if last >= 0:
            at = last + 1
            continue
        end = markup.find(b">", at + TAG_BYTES_MAX)
        end = end if end >= 0 else len(markup)
        tag = _TAG.search(markup, at, end)
        if tag and not _RAW_TEXT.search(markup[max(0, at - 500) : at]):
            attributes = _QUOTED.sub(b"", markup[tag.start() : end]).split()
            if len(attributes) > ATTRIBUTES_MAX:
                return markup[: tag.start()]
        at = end + 1
    return markup


def _without_deep_nesting(markup: bytes) -> bytes:
    """Cut before the first element nested too deep, by a stack of the open ones."""
    stack: list[bytes] = []
    at = 0
    while tag := _TAG.search(markup, at):
        at = tag.end()
        name = tag[2].lower()
        if tag[1]:
            if name in stack[-DEPTH_MAX:]:
                while stack.pop() != name:
                    pass
        elif name in _RAW:
            at = markup.find(b"</" + tag[2], at)  # what looks like tags in a script is text
            if at < 0:
                break
        elif name not in _VOID:
            if stack and name in _CLOSED_BY_ITSELF and stack[-1] == name:
                stack.pop()
            stack.append(name)
            if len(stack) > DEPTH_MAX:
                return markup[: tag.start()]
    return markup
