"""Laws of the archive: what it says is safe can be read, now and after a crash."""

import asyncio
import hashlib
import io
import pathlib
import signal
import subprocess
import sys

import pytest
from warcio.archiveiterator import ArchiveIterator

from agents.archiving.archive import Archive, ArchiveSettings, SafeWhen
from agents.archiving.reading import BadRecord, read_body
from agents.clients.content import NotStored, open_content
from agents.clients.errors import StoreUnavailable
from topology.deflate import squeeze
from topology.records import Http, Page, Placed, Visit

NOON_S = 1_795_262_400.0


def page(body, name="a"):
    squeezed = squeeze(body)
    return Page(
        url=f"https://example.com/{name}",
        domain="example.com",
        fetch_id=name,
        kind="page",
        http=Http(200, "text/html", len(body)),
        visit=Visit(started_ms=int(NOON_S * 1000), address="93.184.216.34"),
        body=squeezed.data,
        body_crc32=squeezed.crc32,
        body_sha1=hashlib.sha1(body, usedforsecurity=False).digest(),
        request_headers=(("Host", "example.com"),),
        response_headers=(("Content-Type", "text/html"),),
    )


class Failing:
    """A content store whose puts fail while `down` is true."""

    def __init__(self, content):
        self.content, self.down = content, True

    async def put_file(self, name, path):
        if self.down:
            raise StoreUnavailable("the store is down")
        await self.content.put_file(name, path)

    def __getattr__(self, name):
        return getattr(self.content, name)


def in_archive(tmp_path, law, content=None, **settings):
    """Run `async def law(archive, content)` on an archive in an empty folder."""

    async def run():
        store = content or open_content((tmp_path / "content").as_uri())
        archive = await Archive.open(store, tmp_path / "spool", ArchiveSettings("w", **settings))
        try:
            await law(archive, store)
        finally:
            await archive.close()
            await store.close()

    asyncio.run(run())


async def body_at(content, placed, spool=None):
    return (await read_body(content, placed, body_bytes_max=1_000_000, spool=spool)).body


async def all_records(content):
    """Every record of every segment, digests checked."""
    records = []
    async for name in content.names():
        data = await content.read(name, 0, await content.size(name))
        for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
            record.raw_stream.read()
            records.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI")))
    return records


def test_a_page_is_read_by_its_placement_before_and_after_its_segment_is_put(tmp_path):
    async def law(archive, content):
        bodies = [f"<p>{n}".encode() * 100 for n in range(5)]
        placed = await archive.add([page(body, str(n)) for n, body in enumerate(bodies)], NOON_S)
        with pytest.raises(NotStored):
            await body_at(content, placed[0])
        assert [await body_at(content, place, tmp_path / "spool") for place in placed] == bodies
        await archive.close()
        assert [await body_at(content, place) for place in placed] == bodies
        records = await all_records(content)
        assert [kind for kind, _ in records] == ["warcinfo"] + ["response", "request"] * 5

    in_archive(tmp_path, law)


def test_a_full_segment_is_put_and_all_its_records_are_valid(tmp_path):
    async def law(archive, content):
        bodies = [bytes([n]) * 5000 for n in range(40)]
        placed = [
            place
            for n in range(0, 40, 8)
            for place in await archive.add([page(b, f"{n}{b[0]}") for b in bodies[n : n + 8]], NOON_S)
        ]
        await archive.close()
        assert len({place.segment for place in placed}) > 3
        assert [await body_at(content, place) for place in placed] == bodies
        kinds = [kind for kind, _ in await all_records(content)]
        assert (kinds.count("response"), kinds.count("request")) == (40, 40)

    in_archive(tmp_path, law, segment_bytes_max=4000)


def test_a_body_archived_before_is_a_revisit_and_its_placement_is_the_originals(tmp_path):
    async def law(archive, content):
        [first, again] = await archive.add([page(b"same", "a"), page(b"same", "b")], NOON_S)
        [later] = await archive.add([page(b"same", "c")], NOON_S + 1)
        assert first == again == later
        await archive.close()
        assert await body_at(content, later) == b"same"
        kinds = [record for record in await all_records(content) if record[0] == "revisit"]
        assert kinds == [("revisit", "https://example.com/b"), ("revisit", "https://example.com/c")]

    in_archive(tmp_path, law)


def test_empty_bodies_are_no_revisits_and_old_originals_are_forgotten(tmp_path):
    async def law(archive, content):
        await archive.add([page(body, str(n)) for n, body in enumerate([b"", b"", b"x", b"y", b"x"])], NOON_S)
        await archive.close()
        assert "revisit" not in [kind for kind, _ in await all_records(content)]

    in_archive(tmp_path, law, originals_max=1)


def test_no_pages_are_no_work(tmp_path):
    async def law(archive, content):
        assert await archive.add([], NOON_S) == []
        await archive.tick(NOON_S + 1000)
        assert await all_records(content) == []

    in_archive(tmp_path, law, safe_when=SafeWhen.PUT)


# --- safe when put


def test_a_page_that_is_safe_when_put_is_in_the_store_when_add_returns(tmp_path):
    async def law(archive, content):
        adding = asyncio.create_task(archive.add([page(b"x")], NOON_S))
        await asyncio.sleep(0.05)
        assert not adding.done()
        await archive.tick(NOON_S + 9.9)
        await asyncio.sleep(0.05)
        assert not adding.done()
        await archive.tick(NOON_S + 10)
        [placed] = await asyncio.wait_for(adding, 5)
        assert await body_at(content, placed) == b"x"

    in_archive(tmp_path, law, safe_when=SafeWhen.PUT, segment_age_s_max=10.0)


