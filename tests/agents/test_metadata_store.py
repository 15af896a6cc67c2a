"""The laws of the metadata store, held against every implementation in `STORES`.

Another implementation joins by one line: a name, and how an empty store is opened for a test.
"""

import asyncio
import collections
import functools
import itertools
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.clients.errors import StoreUnavailable
from agents.clients.metadata import READ_URLS_MAX, Answer, Ending, Record, ShareCounts, Shared
from agents.clients.metadata_sqlite import SCHEMA, SqliteMetadata

PAGE = "https://example.com/page"
DAY = "2026-11-21"


async def sqlite_store(folder):
    return await SqliteMetadata.open(folder / "metadata.sqlite", lock_wait_s_max=0.05)


STORES = {"sqlite": sqlite_store}


def on_every_store(law):
    """Run an `async def law(store)` on an empty store of each kind."""

    @pytest.mark.parametrize("kind", sorted(STORES))
    @functools.wraps(law)
    def test(kind, tmp_path):
        asyncio.run(_with_store(STORES[kind], tmp_path, law))

    del test.__wrapped__  # pytest would read the law's parameter as a fixture
    return test


async def _with_store(opened, folder, law):
    store = await opened(folder)
    try:
        await law(store)
    finally:
        await store.close()


async def fields_of(store, url):
    record = (await store.get_many([url]))[url]
    return record and record.fields


# --- records


@on_every_store
async def test_what_is_written_is_read(store):
    fields = {"title": "Zürich 😀", "image": {"url": "u", "width": 3}, "tags": [1, 2.5, "x"], "resolved": True}
    await store.write([Ending(PAGE, fields)])
    assert await store.get_many([PAGE]) == {PAGE: Record(PAGE, fields)}


@on_every_store
async def test_an_unknown_url_is_none(store):
    assert await store.get_many(["https://nowhere.example/"]) == {"https://nowhere.example/": None}


@on_every_store
async def test_a_field_that_is_none_is_stored_absent(store):
    await store.write([Ending(PAGE, {"title": "a", "author": None})])
    assert await fields_of(store, PAGE) == {"title": "a"}


@on_every_store
async def test_a_field_written_as_none_is_removed(store):
    """A page that no longer has a description must not keep the old one."""
    await store.write([Ending(PAGE, {"title": "a", "description": "old"})])
    await store.write([Ending(PAGE, {"title": "b", "description": None})])
    assert await fields_of(store, PAGE) == {"title": "b"}


@on_every_store
async def test_a_field_that_is_an_object_is_replaced_whole(store):
    await store.write([Ending(PAGE, {"provenance": {"title": "og:title", "image": "og:image"}})])
    await store.write([Ending(PAGE, {"provenance": {"title": "title"}})])
    assert await fields_of(store, PAGE) == {"provenance": {"title": "title"}}


@on_every_store
async def test_only_the_fields_asked_for_are_returned(store):
    await store.write([Ending(PAGE, {"title": "a", "author": "b"})])
    found = await store.get_many([PAGE], fields={"title", "unheard-of"})
    assert found == {PAGE: Record(PAGE, {"title": "a"})}


@on_every_store
async def test_three_hundred_urls_are_read_at_once_and_no_more(store):
    urls = [f"https://example.com/{n}" for n in range(READ_URLS_MAX)]
    await store.write([Ending(url, {"n": n}) for n, url in enumerate(urls)])
    found = await store.get_many(urls)
    assert [record.fields["n"] for record in found.values()] == list(range(READ_URLS_MAX))
    with pytest.raises(ValueError, match="301"):
        await store.get_many([*urls, PAGE])


@on_every_store
async def test_an_empty_batch_is_no_work(store):
    await store.write([])
    await store.update({})
    assert await store.get_many([]) == {}


# --- updates


@on_every_store
async def test_an_update_leaves_the_other_fields_alone(store):
    await store.write([Ending(PAGE, {"title": "a", "author": "b"})])
    await store.update({PAGE: {"image.width": 640, "author": None}})
    assert await fields_of(store, PAGE) == {"title": "a", "image.width": 640}


