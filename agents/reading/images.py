"""Type and dimensions of an image, from its header: no pixel is ever decoded.

Pillow opens a file by reading its header, so a decompression bomb costs nothing as long as nobody asks for the
pixels; the formats are a closed list, because some plug-ins do more than read. SVG declares its size in markup.
"""

import io
import re
import warnings
from typing import Final

from agents.reading.tags import parse
from topology.records import Image

IMAGE_BYTES_MAX: Final = 8 * 1024 * 1024
SVG_BYTES_MAX: Final = 64 * 1024
SIDE_PIXELS_MAX: Final = 100_000

_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "AVIF", "BMP", "ICO", "TIFF", "JPEG2000")
_ORIENTATION: Final = 0x0112
_ON_ITS_SIDE: Final = frozenset((5, 6, 7, 8))  # EXIF orientations that swap width and height

_LENGTH: Final = re.compile(r"\s*(\d{1,7}(?:\.\d{1,6})?)\s*(px|pt|pc|in|cm|mm|q)?\s*", re.IGNORECASE)
_PIXELS_PER: Final = {
    "px": 1.0,
    "pt": 96 / 72,
    "pc": 16.0,
    "in": 96.0,
    "cm": 96 / 2.54,
    "mm": 96 / 25.4,
    "q": 96 / 101.6,
}


def read_image(body: bytes, *, content_type: str | None = None, url: str = "") -> Image:
    """Width, height and type of an image, as a reader sees it. What cannot be read is None; never raises."""
    declared = (content_type or "").split(";")[0].strip().lower()
    if declared == "image/svg+xml" or body[:256].lstrip().startswith((b"<svg", b"<?xml")):
        return _svg(body, url)
    size, media_type = _raster(body[:IMAGE_BYTES_MAX])
    if size is None:
        return Image(url, media_type=declared if declared.startswith("image/") else None)
    return Image(url, *size, media_type)


def _raster(body: bytes) -> tuple[tuple[int, int] | None, str | None]:
    from PIL import Image as Pillow  # noqa: PLC0415  # a worker that meets no image does not pay for it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # large and odd files are what is expected here
        try:
            with Pillow.open(io.BytesIO(body), formats=_FORMATS) as picture:
                width, height = picture.size
                on_its_side = "exif" in picture.info and picture.getexif().get(_ORIENTATION) in _ON_ITS_SIDE
                media_type = Pillow.MIME.get(picture.format or "")
        except Exception:  # noqa: BLE001  # Pillow raises many kinds on broken files: all mean the same here
            return None, None
    return _bounded(*((height, width) if on_its_side else (width, height))), media_type


def _bounded(width: float, height: float) -> tuple[int, int] | None:
    sides = round(width), round(height)
    return sides if all(0 < side <= SIDE_PIXELS_MAX for side in sides) else None


def _svg(body: bytes, url: str) -> Image:
    """The size of an SVG: width and height, or the box it is drawn in (SVG 2, section 8.2)."""
    node = parse(body[:SVG_BYTES_MAX]).css_first("svg")
    attributes = node.attributes if node is not None else {}
    width, height = _pixels(attributes.get("width")), _pixels(attributes.get("height"))
    box = re.split(r"[\s,]+", (attributes.get("viewBox") or attributes.get("viewbox") or "").strip())
    if len(box) == 4 and not (width and height):  # noqa: PLR2004  # min-x, min-y, width, height
        wide, high = _pixels(box[2]), _pixels(box[3])
        if wide and high:
            width, height = width or (height or high) * wide / high, height or (width or wide) * high / wide
    size = _bounded(width, height) if width and height else None
    wide_px, high_px = size or (None, None)
    return Image(url, wide_px, high_px, "image/svg+xml")


def _pixels(length: str | None) -> float | None:
    found = _LENGTH.fullmatch(length or "")
    return float(found[1]) * _PIXELS_PER[(found[2] or "px").lower()] if found else None
