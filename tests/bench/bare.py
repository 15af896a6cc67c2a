"""The bare loop: aiohttp and selectolax, 100 at a time, no promises.

    python -m tests.bench.bare URLS.txt OUT.jsonl

No robots.txt, no pacing, no retries, no state, no store: what the two libraries do when nothing else is asked
of them. It bounds from above what a service built on them can reach in one process.
"""

import argparse
import asyncio
import json
import pathlib
import socket
from collections.abc import Iterator
from typing import Any, TextIO

import aiohttp
import uvloop
from aiohttp.abc import AbstractResolver, ResolveResult
from selectolax.lexbor import LexborHTMLParser

CONCURRENT = 100
TIMEOUT_S = 30.0
FIELDS = {
    "title": ('meta[property="og:title"]', 'meta[name="twitter:title"]'),
    "description": ('meta[property="og:description"]', 'meta[name="description"]'),
    "image": ('meta[property="og:image"]', 'meta[name="twitter:image"]'),
    "site_name": ('meta[property="og:site_name"]',),
}


class Loopback(AbstractResolver):
    """Every name is this machine: the synthetic web answers for all of them."""

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the interface's
    ) -> list[ResolveResult]:
        """Answer 127.0.0.1 whatever is asked."""
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is held."""


def extract(body: bytes) -> dict[str, str | None]:
    """Read title, description, image, site name, canonical address and language."""
    tree = LexborHTMLParser(body)
    found: dict[str, str | None] = {}
    for field, selectors in FIELDS.items():
        nodes = (tree.css_first(selector) for selector in selectors)
        found[field] = next((node.attributes.get("content") for node in nodes if node), None)
    if not found["title"] and (title := tree.css_first("title")):
        found["title"] = title.text(strip=True)
    canonical = tree.css_first('link[rel="canonical"]')
    found["canonical"] = canonical.attributes.get("href") if canonical else None
    found["lang"] = tree.root.attributes.get("lang") if tree.root else None
    return found


async def visit(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    """Fetch one URL, redirects followed, and read it."""
    try:
        async with session.get(url) as response:
            body = await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        return {"url": url, "status": 0, "error": repr(error)}
    record = {"url": url, "final": str(response.url), "status": response.status, "bytes": len(body)}
    return record | extract(body) if response.status == 200 else record


async def take(pending: Iterator[str], session: aiohttp.ClientSession, out: TextIO) -> None:
    """Take URLs until there are none left."""
    for url in pending:
        line = json.dumps(await visit(session, url)) + "\n"
        out.write(line)


async def crawl(listed: list[str], out: TextIO) -> None:
    """Visit every URL, `CONCURRENT` at a time."""
    connector = aiohttp.TCPConnector(limit=CONCURRENT, resolver=Loopback())
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    pending = iter(listed)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await asyncio.gather(*(take(pending, session, out) for _ in range(CONCURRENT)))


def main() -> None:
    """Read the arguments and crawl."""
    parser = argparse.ArgumentParser(description="aiohttp and selectolax in a bare loop.")
    parser.add_argument("urls", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    with arguments.out.open("w") as out:
        uvloop.run(crawl(arguments.urls.read_text().split(), out))


if __name__ == "__main__":
    main()