@on_every_store
async def test_a_placement_survives_whether_it_comes_before_or_after_the_ending(store):
    early, late = PAGE + "/early", PAGE + "/late"
    placement = {"content.segment": "3f/x.warc.gz", "content.offset": 7}
    await store.update({early: placement})
    await store.write([Ending(early, {"title": "a"}), Ending(late, {"title": "a"})])
    await store.update({late: placement})
    assert await fields_of(store, early) == await fields_of(store, late) == {"title": "a", **placement}


@on_every_store
async def test_an_update_alone_makes_nothing_known(store):
    await store.update({PAGE: {"content.offset": 7}})
    assert await fields_of(store, PAGE) is None


@on_every_store
async def test_an_update_by_an_alias_reaches_the_canonical_record_in_either_order(store):
    """The archive knows the URL that was fetched, not what the page calls itself."""
    fetched = "https://example.com/page?utm_source=x"
    await store.update({fetched: {"content.offset": 7, "content.length": 9}})
    await store.write([Ending(PAGE, {"title": "a"}, aliases=(fetched,))])
    assert await fields_of(store, PAGE) == {"title": "a", "content.offset": 7, "content.length": 9}
    await store.update({fetched: {"content.offset": 8}})
    assert await fields_of(store, fetched) == {"title": "a", "content.offset": 8, "content.length": 9}


# --- aliases


@on_every_store
async def test_every_alias_and_the_canonical_url_lead_to_the_record(store):
    aliases = ("https://t.co/Ge4jE9OPNi", "https://es.pn/2OC3GLO")
    await store.write([Ending(PAGE, {"title": "a"}, aliases)])
    record = Record(PAGE, {"title": "a"})
    assert await store.get_many([*aliases, PAGE]) == dict.fromkeys([*aliases, PAGE], record)


@on_every_store
async def test_aliases_are_case_sensitive(store):
    await store.write([Ending(PAGE, {}, ("https://t.co/Ab",)), Ending(PAGE + "2", {}, ("https://t.co/aB",))])
    found = await store.get_many(["https://t.co/Ab", "https://t.co/aB", "https://t.co/ab"])
    assert [record and record.canonical_url for record in found.values()] == [PAGE, PAGE + "2", None]


@pytest.mark.parametrize("batches", [1, 2])
def test_an_alias_pointed_elsewhere_later_wins(batches, tmp_path):
    """In one batch as in two."""

    async def law(store):
        endings = [Ending(PAGE, {}, ("https://t.co/a",)), Ending(PAGE + "2", {}, ("https://t.co/a",))]
        for batch in [endings] if batches == 1 else [[end] for end in endings]:
            await store.write(batch)
        assert (await store.get_many(["https://t.co/a"]))["https://t.co/a"].canonical_url == PAGE + "2"

    for kind, opened in STORES.items():
        (tmp_path / kind).mkdir()
        asyncio.run(_with_store(opened, tmp_path / kind, law))


@on_every_store
async def test_a_record_that_became_an_alias_is_itself_again_when_it_is_written_again(store):
    old, new = PAGE + "/old", PAGE + "/new"
    await store.write([Ending(old, {"n": 1})])
    await store.write([Ending(new, {"n": 2}, (old,))])
    assert await fields_of(store, old) == {"n": 2}
    await store.write([Ending(old, {"n": 3})])
    assert await fields_of(store, old) == {"n": 3}


# --- shares


@on_every_store
async def test_shares_are_distinct_tweet_and_url_by_day(store):
    shares = (
        Shared("1", "https://t.co/a", "2026-11-20"),
        Shared("1", "https://t.co/b", "2026-11-20"),
        Shared("2", "https://t.co/a", "2026-11-21"),
        Shared("2", "https://t.co/a", "2026-11-21"),
    )
    await store.write([Ending(PAGE, {}, shares=shares[:2]), Ending(PAGE, {}, shares=shares[2:])])
    assert await store.shares(PAGE) == ShareCounts(3, {"2026-11-20": 2, "2026-11-21": 1})
    assert await store.shares(PAGE + "/other") == ShareCounts(0, {})


