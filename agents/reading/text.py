"""What makes a string from a page fit to be kept: short, one line, printable, not a placeholder.

Everything a page says passes through `line` or `web_url`; nothing else may enter the metadata. So the two
promises of this package stand here: text can be encoded as UTF-8, and its length has a limit.
"""

import html
from typing import Final

from topology.urls import join

TITLE_CHARS_MAX: Final = 500
DESCRIPTION_CHARS_MAX: Final = 2000
NAME_CHARS_MAX: Final = 200
URL_CHARS_MAX: Final = 2048

# Raw values are cut to this before anything looks at them: a megabyte of title costs no more than this.
RAW_CHARS_MAX: Final = 16 * 1024

# What templates and scripts leave behind when the value they wanted was not there.
_PLACEHOLDERS: Final = frozenset(
    (
        *(
            "undefined",
            "null",
            "none",
            "nil",
            "nan",
            "n/a",
            "false",
            "true",
            "unknown",
            "untitled",
            "-",
            "--",
            ".",
            "(null)",
        ),
        *("[object object]", "no title", "no description", "untitled document"),
    )
)
_TEMPLATES: Final = (("{{", "}}"), ("<%", "%>"), ("${", "}"))
_UNWANTED: Final = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0x200B, 0xFEFF))


def line(value: str | None, chars_max: int) -> str | None:
    """One line of text: entities decoded, white space collapsed, cut at a word; None when nothing is said."""
    if not value:
        return None
    text = value[:RAW_CHARS_MAX]
    if "&" in text:
        text = html.unescape(text)  # values are often escaped twice: once by the template, once by the editor
    text = " ".join(text.split())
    if not text.isprintable():
        # Controls mean nothing here, and surrogates cannot be encoded as UTF-8.
        text = " ".join(text.translate(_UNWANTED).split())
    if not text or is_placeholder(text):
        return None
    return text if len(text) <= chars_max else shortened(text, chars_max)


def is_placeholder(text: str) -> bool:
    """Whether a value is what a template left behind: `undefined`, `{{ page.title }}`."""
    return text.lower() in _PLACEHOLDERS or any(opens in text and closes in text for opens, closes in _TEMPLATES)


def shortened(text: str, chars_max: int) -> str:
    """Cut at the last space in the final fifth, or where it must; an ellipsis says so."""
    cut = text[: chars_max - 1]
    space = cut.rfind(" ", chars_max * 4 // 5)
    return (cut[:space] if space > 0 else cut).rstrip() + "…"


def web_url(value: str | None, base: str) -> str | None:
    """An absolute http(s) URL (WHATWG URL Standard), resolved against `base`; None for anything else."""
    if not value or len(value) > URL_CHARS_MAX * 2:
        return None
    value = value.strip()
    if not value or is_placeholder(value):
        return None
    url = join(base, value)
    return url if url and url.startswith(("http://", "https://")) and len(url) <= URL_CHARS_MAX else None
