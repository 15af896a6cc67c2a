"""Messages come out of a source whole, in order, each once, however its bytes were cut; a run goes on after them."""

import asyncio
import gzip
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import names, sources
from topology.embedded_log import Log, Partition, partition_of
from topology.errors import Refusal
from topology.feeding import Feed, note_of
from topology.sources import Line, Messages, check, messages

TWEETS = [{"id": str(n), "text": f"line {n}"} for n in range(1, 6)]
LINES = "".join(json.dumps(tweet) + "\n" for tweet in TWEETS).encode()
FORMS = [
    LINES,
    json.dumps(TWEETS).encode(),
    json.dumps(TWEETS[0], indent=2).encode(),
    b"{broken\n" + LINES,
]


def read(data: bytes, *cuts: int) -> list[Line]:
    """Feed `data` cut at these places."""
    form, found, start = Messages("f"), [], 0
    for end in (*sorted(min(cut, len(data)) for cut in cuts), len(data)):
        found += form.feed(data[start:end])
        start = end
    return [*found, *form.end()]


def ids(found: list[Line]) -> list[str]:
    return [json.loads(line.raw)["id"] for line in found]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(LINES, id="lines"),
        pytest.param(LINES.removesuffix(b"\n"), id="no newline at the end"),
        pytest.param(LINES.replace(b"\n", b"\r\n"), id="windows line ends"),
        pytest.param(b"\xef\xbb\xbf" + json.dumps(TWEETS).encode(), id="byte order mark"),
        pytest.param(json.dumps(TWEETS).encode(), id="array on one line"),
        pytest.param(json.dumps(TWEETS, indent=2).encode(), id="array, indented"),
        pytest.param(b"[" + LINES.strip().replace(b"\n", b",\n") + b"]", id="array of lines"),
        pytest.param(gzip.compress(LINES), id="gzip"),
        pytest.param(gzip.compress(LINES[:70]) + gzip.compress(LINES[70:]) + b"\0" * 512, id="gzip, members, padded"),
        pytest.param(gzip.compress(json.dumps(TWEETS, indent=1).encode()), id="gzip, array"),
    ],
)
def test_every_form_gives_the_same_tweets(data: bytes) -> None:
    found = read(data)
    assert ids(found) == ["1", "2", "3", "4", "5"]
    assert [line.number for line in found] == [1, 2, 3, 4, 5]


@given(
    st.sampled_from(FORMS)
    .flatmap(lambda data: st.sampled_from([data, gzip.compress(data)]))
    .flatmap(lambda data: st.tuples(st.just(data), st.lists(st.integers(0, len(data)), max_size=8)))
)
def test_where_the_bytes_are_cut_makes_no_difference(case: tuple[bytes, list[int]]) -> None:
    data, cuts = case
    assert read(data, *cuts) == read(data)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_no_bytes_raise(data: bytes, cuts: list[int]) -> None:
    assert read(data, *cuts) == read(data)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), max_size=8))
def test_every_line_that_is_not_blank_comes_out_with_its_number(texts: list[str]) -> None:
    rows = [b'{"first": 1}', *(text.encode() for text in texts)]
    assert [(line.number, line.raw) for line in read(b"\n".join(rows))] == [
        (number, row) for number, row in enumerate(rows, 1) if row.strip()
    ]


def test_an_object_on_several_lines_is_one_message() -> None:
    (line,) = read(json.dumps({"data": TWEETS}, indent=2).encode())
    assert json.loads(line.raw) == {"data": TWEETS}


def test_a_broken_first_line_costs_that_line_only() -> None:
    found = read(b'{"id": "0", "te\n' + LINES)
    assert found[0].raw == b'{"id": "0", "te'
    assert ids(found[1:]) == ["1", "2", "3", "4", "5"]


def test_a_live_stream_with_a_broken_first_line_is_not_held_back() -> None:
    form = Messages("f")
    assert len([*form.feed(b'{"id": "0", "te\n' + LINES)]) == 6


def test_a_gzip_stream_that_breaks_off_says_so_behind_what_was_read() -> None:
    long = LINES * 50
    found = read(gzip.compress(long, 0)[:6000])
    assert found[-1].fault == "the gzip stream breaks off"
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    assert len(found) > 100


def test_an_array_that_is_none_says_where() -> None:
    (line,) = read(json.dumps(TWEETS).encode()[:-5])
    assert line.fault is not None
    assert "JSON array" in line.fault
    assert line.number == 1


def test_what_is_too_long_is_cut_one_byte_above_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LINE_BYTES_MAX", 10)
    assert [line.raw for line in read(b"x" * 5000 + b"\n{}\n", 20, 40)] == [b"x" * 10, b"{}"]