@on_every_store
async def test_a_tweet_is_answered_for_each_of_its_urls(store):
    first = Shared("1", "https://t.co/a", DAY, {"outcome": "fetched", "times": {"web_ms": 3}})
    second = Shared("1", "https://t.co/b", DAY, {"outcome": "gone"})
    await store.write([Ending(PAGE, {}, shares=(second, Shared("2", "https://t.co/c", DAY)))])
    await store.write([Ending(PAGE + "2", {}, shares=(first,))])
    assert await store.by_tweet("1") == [
        Answer("https://t.co/a", PAGE + "2", {"outcome": "fetched", "times": {"web_ms": 3}}),
        Answer("https://t.co/b", PAGE, {"outcome": "gone"}),
    ]
    assert await store.by_tweet("3") == []


# --- replay

urls = st.sampled_from([f"https://example.com/{name}" for name in "abcd"])
some_fields = st.dictionaries(st.sampled_from("tia"), st.one_of(st.none(), st.integers(0, 3)), max_size=3)
endings = st.builds(
    Ending,
    urls,
    some_fields,
    st.lists(st.sampled_from(["t1", "t2"]), max_size=2).map(tuple),
    st.lists(st.builds(Shared, st.sampled_from("12"), st.sampled_from("xy"), st.just(DAY)), max_size=2).map(tuple),
)
steps = st.lists(st.one_of(st.lists(endings, max_size=3), st.dictionaries(urls, some_fields, max_size=2)), max_size=6)


async def apply(store, step):
    await (store.write(step) if isinstance(step, list) else store.update(step))


async def state(store):
    names = [f"https://example.com/{name}" for name in "abcd"]
    return (
        await store.get_many([*names, "t1", "t2"]),
        [await store.shares(name) for name in names],
        [await store.by_tweet(tweet) for tweet in "12"],
    )


@pytest.mark.parametrize("kind", sorted(STORES))
@settings(max_examples=30)
@given(steps=steps)
def test_each_step_replayed_at_once_leaves_the_same_state(kind, steps):
    """A worker is killed after any step and does it again."""

    async def law(store):
        for step in steps:
            await apply(store, step)
            once = await state(store)
            await apply(store, step)
            assert await state(store) == once

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_with_store(STORES[kind], pathlib.Path(folder), law))


@pytest.mark.parametrize("kind", sorted(STORES))
@settings(max_examples=30)
@given(steps=steps)
def test_records_are_what_merging_field_by_field_gives(kind, steps):
    """Against a model: a dict of dicts."""
    model, written = collections.defaultdict(dict), set()
    steps = [[Ending(e.canonical_url, e.fields) for e in s] if isinstance(s, list) else s for s in steps]
    for url, fields in itertools.chain.from_iterable(
        [(e.canonical_url, e.fields) for e in s] if isinstance(s, list) else s.items() for s in steps
    ):
        model[url] = {k: v for k, v in (model[url] | fields).items() if v is not None}
    written = {e.canonical_url for s in steps if isinstance(s, list) for e in s}

    async def law(store):
        for step in steps:
            await apply(store, step)
        for url in [f"https://example.com/{name}" for name in "abcd"]:
            assert await fields_of(store, url) == (model[url] if url in written else None)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_with_store(STORES[kind], pathlib.Path(folder), law))


# --- trouble


@on_every_store
async def test_a_closed_store_is_unavailable(store):
    await store.close()
    await store.close()
    for call in (store.write([]), store.update({}), store.get_many([]), store.by_tweet("1"), store.shares(PAGE)):
        with pytest.raises(StoreUnavailable, match="closed"):
            await call


@on_every_store
async def test_calls_made_at_once_are_all_done(store):
    await asyncio.gather(*(store.write([Ending(f"{PAGE}/{n}", {"n": n})]) for n in range(20)))
    assert await fields_of(store, PAGE + "/19") == {"n": 19}


# --- SQLite alone


