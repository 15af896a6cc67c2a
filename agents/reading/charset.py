"""Which encoding a page is in, and its text.

A byte order mark wins over the HTTP header, the header over what the page declares, that over a guess: the
order of the HTML Standard, 13.2.3 (https://html.spec.whatwg.org/#determining-the-character-encoding). Two
things differ on purpose: the prescan looks further than 1,024 bytes, because a browser that meets a later
`<meta charset>` starts over and ends with the same text; and the guess is made by statistics.
"""

import re
from typing import Final

import cchardet

from agents.reading.labels import CODECS, REPLACEMENT, USER_DEFINED, encoding_named

PRESCAN_BYTES_MAX: Final = 64 * 1024
GUESS_BYTES_MAX: Final = 64 * 1024
FALLBACK: Final = "windows-1252"

_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))

_TAG: Final = re.compile(
    rb"<(?:(?P<meta>meta)(?=[\t\n\f\r /])|(?P<tag>/?[a-z][^\t\n\f\r >]*+)|(?P<comment>!--)|[!/?])",
    re.IGNORECASE,
)
# One attribute of a tag, or the tag's end. Possessive: a hostile page must not make it backtrack.
_ATTRIBUTE: Final = re.compile(
    rb"""[\t\n\f\r /]*+
    (?: (?P<end>>)
      | (?P<name>[^\t\n\f\r />][^\t\n\f\r />=]*+)
        (?: [\t\n\f\r ]*+ (?P<equals>=) [\t\n\f\r ]*+
            (?: "(?P<double>[^"]*+)" | '(?P<single>[^']*+)'
              | (?P<bare>[^\t\n\f\r >"'][^\t\n\f\r >]*+) | (?=>) )
        )?+
    )""",
    re.VERBOSE,
)
_UNFINISHED: Final = re.compile(rb"[\t\n\f\r ]*+(?:=|\Z)")
_CONTENT_CHARSET: Final = re.compile(
    r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^"'\t\n\f\r ;][^\t\n\f\r ;]*)|)""",
    re.IGNORECASE,
)
_XML_ENCODING: Final = re.compile(rb"""<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(["'])([^"'>\x00-\x20]+)\1""")
_HEADER_CHARSET: Final = re.compile(r""";[\t ]*charset[\t ]*=[\t ]*["']?([^"';,\s]+)""", re.IGNORECASE)


def encoding_of(body: bytes, content_type: str | None = None) -> str:
    """Determine the encoding of a page: its WHATWG name in lower case. Never raises."""
    return _marked(body) or _in_header(content_type) or prescan(body[:PRESCAN_BYTES_MAX]) or _guessed(body)


def decode(body: bytes, encoding: str) -> str:
    """Decode bytes in a WHATWG encoding; what is not valid in it becomes U+FFFD. Never raises."""
    if encoding == REPLACEMENT:
        return "\ufffd" if body else ""
    if encoding == USER_DEFINED:
        # Bytes above 0x7F lie in the private use area: Encoding Standard, section 14.5.
        return body.decode("latin-1").translate(_USER_DEFINED)
    text = body.decode(CODECS[encoding], "replace")
    return text.removeprefix("\ufeff")


_USER_DEFINED: Final = {byte: 0xF780 + byte - 0x80 for byte in range(0x80, 0x100)}


def _marked(body: bytes) -> str | None:
    return next((name for mark, name in _MARKS if body.startswith(mark)), None)


def _in_header(content_type: str | None) -> str | None:
    found = _HEADER_CHARSET.search(content_type) if content_type else None
    return encoding_named(found[1]) if found else None


def _guessed(body: bytes) -> str:
    sample = body[:GUESS_BYTES_MAX]
    if sample.isascii():
        return FALLBACK
    try:
        sample.decode("utf-8")  # recognised without statistics
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":  # the sample may be cut inside a character
            return encoding_named(cchardet.detect(sample)["encoding"] or "") or FALLBACK
    return "utf-8"


def prescan(head: bytes) -> str | None:
    """Find the encoding a page declares for itself: in a `<meta>`, or in its XML declaration."""
    if head.startswith(b"<\x00?\x00x\x00"):
        return "utf-16le"
    if head.startswith(b"\x00<\x00?\x00x"):
        return "utf-16be"
    lowered = head.lower()
    if b"charset" in lowered:
        declared = _in_tags(head)
        if declared:
            return declared
    return _in_xml_declaration(head) if lowered.startswith(b"<?xml") else None


def _in_tags(head: bytes) -> str | None:
    at = 0
    while tag := _TAG.search(head, at):
        if tag["meta"] or tag["tag"]:
            attributes, at = _attributes(head, tag.end())
            if tag["meta"] and (declared := _in_meta(attributes)):
                return declared
        elif tag["comment"]:
            at = head.find(b"-->", tag.start() + 2) + 1  # `<!-->` is a whole comment
        else:
            at = head.find(b">", tag.end()) + 1
        if at == 0:  # the data ended inside a tag: nothing after it can be trusted
            return None
    return None


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """Read attributes up to the end of a tag, and the position after it: 0 when it has no end."""
    attributes: dict[bytes, bytes] = {}
    while found := _ATTRIBUTE.match(head, at):
        at = found.end()
        if found["end"]:
            return attributes, at
        if not found["equals"] and _UNFINISHED.match(head, at):
            break
        attributes.setdefault(found["name"].lower(), found["double"] or found["single"] or found["bare"] or b"")
    return {}, 0


def _in_meta(attributes: dict[bytes, bytes]) -> str | None:
    label: str | None = None
    if b"charset" in attributes:
        label = attributes[b"charset"].decode("latin-1")
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        found = _CONTENT_CHARSET.search(attributes.get(b"content", b"").decode("latin-1"))
        label = (found[1] or found[2] or found[3]) if found else None
    return _readable(encoding_named(label)) if label else None


def _in_xml_declaration(head: bytes) -> str | None:
    found = _XML_ENCODING.match(head)
    return _readable(encoding_named(found[2].decode("latin-1"))) if found else None


def _readable(name: str | None) -> str | None:
    """Correct what cannot be true: had the page been UTF-16, its tag would not have been read."""
    if name in ("utf-16be", "utf-16le"):
        return "utf-8"
    return FALLBACK if name == USER_DEFINED else name
