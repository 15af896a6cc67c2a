"""The laws of the content store, held against every implementation in `STORES`."""

import asyncio
import errno
import functools
import inspect
import pathlib
import subprocess
import sys

import pytest

from agents.clients.content import NotStored, open_content
from agents.clients.errors import StoreUnavailable
from topology.errors import Refusal

NAME = "3f/20261121T184500-w-00001.warc.gz"

STORES = {
    "folder": lambda folder: open_content((folder / "content").as_uri()),
    "memory": lambda _folder: open_content("memory://"),
}


def on_every_store(law):
    """Run an `async def law(store)` or `law(store, folder)` on an empty store of each kind, in a folder."""

    @pytest.mark.parametrize("kind", sorted(STORES))
    @functools.wraps(law)
    def test(kind, tmp_path):
        asyncio.run(_with_store(STORES[kind], tmp_path, law))

    del test.__wrapped__  # pytest would read the law's parameters as fixtures
    return test


async def _with_store(opened, folder, law):
    store = opened(folder)
    try:
        await law(*[store, folder][: len(inspect.signature(law).parameters)])
    finally:
        await store.close()


async def names(store, prefix=""):
    return sorted([name async for name in store.names(prefix)])


@on_every_store
async def test_any_range_of_what_was_put_is_read(store):
    data = bytes(range(256)) * 10
    await store.put(NAME, data)
    for offset, length in [(0, 1), (0, 2560), (255, 2), (2559, 1)]:
        assert await store.read(NAME, offset, length) == data[offset : offset + length]
    assert await store.size(NAME) == len(data)


@on_every_store
async def test_putting_again_replaces(store):
    await store.put(NAME, b"first, and longer")
    await store.put(NAME, b"second")
    assert await store.read(NAME, 0, 6) == b"second"
    assert await store.size(NAME) == 6


@on_every_store
async def test_chunks_make_one_object(store):
    await store.put(NAME, (bytes([n]) * 1000 for n in range(20)))
    assert await store.size(NAME) == 20_000
    assert await store.read(NAME, 999, 2) == b"\x00\x01"


@on_every_store
async def test_an_object_that_fails_half_way_is_not_there(store):
    def chunks():
        yield bytes(6_000_000)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.put(NAME, chunks())
    assert await names(store) == []
    with pytest.raises(NotStored):
        await store.size(NAME)


@on_every_store
async def test_an_empty_object_is_an_object(store):
    await store.put(NAME, b"")
    assert await store.size(NAME) == 0
    assert await names(store) == [NAME]


@on_every_store
async def test_a_file_is_handed_over(store, folder):
    path = folder / "segment"
    path.write_bytes(b"x" * 6_000_000 + b"end")
    await store.put_file(NAME, path)
    assert not path.exists()
    assert await store.read(NAME, 6_000_000, 3) == b"end"
    path.write_bytes(b"again")
    await store.put_file(NAME, path)
    assert await store.read(NAME, 0, 5) == b"again"


@on_every_store
async def test_what_is_not_there_has_a_name(store, folder):
    for call in (store.read(NAME, 0, 1), store.size(NAME), store.put_file(NAME, folder / "missing")):
        with pytest.raises(NotStored, match=r".*no such object"):
            await call
    await store.delete(NAME)


@on_every_store
async def test_bytes_beyond_the_end_are_not_stored(store):
    await store.put(NAME, b"12345")
    for offset, length in [(4, 2), (5, 1), (100, 100)]:
        with pytest.raises(NotStored, match=f"has not the {length} bytes from {offset}"):
            await store.read(NAME, offset, length)
    for offset, length in [(-1, 2), (0, 0), (3, -1)]:
        with pytest.raises(ValueError, match="no such range"):
            await store.read(NAME, offset, length)


@on_every_store
async def test_what_is_deleted_is_gone(store):
    await store.put(NAME, b"x")
    await store.delete(NAME)
    assert await names(store) == []


@on_every_store
async def test_a_folder_lists_what_is_under_it_and_nothing_else(store):
    for name in ("3f/a", "3f/b", "3fa/c", "d"):
        await store.put(name, b"x")
    assert await names(store) == ["3f/a", "3f/b", "3fa/c", "d"]
    assert await names(store, "3f") == ["3f/a", "3f/b"]
    assert await names(store, "nothing") == []


@on_every_store
async def test_more_names_than_one_page_are_listed(store):
    expected = sorted(f"{n % 7}/{n}" for n in range(1100))
    for name in expected:
        await store.put(name, b"")
    assert await names(store) == expected


@on_every_store
async def test_a_name_that_a_store_would_change_is_refused(store, folder):
    for name in ("", "/a", "a//b", "../a", "a/../b", "a/.hidden", "a b", "a\x00", "ü", "a\n", "a/"):
        for call in (store.put(name, b""), store.put_file(name, folder), store.read(name, 0, 1)):
            with pytest.raises(ValueError, match="not the name"):
                await call


@on_every_store
async def test_a_closed_store_is_unavailable(store):
    await store.close()
    for call in (store.read(NAME, 0, 1), store.put(NAME, b""), store.delete(NAME), names(store)):
        with pytest.raises(StoreUnavailable, match="closed"):
            await call


# --- a folder alone


@pytest.mark.parametrize("url", ["", "3f", "s4://bucket", "file://host/folder", "file:", "folder/content"])
def test_a_url_of_no_store_is_refused_with_the_ones_there_are(url):
    with pytest.raises(Refusal, match="use file:///"):
        open_content(url)


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailable):
        open_content((tmp_path / "file" / "content").as_uri())


def test_a_folder_that_cannot_be_written_is_unavailable(tmp_path):
    async def law(store, folder):
        (folder / "content" / "3f").write_bytes(b"a file stands where a folder should be")
        with pytest.raises(StoreUnavailable):
            await store.put(NAME, b"x")

    asyncio.run(_with_store(STORES["folder"], tmp_path, law))


def test_a_file_of_another_file_system_is_copied(tmp_path, monkeypatch):
    def replace(_path, _target):
        raise OSError(errno.EXDEV, "other file system")

    async def law(store, folder):
        (folder / "segment").write_bytes(b"abc")
        monkeypatch.setattr(pathlib.Path, "replace", replace)
        await store.put_file(NAME, folder / "segment")
        assert await store.read(NAME, 0, 3) == b"abc"
        assert not (folder / "segment").exists()

    asyncio.run(_with_store(STORES["folder"], tmp_path, law))


def test_a_short_program_that_reads_one_object_ends_well(tmp_path):
    """The reason why the calls run on our own threads."""
    program = (
        "import asyncio; from agents.clients.content import open_content\n"
        f"store = open_content({tmp_path.as_uri()!r})\n"
        "async def main():\n    await store.put('a', b'abc')\n    print(await store.read('a', 0, 3))\n"
        "asyncio.run(main())"
    )
    root = pathlib.Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=False)
    assert (ran.stdout, ran.returncode) == ("b'abc'\n", 0)
