"""Opening and closing what the stages of one worker need from outside: the web, the two stores."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from agents.archiving.archive import Archive, ArchiveSettings, SafeWhen
from agents.clients.content import ContentStore, open_content
from agents.clients.http import Asks, Limits, Web
from agents.clients.metadata import MetadataStore
from agents.clients.metadata_sqlite import SqliteMetadata
from agents.clients.packer import Pack, Packer, pack_here
from agents.clients.parser_pool import ParserPool
from agents.clients.web_pool import RemoteWeb
from agents.clients.web_process import Config
from agents.fetching.guard import Guard
from topology.errors import Refusal
from topology.settings import Settings
from topology.wiring import Stores

_NEEDS_METADATA: Final = {"archive", "complete"}


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    """Open what this worker's stages need, and nothing else; close it at the end."""
    async with AsyncExitStack() as stack:
        metadata = archive = None
        pack: Pack = pack_here
        if "fetch" in settings.stages and not settings.web_process:  # which packs what it fetches
            pack = stack.enter_context(Packer())
        web, parsers = await _all_or_the_first_failure(
            stack.enter_async_context(_web(settings)) if "fetch" in settings.stages else _nothing(),
            stack.enter_async_context(_parsers(settings)) if "parse" in settings.stages else _nothing(),
        )
        if _NEEDS_METADATA & set(settings.stages):
            metadata = await open_metadata(settings)
            stack.push_async_callback(metadata.close)
        if "archive" in settings.stages:
            content = open_content_store(settings)
            stack.push_async_callback(content.close)
            archive = await Archive.open(content, spool(settings), _archive_settings(settings))
            stack.push_async_callback(archive.close)
        yield Stores(web, pack, parsers, metadata, archive)


async def _all_or_the_first_failure(*starting: Coroutine[Any, Any, Any]) -> list[Any]:
    """Start processes side by side; let all of them start, so that those that do can be stopped again."""
    started = await asyncio.gather(*starting, return_exceptions=True)
    for each in started:
        if isinstance(each, BaseException):
            raise each
    return started


async def _nothing() -> None:
    """No stage of this worker needs it."""


async def open_metadata(settings: Settings) -> MetadataStore:
    """Open the metadata store the settings name."""
    if settings.metadata_url == "sqlite:":
        settings.data.mkdir(parents=True, exist_ok=True)
        return await SqliteMetadata.open(settings.data / "metadata.sqlite")
    raise Refusal(f"metadata_url = {settings.metadata_url!r} is impossible: this version knows sqlite:")


def open_content_store(settings: Settings) -> ContentStore:
    """Open the content store the settings name."""
    if settings.content_url == "file:":
        folder = settings.data.resolve() / "content"
        folder.mkdir(parents=True, exist_ok=True)
        return open_content(folder.as_uri())
    return open_content(settings.content_url)


def spool(settings: Settings) -> Path:
    """Return where open segments are written."""
    return settings.data / "spool"


def _web(settings: Settings) -> AbstractAsyncContextManager[Asks]:
    limits = Limits(
        connections_max=settings.fetches_max * 2,
        idle_max=settings.fetches_max,
        connect_s_max=settings.connect_s_max,
        header_bytes_max=settings.header_bytes_max,
    )
    if settings.web_process:
        nets = tuple(str(net) for net in settings.allow_net)
        return RemoteWeb(Config(settings.user_agent, nets, settings.connect_to, limits))
    return Web(
        user_agent=settings.user_agent,
        guard=Guard(settings.allow_net),
        limits=limits,
        connect_to=settings.connect_to,
    )


def _parsers(settings: Settings) -> ParserPool:
    return ParserPool(
        processes=settings.parse_processes, parse_s_max=settings.parse_s_max, site_rules=settings.site_rules
    )


def _archive_settings(settings: Settings) -> ArchiveSettings:
    # On one disk a spooled page is safe: it outlives the process and is put by the next start.
    local = settings.content_url.startswith("file:")
    return ArchiveSettings(
        writer=f"{socket.gethostname()}-{os.getpid()}-{int(time.time()):x}",
        safe_when=SafeWhen.SPOOLED if local else SafeWhen.PUT,
        segment_bytes_max=settings.segment_bytes_max,
        segment_age_s_max=settings.segment_s_max,
        info={"software": "SpiderDuck", "http-header-user-agent": settings.user_agent, "robots": "obey"},
    )