def test_many_calls_wait_for_their_own_segments(tmp_path):
    async def law(archive, content):
        adds = [archive.add([page(bytes([n]) * 3000, str(n))], NOON_S) for n in range(20)]
        placed = [place for places in await asyncio.wait_for(asyncio.gather(*adds), 10) for place in places]
        assert [await body_at(content, place) for place in placed] == [bytes([n]) * 3000 for n in range(20)]

    in_archive(tmp_path, law, safe_when=SafeWhen.PUT, segment_bytes_max=100)


def test_a_store_that_was_down_gets_the_segments_in_order_when_it_is_back(tmp_path):
    content = Failing(open_content((tmp_path / "content").as_uri()))

    async def law(archive, content):
        adding = asyncio.create_task(archive.add([page(b"x")], NOON_S))
        await asyncio.sleep(0.05)
        assert (adding.done(), archive.trouble, archive.waiting) == (False, "the store is down", 1)
        content.down = False
        await archive.tick(NOON_S + 1)
        [placed] = await asyncio.wait_for(adding, 5)
        assert await body_at(content, placed) == b"x"
        assert (archive.trouble, archive.waiting) == (None, 0)

    in_archive(tmp_path, law, content, safe_when=SafeWhen.PUT, segment_bytes_max=1)


def test_nothing_more_is_taken_while_too_many_segments_wait(tmp_path):
    content = Failing(open_content((tmp_path / "content").as_uri()))

    async def law(archive, content):
        for n in range(3):
            await archive.add([page(bytes([n]), str(n))], NOON_S)
            await asyncio.sleep(0.02)
        with pytest.raises(StoreUnavailable, match="3 segments wait to be put: the store is down"):
            await archive.add([page(b"x")], NOON_S)
        content.down = False
        await archive.tick(NOON_S)
        await archive.close()
        assert len(await all_records(content)) == 9

    in_archive(tmp_path, law, content, segment_bytes_max=1, sealed_segments_max=3)


def test_whoever_waits_when_the_archive_closes_is_told(tmp_path):
    content = Failing(open_content((tmp_path / "content").as_uri()))

    async def law(archive, _content):
        adding = asyncio.create_task(archive.add([page(b"x")], NOON_S))
        await asyncio.sleep(0.05)
        await archive.close()
        with pytest.raises(StoreUnavailable, match="closed before"):
            await adding
        for call in (archive.add([page(b"y")], NOON_S), archive.tick(NOON_S)):
            with pytest.raises(StoreUnavailable, match="closed"):
                await call

    in_archive(tmp_path, law, content, safe_when=SafeWhen.PUT)


# --- crashes

KILLED = """
import asyncio, pathlib, sys
sys.path.insert(0, "tests/agents")
from test_archiving_archive import NOON_S, Archive, ArchiveSettings, open_content, page

async def main():
    folder = pathlib.Path(sys.argv[1])
    content = open_content((folder / "content").as_uri())
    archive = await Archive.open(content, folder / "spool", ArchiveSettings("dead", segment_bytes_max=20_000))
    for n in range(1_000_000):
        for placed in await archive.add([page(f"{n} {m} ".encode() * 200, f"{n}-{m}") for m in range(4)], NOON_S + n):
            print(placed.segment, placed.offset, placed.length, n, flush=True)

asyncio.run(main())
"""


def test_a_killed_archive_loses_no_page_it_called_safe(tmp_path):
    root = pathlib.Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root
    ) as dying:
        said = [next(dying.stdout) for _ in range(150)]
        dying.send_signal(signal.SIGKILL)
        said += [line for line in dying.stdout if line.endswith("\n")]

    async def law(archive, content):
        await archive.close()
        for line in said:
            segment, offset, length, n = line.split()
            body = await body_at(content, Placed(segment, int(offset), int(length)))
            assert body.startswith(f"{n} ".encode())
        await all_records(content)

    in_archive(tmp_path, law)


def test_a_segment_put_before_the_crash_that_hid_the_answer_is_put_once(tmp_path):
    """The file is gone and the object is there: nothing is left to do."""

    async def law(archive, content):
        await archive.add([page(b"x")], NOON_S)
        name = archive._segments.current
        archive._sealed.append(name)
        archive._segments.seal()
        await archive.tick(NOON_S)
        await archive.close()
        assert (archive.trouble, archive.waiting) == (None, 0)
        assert len(await all_records(content)) == 3

    in_archive(tmp_path, law)


def test_a_placement_that_leads_nowhere_has_a_name(tmp_path):
    async def law(archive, content):
        [placed] = await archive.add([page(b"x" * 100)], NOON_S)
        await archive.close()
        with pytest.raises(NotStored):
            await body_at(content, Placed(placed.segment, placed.offset + 10_000, placed.length), tmp_path / "spool")
        with pytest.raises(BadRecord):
            await body_at(content, Placed(placed.segment, placed.offset + 1, placed.length - 1))
        with pytest.raises(BadRecord, match="more than 99 bytes"):
            await read_body(content, placed, body_bytes_max=99)

    in_archive(tmp_path, law)