def test_an_array_beyond_the_bound_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "DOCUMENT_BYTES_MAX", 10)
    (line,) = read(json.dumps(TWEETS).encode())
    assert "jq -c '.[]'" in str(line.fault)


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_what_cannot_be_opened_is_refused_before_anything_begins(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal, match="cannot be read"):
        check([str(tmp_path / name)])


def test_a_pipe_hands_out_each_line_when_it_comes_and_can_be_left(tmp_path: Path) -> None:
    """A writer that pauses holds up nobody, and one that never ends does not hold the reader."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    left = threading.Event()

    def write() -> None:
        with pipe.open("wb", buffering=0) as stream:
            stream.write(LINES[:60])
            left.wait(5)

    async def first() -> list[Line]:
        found: list[Line] = []
        lines = messages(str(pipe), lambda: bool(found))
        found.append(await anext(lines))
        return found + [line async for line in lines]

    writer = threading.Thread(target=write)
    writer.start()
    found = asyncio.run(asyncio.wait_for(first(), 3))
    left.set()
    writer.join()
    assert ids(found)[0] == "1"


def test_a_pipe_cannot_be_resumed_and_a_file_is_known_by_what_it_is_now(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = tmp_path / "f.jsonl"
    file.write_bytes(LINES)
    before = note_of(str(file))
    assert note_of("-") is None
    assert note_of(str(tmp_path / "pipe")) is None
    assert before == note_of(str(tmp_path / "." / "f.jsonl"))
    file.write_bytes(LINES + LINES)
    assert note_of(str(file)) != before


# -- into the log


class Bench:
    """A log, and as much of a worker as a feed needs."""

    def __init__(self, folder: Path) -> None:
        self.log = Log(folder, memory_bytes_max=1 << 20, kept_records_max=1000)
        for topic in names.TOPICS:
            self.log.create_topic(topic, 1)
        self.log.follow(Partition(names.TWEETS, 0), 0)
        self.worker = SimpleNamespace(
            app=SimpleNamespace(transport=SimpleNamespace(log=self.log)),
            settings=SimpleNamespace(partitions=1),
            stages={names.FETCH: SimpleNamespace(lanes=SimpleNamespace(waiting=0))},
            outlets={name: SimpleNamespace(raw=self.sender(name)) for name in names.TOPICS},
        )

    def sender(self, topic: str):
        async def send(key: str, value: bytes, _: int | None = None) -> None:
            assert partition_of(key.encode(), 1) == 0
            self.log.append(Partition(topic, 0), key.encode(), value, 0.0)

        return send

    def feed(self, *files: Path, stopping=lambda: False) -> Feed:
        feed = Feed(self.worker, tuple(map(str, files)))
        asyncio.run(feed.run(stopping))
        self.log.flush()
        return feed

    def fed(self, topic: str = names.TWEETS) -> list[tuple[str, bytes]]:
        records = self.log.read(Partition(topic, 0), 0, records_max=1000, bytes_max=1 << 20)
        return [(record.key.decode(), record.value) for record in records]


@pytest.fixture
def bench(tmp_path: Path):
    bench = Bench(tmp_path / "log")
    yield bench
    bench.log.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.jsonl"
    path.write_bytes(LINES)
    return path


def test_a_message_says_where_it_stood(bench: Bench, file: Path) -> None:
    bench.feed(file)
    assert bench.fed()[1] == (f"line:{file}:2", LINES.splitlines()[1])


def test_a_feed_that_was_stopped_goes_on_with_the_next_line(bench: Bench, file: Path) -> None:
    looks = iter([False] * 3)
    first = bench.feed(file, stopping=lambda: next(looks, True))
    assert not first.has_fed_all
    assert 0 < first.fed < 5
    second = bench.feed(file)
    assert second.resumed == first.fed
    assert second.has_fed_all
    assert [key.rpartition(":")[2] for key, _ in bench.fed()] == ["1", "2", "3", "4", "5"]


def test_what_was_forgotten_is_fed_again(bench: Bench, file: Path) -> None:
    bench.feed(file).forget()
    assert bench.feed(file).fed == 5


def test_a_file_named_twice_is_fed_once(bench: Bench, file: Path) -> None:
    assert bench.feed(file, file).fed == 5


def test_a_file_that_went_missing_is_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="missing"):
        bench.feed(tmp_path / "missing.jsonl")


def test_a_torn_file_is_fed_as_far_as_it_goes_and_its_end_is_a_dead_letter(bench: Bench, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(gzip.compress(LINES, 0)[:100])
    feed = bench.feed(torn)
    assert feed.has_fed_all
    assert [key for key, _ in bench.fed()] == [f"line:{torn}:{number}" for number in range(1, feed.fed + 1)]
    ((_, letter),) = bench.fed(names.DEAD_LETTERS)
    assert json.loads(letter)["source"] == f"{torn}:{feed.fed + 1}"
    assert "breaks off" in json.loads(letter)["reason"]
