"""`spiderduck get`, `content` and `tweet`: what the stores know, read beside a running worker or without one."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import click
import msgspec

from agents.archiving.reading import Archived, BadRecord, read_body
from agents.clients.content import NotStored
from agents.clients.errors import StoreUnavailable
from agents.clients.metadata import READ_URLS_MAX, MetadataStore, Record, with_content
from topology.commands.options import with_settings
from topology.errors import Refusal
from topology.public import PublicMetadata
from topology.records import Placed
from topology.settings import Settings
from topology.stores import open_content_store, open_metadata, spool
from topology.urls import Address, canonical, parse

UNKNOWN: Final = 1
_NAMES_PER_URL: Final = 3  # as given, as parsed, canonical
_BATCH: Final = READ_URLS_MAX // _NAMES_PER_URL
_SHARES: Final = "shares"
_RECORD_FIELDS: Final = ("outcome", "reason", "resolved", "fetched", "fetched_url", "http", "digest", "content")
_FIELDS: Final = (*_RECORD_FIELDS, "image_measured", *PublicMetadata.__struct_fields__, _SHARES)


@click.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@with_settings("data")
@click.option("--fields", metavar="A,B", help="only these fields, such as title,image,shares")
def get(settings: Settings, urls: tuple[str, ...], fields: str | None) -> None:
    """Print what is known of each URL as one line of JSON, through any name it was shared by.

    Exit status: 0, or 1 when one of them is unknown.
    """
    answers = asyncio.run(_get(settings, urls, _wanted(fields)))
    for answer in answers:
        click.echo(msgspec.json.encode(answer))
    if any("unknown" in answer for answer in answers):
        sys.exit(UNKNOWN)


@click.command()
@click.argument("url")
@with_settings("data")
@click.option("--headers", is_flag=True, help="print the status and the headers first, as the server sent them")
def content(settings: Settings, url: str, headers: bool) -> None:
    """Print the archived body of a URL, byte for byte.

    Exit status: 0, or 1 when there is none.
    """
    page = asyncio.run(_content(settings, url))
    if isinstance(page, str):
        click.echo(f"spiderduck: {page}", err=True)
        sys.exit(UNKNOWN)
    if headers:
        lines = [f"HTTP/1.1 {page.status}", *(f"{name}: {value}" for name, value in page.headers), "", ""]
        sys.stdout.buffer.write("\r\n".join(lines).encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.write(page.body)


@click.command()
@click.argument("tweet_id", metavar="ID")
@with_settings("data")
def tweet(settings: Settings, tweet_id: str) -> None:
    """Print what was answered to each URL of a tweet: its announcement, one line of JSON each.

    Exit status: 0, or 1 when nothing was.
    """
    answers = asyncio.run(_tweet(settings, tweet_id))
    for answer in answers:
        click.echo(msgspec.json.encode(answer))
    if not answers:
        click.echo(f"spiderduck: nothing was answered to tweet {tweet_id}: it has no URL, or was not read", err=True)
        sys.exit(UNKNOWN)


def spellings(url: str) -> list[str]:
    """Return the names a URL may be known by: as given, as parsed, canonical."""
    address = parse(url)
    href = address.href if isinstance(address, Address) else url
    return list(dict.fromkeys((url, href, canonical(href) or url)))


def shown(url: str, record: Record) -> dict[str, Any]:
    """Return a record as `get` prints it. `url` is what was asked; what was fetched is `fetched_url`."""
    fields = {("fetched_url" if name == "url" else name): value for name, value in record.fields.items()}
    return {"url": url, "canonical_url": record.canonical_url, **fields}


def _wanted(fields: str | None) -> tuple[str, ...] | None:
    if fields is None:
        return None
    wanted = tuple(name.strip() for name in fields.split(",") if name.strip())
    if strange := set(wanted) - set(_FIELDS):
        raise Refusal(f"--fields: there is no {min(strange)!r}; there are {', '.join(sorted(_FIELDS))}")
    return wanted


async def _get(settings: Settings, urls: Sequence[str], wanted: tuple[str, ...] | None) -> list[dict[str, Any]]:
    async with _metadata(settings) as metadata:
        found = await _find(metadata, urls)
        return [await _answer(metadata, url, found[url], wanted) for url in urls]


async def _find(metadata: MetadataStore, urls: Sequence[str]) -> dict[str, Record | None]:
    found: dict[str, Record | None] = {}
    for start in range(0, len(urls), _BATCH):
        names = {url: spellings(url) for url in urls[start : start + _BATCH]}
        records = await metadata.get_many(list(dict.fromkeys(name for some in names.values() for name in some)))
        for url, some in names.items():
            found[url] = next((with_content(record) for name in some if (record := records[name])), None)
    return found


async def _answer(
    metadata: MetadataStore, url: str, record: Record | None, wanted: tuple[str, ...] | None
) -> dict[str, Any]:
    if record is None:
        return {"url": url, "unknown": True}
    answer = shown(url, record)
    if wanted is None or _SHARES in wanted:
        counts = await metadata.shares(record.canonical_url)
        answer[_SHARES] = {"total": counts.total, "by_day": counts.by_day}
    kept = answer if wanted is None else {"url", "canonical_url", *wanted}
    return {name: value for name, value in answer.items() if name in kept}


async def _content(settings: Settings, url: str) -> Archived | str:
    """Return the archived page, or why there is none."""
    async with _metadata(settings) as metadata:
        record = (await _find(metadata, [url]))[url]
    if record is None:
        return f"{url} is unknown: share it in a tweet, and it is fetched"
    place = record.fields.get("content")
    if place is None:
        why = record.fields.get("reason") or f"it ended as {record.fields.get('outcome')}"
        return f"{url} is not archived: {why}"
    placed = Placed(place["segment"], place["offset"], place["length"])
    store = open_content_store(settings)
    try:
        return await read_body(store, placed, body_bytes_max=settings.body_bytes_max, spool=spool(settings))
    except (NotStored, BadRecord) as error:
        return f"{url} was archived, and cannot be read: {error}"
    finally:
        await store.close()


async def _tweet(settings: Settings, tweet_id: str) -> list[dict[str, Any]]:
    async with _metadata(settings) as metadata:
        answers = await metadata.by_tweet(tweet_id)
    return [{**answer.completed, "canonical_url": answer.canonical_url} for answer in answers]


@asynccontextmanager
async def _metadata(settings: Settings) -> AsyncIterator[MetadataStore]:
    """Open the metadata store to read; raise Refusal when nothing has been written, or it does not answer."""
    if settings.metadata_url == "sqlite:" and not (settings.data / "metadata.sqlite").exists():
        raise Refusal(
            f"there is no metadata in {settings.data}: name the directory `spiderduck run` or `worker` had as --data"
        )
    try:
        metadata = await open_metadata(settings)
        try:
            yield metadata
        finally:
            await metadata.close()
    except StoreUnavailable as error:
        raise Refusal(f"the metadata store does not answer: {error}") from error
