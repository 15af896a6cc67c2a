"""The prescan against its specification, written out step by step.

The production code reads tags with one expression; here stands the algorithm as the HTML Standard words it
(https://html.spec.whatwg.org/#prescan-a-byte-stream-to-determine-its-encoding), slow and literal, and both must
agree on any soup of the pieces that matter.
"""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.reading.charset import prescan
from agents.reading.labels import encoding_named

SPACE = b"\t\n\x0c\r "


class OutOfDataError(Exception):
    """The algorithm read past the end: the prescan is aborted."""


class Literal:
    """The standard's algorithm, with its words as names."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise OutOfDataError
        return self.data[self.at]

    def skip_while(self, wanted: Callable[[int], bool]) -> None:
        while wanted(self.byte()):
            self.at += 1

    def attribute(self) -> tuple[bytes, bytes] | None:
        self.skip_while(lambda byte: byte in SPACE + b"/")
        if self.byte() == ord(">"):
            return None
        name = b""
        while True:
            byte = self.byte()
            if byte == ord("=") and name:
                self.at += 1
                return name.lower(), self.value()
            if byte in SPACE:
                break
            if byte in b"/>":
                return name.lower(), b""
            name += bytes([byte])
            self.at += 1
        self.skip_while(lambda byte: byte in SPACE)
        if self.byte() != ord("="):
            return name.lower(), b""
        self.at += 1
        return name.lower(), self.value()

    def value(self) -> bytes:
        self.skip_while(lambda byte: byte in SPACE)
        quote = self.byte()
        value = b""
        if quote in b"\"'":
            self.at += 1
            while self.byte() != quote:
                value += bytes([self.byte()])
                self.at += 1
            self.at += 1
            return value
        if quote == ord(">"):
            return b""
        while self.byte() not in SPACE + b">":
            value += bytes([self.byte()])
            self.at += 1
        return value

    def run(self) -> str | None:
        while self.at < len(self.data):
            rest = self.data[self.at :]
            if rest.startswith(b"<!--"):
                end = self.data.find(b"-->", self.at + 2)
                if end < 0:
                    return None
                self.at = end + 2
            elif rest[:5].lower() == b"<meta" and rest[5:6] and rest[5] in SPACE + b"/":
                self.at += 6
                if found := self.meta():
                    return found
            elif rest[:1] == b"<" and rest[1:].removeprefix(b"/")[:1].isalpha():
                self.skip_while(lambda byte: byte not in SPACE + b">")
                while self.attribute():
                    pass
            elif rest[:2] in {b"<!", b"</", b"<?"}:
                self.at = self.data.find(b">", self.at)
                if self.at < 0:
                    return None
            self.at += 1
        return None

    def meta(self) -> str | None:
        seen: set[bytes] = set()
        got_pragma = False
        need_pragma: bool | None = None
        charset: str | None = None
        failed = False
        while found := self.attribute():
            name, value = found
            if name in seen:
                continue
            seen.add(name)
            if name == b"http-equiv":
                got_pragma = value.lower() == b"content-type"
            elif name == b"content" and charset is None and not failed:
                if (label := from_content(value)) and (named := encoding_named(label.decode("latin-1"))):
                    charset, need_pragma = named, True
            elif name == b"charset":
                charset, need_pragma = encoding_named(value.decode("latin-1")), False
                failed = charset is None
        if need_pragma is None or (need_pragma and not got_pragma) or charset is None:
            return None
        return {"utf-16be": "utf-8", "utf-16le": "utf-8", "x-user-defined": "windows-1252"}.get(charset, charset)


def from_content(value: bytes) -> bytes | None:
    """The standard's algorithm for extracting a character encoding from a meta element."""
    at = 0
    while True:
        at = value.lower().find(b"charset", at)
        if at < 0:
            return None
        at += len(b"charset")
        rest = value[at:].lstrip(SPACE)
        if rest[:1] == b"=":
            break
    rest = rest[1:].lstrip(SPACE)
    if rest[:1] in (b'"', b"'"):
        end = rest.find(rest[:1], 1)
        return rest[1:end] if end > 0 else None
    for index, byte in enumerate(rest):
        if byte in SPACE + b";":
            return rest[:index]
    return rest or None


def literal_prescan(data: bytes) -> str | None:
    try:
        return Literal(data).run()
    except OutOfDataError:
        return None


PIECES = (
    *(b"<meta ", b"<META/", b"<meta", b"<p ", b"</p ", b"<a>", b"<", b"</", b"<!", b"<?", b"<!--", b"-->", b"--", b">"),
    *(
        b" ",
        b"\n",
        b"/",
        b"=",
        b'"',
        b"'",
        b";",
        b"x",
        b"charset",
        b"charset=",
        b" charset=utf-8",
        b"CHARSET = 'koi8-r'",
    ),
    *(b"content='charset=;charset=gbk'", b"content='charset charset=\"gbk charset=gbk'"),
    *(
        b"http-equiv=content-type",
        b"http-equiv",
        b'content="text/html; charset=big5"',
        b"content=charset=gbk",
        b"utf-16",
        b"bogus",
    ),
)


@settings(max_examples=600)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join))
def test_the_prescan_is_the_standards(data: bytes) -> None:
    assert prescan(data) == literal_prescan(data)
