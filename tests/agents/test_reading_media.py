"""What a body is, and images by their header alone."""

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from agents.reading.images import read_image
from agents.reading.media import KINDS, kind_of, media_type_of
from topology.records import Image


@pytest.mark.parametrize(
    ("content_type", "body", "media_type", "kind"),
    [
        ("text/html; charset=utf-8", b"", "text/html", "html"),
        ("TEXT/HTML", b"%PDF-", "text/html", "html"),
        ("application/xhtml+xml", b"", "application/xhtml+xml", "html"),
        ("text/plain", b"<!doctype html><p>", "text/plain", "text"),
        (None, b"\n <!DOCTYPE HTML><p>", "text/html", "html"),
        ("application/octet-stream", b"<p >", "text/html", "html"),
        ("", b'<?xml version="1.0"?><!DOCTYPE html><html>', "text/html", "html"),
        ("nonsense", b"\x89PNG\r\n\x1a\n", "image/png", "image"),
        (None, b"RIFF....WEBPVP8 ", "image/webp", "image"),
        (None, b"RIFF....WAVEfmt ", "audio/wave", "audio"),
        (None, b"\x00\x00\x00\x20ftypisom", "video/mp4", "video"),
        (None, b"\x00\x00\x00\x20ftypavif", "image/avif", "image"),
        (None, b"<?xml version='1.0'?><svg/>", "image/svg+xml", "image"),
        (None, b"%PDF-1.7", "application/pdf", "pdf"),
        (None, b"just words", "text/plain", "text"),
        (None, b"\x00\x01\x02", "application/octet-stream", "other"),
        (None, b"<paragraph>", "text/plain", "text"),
        ("application/ld+json", b"{}", "application/ld+json", "json"),
        ("application/pdf", b"", "application/pdf", "pdf"),
        ("application/zip", b"", "application/zip", "other"),
    ],
)
def test_a_declared_type_is_believed_and_an_empty_one_sniffed(
    content_type: str | None, body: bytes, media_type: str, kind: str
) -> None:
    assert media_type_of(content_type, body) == media_type
    assert kind_of(media_type) == kind


@given(st.none() | st.text(), st.binary())
def test_every_body_is_of_some_kind(content_type: str | None, body: bytes) -> None:
    assert kind_of(media_type_of(content_type, body)) in KINDS


def drawn(image_format: str, width: int = 30, height: int = 20, **options: object) -> bytes:
    file = io.BytesIO()
    Pillow.new("RGB", (width, height)).save(file, image_format, **options)
    return file.getvalue()


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_size_and_type_come_from_the_header(image_format: str) -> None:
    assert read_image(drawn(image_format), url="u") == Image("u", 30, 20, Pillow.MIME[image_format])


def test_a_truncated_image_keeps_its_size() -> None:
    body = drawn("JPEG", 300, 200)
    assert read_image(body[: len(body) // 2]) == Image("", 300, 200, "image/jpeg")


def test_a_photograph_on_its_side_is_measured_as_it_is_shown() -> None:
    exif = Pillow.Exif()
    exif[0x0112] = 6
    assert read_image(drawn("JPEG", exif=exif)) == Image("", 20, 30, "image/jpeg")


def png_header(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    crc = struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head + crc + struct.pack(">I", 9) + b"IDAT" + b"x" * 9
    )


def test_a_decompression_bomb_is_a_value_and_costs_nothing() -> None:
    assert read_image(png_header(12_000, 12_000)) == Image("", 12_000, 12_000, "image/png")
    assert read_image(png_header(60_000, 60_000), content_type="image/png") == Image("", media_type="image/png")


@pytest.mark.parametrize(
    ("markup", "size"),
    [
        (b'<svg width="10" height="20">', (10, 20)),
        (b'<?xml version="1.0"?><svg viewBox="0 0 30 40"/>', (30, 40)),
        (b'<svg width="10mm" viewBox="0,0,10,20">', (38, 76)),
        (b'<svg width="100%" height="100%" viewBox="0 0 8 9">', (8, 9)),
        (b"<svg>", (None, None)),
        (b'<svg width="-1" height="1e9">', (None, None)),
        (b'<svg viewBox="0 0 0 0">', (None, None)),
    ],
)
def test_svg_declares_its_size(markup: bytes, size: tuple[int | None, int | None]) -> None:
    assert read_image(markup, content_type="image/svg+xml") == Image("", *size, "image/svg+xml")


@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"GIF89a", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"BM", b"II*\x00", b"<svg "]),
)
def test_a_broken_image_is_a_value(body: bytes, magic: bytes) -> None:
    image = read_image(magic + body)
    assert (image.width is None) == (image.height is None)