def test_a_share_that_a_replay_resolves_elsewhere_is_counted_once(tmp_path):
    async def law(store):
        share = Shared("1", "https://t.co/a", DAY)
        await store.write([Ending(PAGE, {}, shares=(share,))])
        await store.write([Ending(PAGE + "2", {}, shares=(share,))])
        assert (await store.shares(PAGE)).total + (await store.shares(PAGE + "2")).total == 1

    asyncio.run(_with_store(sqlite_store, tmp_path, law))


def test_what_was_written_is_there_after_closing_and_opening(tmp_path):
    async def write(store):
        await store.write([Ending(PAGE, {"title": "a"})])

    async def read(store):
        assert await fields_of(store, PAGE) == {"title": "a"}

    asyncio.run(_with_store(sqlite_store, tmp_path, write))
    asyncio.run(_with_store(sqlite_store, tmp_path, read))


def test_a_locked_file_is_unavailable_for_writing_and_still_read(tmp_path):
    async def law(store):
        await store.write([Ending(PAGE, {"title": "a"})])
        other = sqlite3.connect(tmp_path / "metadata.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await store.write([Ending(PAGE, {"title": "b"})])
        assert await fields_of(store, PAGE) == {"title": "a"}
        other.close()
        await store.write([Ending(PAGE, {"title": "b"})])
        assert await fields_of(store, PAGE) == {"title": "b"}

    asyncio.run(_with_store(sqlite_store, tmp_path, law))


def test_a_batch_that_fails_leaves_nothing_behind(tmp_path):
    async def law(store):
        breaking = sqlite3.connect(tmp_path / "metadata.sqlite", isolation_level=None)
        breaking.execute("ALTER TABLE shares RENAME TO lost")
        with pytest.raises(StoreUnavailable, match="shares"):
            await store.write([Ending(PAGE, {}, shares=(Shared("1", "u", DAY),))])
        assert await fields_of(store, PAGE) is None
        breaking.execute("ALTER TABLE lost RENAME TO shares")
        breaking.close()
        await store.write([Ending(PAGE, {"title": "a"})])
        assert await fields_of(store, PAGE) == {"title": "a"}

    asyncio.run(_with_store(sqlite_store, tmp_path, law))


def test_a_file_that_is_no_database_is_unavailable(tmp_path):
    (tmp_path / "metadata.sqlite").write_bytes(b"not a database, and long enough to be looked at" * 50)
    with pytest.raises(StoreUnavailable, match="not a database"):
        asyncio.run(sqlite_store(tmp_path))


def test_a_folder_that_is_not_there_is_unavailable(tmp_path):
    with pytest.raises(StoreUnavailable, match="unable to open"):
        asyncio.run(sqlite_store(tmp_path / "missing"))


def test_a_file_of_a_later_release_is_refused(tmp_path):
    asyncio.run(_with_store(sqlite_store, tmp_path, lambda store: store.write([])))
    db = sqlite3.connect(tmp_path / "metadata.sqlite")
    db.execute("UPDATE schema SET version = ?", (SCHEMA + 1,))
    db.commit()
    db.close()
    with pytest.raises(StoreUnavailable, match=r"schema 2 .* up to 1: run a newer release"):
        asyncio.run(sqlite_store(tmp_path))


WRITER = """
import asyncio, pathlib, sys
from agents.clients.metadata import Ending
from agents.clients.metadata_sqlite import SqliteMetadata

async def main():
    store = await SqliteMetadata.open(pathlib.Path(sys.argv[1]))
    for n in range(1_000_000):
        await store.write([Ending(f"https://example.com/{n}/{m}", {"n": n}) for m in range(5)])
        print(n, flush=True)

asyncio.run(main())
"""


def test_a_killed_writer_loses_nothing_it_reported(tmp_path):
    path = tmp_path / "metadata.sqlite"
    root = pathlib.Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=root
    ) as writer:
        said = [int(next(writer.stdout)) for _ in range(50)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout if line.endswith("\n")]

    async def law(store):
        for n in said:
            found = await store.get_many([f"https://example.com/{n}/{m}" for m in range(5)])
            assert all(record and record.fields == {"n": n} for record in found.values())

    asyncio.run(_with_store(sqlite_store, tmp_path, law))
