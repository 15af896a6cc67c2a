"""Scrapy on the same URLs: one process, 100 at a time, 8 per domain, robots.txt obeyed, the same fields.

    python -m tests.bench.scrapy_peer URLS.txt OUT.jsonl

Everything not named in `SETTINGS` is Scrapy's default: two retries, redirects, cookies, compression, its
selectors.
"""

import argparse
import pathlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.resolver import CachingThreadedResolver
from twisted.internet.defer import Deferred, succeed

FIELDS = {
    "title": "og:title",
    "description": "og:description",
    "image": "og:image",
    "site_name": "og:site_name",
}


class Loopback(CachingThreadedResolver):
    """Every name is this machine; no thread is asked, so the resolver costs Scrapy nothing."""

    def getHostByName(  # noqa: N802 - Twisted's name
        self,
        name: str,  # noqa: ARG002 - the interface's
        timeout: Sequence[int] = (),  # noqa: ARG002 - the interface's
    ) -> "Deferred[str]":
        """Answer 127.0.0.1 whatever is asked."""
        return succeed("127.0.0.1")


SETTINGS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 100,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "ROBOTSTXT_OBEY": True,
    "AUTOTHROTTLE_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "TWISTED_DNS_RESOLVER": f"{__name__}.Loopback",
}


class Cards(scrapy.Spider):
    """Reads the card of each page on a list."""

    name = "cards"

    def __init__(self, listed: list[str], **kwargs: Any) -> None:
        """Visit `listed`."""
        super().__init__(**kwargs)
        self.listed = listed

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Ask for every URL; a URL asked twice is dropped by the default filter."""
        for url in self.listed:
            yield scrapy.Request(url, meta={"asked": url})

    def parse(self, response: Response, **_: Any) -> dict[str, Any]:
        """Read title, description, image, site name, canonical address and language."""
        found = {field: response.xpath(f'//meta[@property="{name}"]/@content').get() for field, name in FIELDS.items()}
        return {
            "url": response.meta["asked"],
            "final": response.url,
            "status": response.status,
            "bytes": len(response.body),
            **found,
            "title": found["title"] or response.xpath("//title/text()").get(),
            "description": found["description"] or response.xpath('//meta[@name="description"]/@content').get(),
            "canonical": response.xpath('//link[@rel="canonical"]/@href').get(),
            "lang": response.xpath("/html/@lang").get(),
        }


def main() -> None:
    """Read the arguments and crawl."""
    parser = argparse.ArgumentParser(description="Scrapy beside us.")
    parser.add_argument("urls", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    feeds = {str(arguments.out): {"format": "jsonlines", "overwrite": True}}
    process = CrawlerProcess(SETTINGS | {"FEEDS": feeds})
    process.crawl(Cards, listed=arguments.urls.read_text().split())
    process.start()


if __name__ == "__main__":
    main()
