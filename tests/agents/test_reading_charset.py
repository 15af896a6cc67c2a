"""Encodings: the conformance cases of html5lib, the order of evidence, and that nothing raises."""

import base64
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.reading.charset import decode, encoding_of, prescan
from agents.reading.labels import CODECS, encoding_named


def test_html5lib_cases_pass_all(shared: pathlib.Path) -> None:
    cases = json.loads((shared / "cases" / "html_encoding.json").read_text())
    wrong = [case for case in cases if encoding_of(base64.b64decode(case["data_b64"])) != case["encoding"].lower()]
    assert cases
    assert wrong == []


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        (b"\xef\xbb\xbf<meta charset=latin1>", "text/html; charset=koi8-r", "utf-8"),
        (b"\xff\xfea\x00", None, "utf-16le"),
        (b"\xfe\xff\x00a", None, "utf-16be"),
        (b"<meta charset=utf-8>", 'text/html; Charset="KOI8-R"', "koi8-r"),
        (b"<meta charset=utf-8>", "text/html; charset=nonsense", "utf-8"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, "windows-1252"),
        (b'<?xml version="1.0" encoding="windows-1251"?><html>', None, "windows-1251"),
        (b'<?xml encoding="koi8-r"?><meta charset=big5>', None, "big5"),
        ("<p>Grüße".encode(), None, "utf-8"),
        ("Привет, мир, как твои дела сегодня".encode("windows-1251"), None, "windows-1251"),
        (b"<p>plain", None, "windows-1252"),
        (b"", None, "windows-1252"),
    ],
)
def test_evidence_is_believed_in_the_standards_order(body: bytes, content_type: str | None, encoding: str) -> None:
    assert encoding_of(body, content_type) == encoding


def test_text_cut_inside_a_character_is_still_utf_8() -> None:
    assert encoding_of(b"x" * (64 * 1024 - 1) + "é".encode() + b"x") == "utf-8"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("ISO-8859-1", "windows-1252"),
        (" latin2\n", "iso-8859-2"),
        ("gb2312", "gbk"),
        ("hz-gb-2312", "replacement"),
        ("no", None),
    ],
)
def test_labels_mean_what_the_encoding_standard_says(label: str, name: str | None) -> None:
    assert encoding_named(label) == name


def test_encodings_without_a_codec_are_decoded_by_hand() -> None:
    assert decode(b"anything", "replacement") == "\ufffd"
    assert decode(b"", "replacement") == ""
    assert decode(b"a\x80\xff", "x-user-defined") == "a\uf780\uf7ff"


def test_a_byte_order_mark_is_not_text() -> None:
    assert decode(b"\xff\xfea\x00", "utf-16le") == "a"


@given(st.binary(max_size=300), st.sampled_from(sorted(CODECS)))
def test_decoding_never_raises_and_gives_utf_8(body: bytes, encoding: str) -> None:
    decode(body, encoding).encode()


@given(
    st.lists(
        st.sampled_from(
            [b"<meta", b" ", b"charset", b"=", b'"', b"'", b">", b"/", b"<!--", b"-->", b"<a", b"utf-8", b"<?"]
        )
    )
)
def test_prescan_reads_any_tag_soup(pieces: list[bytes]) -> None:
    assert prescan(b"".join(pieces)) in {None, "utf-8"}
