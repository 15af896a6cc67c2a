"""Read the shared pages and write what was read, one JSON object a line, for their `score.py`.

python tests/accuracy.py ../shared/web RESULTS.jsonl
"""

import gzip
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from agents.reading.page import Reading, read


def pages(web: pathlib.Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Each entry of the manifest with its body, unpacked."""
    for page in json.loads((web / "manifest.json").read_text()):
        yield page, gzip.decompress((web / page["file"]).read_bytes())


def content_type(page: dict[str, Any]) -> str:
    """What the server of the stored copy would say: most copies were converted when they were saved."""
    charset = "utf-8" if page["stored_utf8"] else page["declared_charset"]
    return f"text/html; charset={charset}" if charset else "text/html"


def row(page_id: str, reading: Reading) -> dict[str, Any]:
    """A reading in the words of the manifest."""
    said = reading.metadata
    return {
        "id": page_id,
        "title": said.title,
        "description": said.description,
        "image": said.image.url if said.image else None,
        "author": said.author,
        "date": said.published,
        "lang": said.language,
    }


def results(web: pathlib.Path) -> Iterator[dict[str, Any]]:
    """What is read from each page."""
    for page, body in pages(web):
        yield row(page["id"], read(body, url=page["url"], content_type=content_type(page)))


if __name__ == "__main__":
    found = "\n".join(json.dumps(result) for result in results(pathlib.Path(sys.argv[1])))
    pathlib.Path(sys.argv[2]).write_text(found + "\n")
