"""The synthetic web is like the real one where it matters, and the same for everybody."""

import asyncio
import hashlib
import io
import pathlib
import re
import statistics
import sys
import zlib
from collections import Counter

import psutil
import pytest
from PIL import Image
from selectolax.lexbor import LexborHTMLParser

from tests.bench import workload
from tests.bench.bare import extract
from tests.bench.measure import run
from tests.bench.pages import PAGE_BYTES_MEAN, jpeg, png
from tests.bench.run import growth, paced
from tests.bench.sides import Job, ours_count
from tests.bench.sites import SyntheticWeb
from tests.bench.web import Connection, Log, header, read_log


@pytest.fixture(scope="module")
def web() -> SyntheticWeb:
    return SyntheticWeb(1)


def body_of(web: SyntheticWeb, host: str, target: str) -> bytes:
    return web.reply(host.encode(), target.encode()).body


def test_an_answer_depends_on_seed_host_and_path_alone(web: SyntheticWeb) -> None:
    other = SyntheticWeb(1)
    for target in ("/a/1", "/robots.txt", "/img/7.jpg", "/gone/1"):
        assert web.reply(b"h1.bench:80", target.encode()) == other.reply(b"h1.bench:80", target.encode())
    assert body_of(web, "h1.bench", "/a/1") != body_of(SyntheticWeb(2), "h1.bench", "/a/1")


def test_no_two_pages_have_one_digest(web: SyntheticWeb) -> None:
    digests = {
        hashlib.sha1(body_of(web, f"h{host}.bench", f"/a/{number}"), usedforsecurity=False).digest()
        for host in range(10)
        for number in range(100)
    }
    assert len(digests) == 1000


def test_pages_have_the_size_the_tags_and_the_compressibility_of_real_ones(web: SyntheticWeb) -> None:
    """65 saved pages of 40-140 kB: 680 tags per 83 kB (p10 413, p90 1008), zlib level 1 at 4.1 (3.2-5.1)."""
    pages = [body_of(web, f"h{number}.bench:8080", f"/a/{number}") for number in range(600)]
    size = statistics.mean(map(len, pages))
    tags = sum(len(re.findall(rb"<[a-zA-Z]", page)) for page in pages) / sum(map(len, pages)) * PAGE_BYTES_MEAN
    ratio = sum(map(len, pages)) / sum(len(zlib.compress(page, 1)) for page in pages)
    assert 0.9 < size / PAGE_BYTES_MEAN < 1.1
    assert 600 < tags < 800
    assert 3.5 < ratio < 4.5


def test_every_page_says_what_it_is(web: SyntheticWeb) -> None:
    page = body_of(web, "h5.bench:8080", "/a/77")
    found = extract(page)
    assert found["canonical"] == "http://h5.bench:8080/a/77"
    assert found["title"]
    assert found["title"] in (found["description"] or "")
    assert (found["image"] or "").startswith("http://h5.bench:8080/img/")
    heading = LexborHTMLParser(page).css_first("h1")
    assert heading is not None
    assert heading.text() == found["title"]


def test_short_links_lead_to_pages_and_some_through_a_second_shortener(web: SyntheticWeb) -> None:
    first = web.reply(b"s1.bench:80", b"/4.17.99")
    second = web.reply(b"s4.bench:80", b"/17.99")
    assert (first.status, second.status) == (302, 301)
    assert b"\r\nLocation: http://s4.bench:80/17.99\r\n" in first.head
    assert b"\r\nLocation: http://h17.bench:80/a/99\r\n" in second.head


def test_slow_missing_and_broken_pages_are_named_by_their_path(web: SyntheticWeb) -> None:
    host = b"h1.bench"
    assert web.reply(host, b"/slow/250/1").delay_s == 0.25
    assert web.reply(host, b"/slow/x/1").delay_s == 0.0
    assert [web.reply(host, path).status for path in (b"/gone/1", b"/broken/1", b"/")] == [404, 500, 404]


@pytest.mark.parametrize(("picture", "size"), [(png(1200, 630), (1200, 630)), (jpeg(1296, 729), (1296, 729))])
def test_pictures_tell_their_size(picture: bytes, size: tuple[int, int]) -> None:
    with Image.open(io.BytesIO(picture)) as opened:
        assert opened.size == size


def test_most_hosts_have_rules_and_some_have_none(web: SyntheticWeb) -> None:
    replies = [web.reply(b"h%d.bench" % number, b"/robots.txt") for number in range(200)]
    statuses = Counter(reply.status for reply in replies)
    assert statuses[200] > 150
    assert statuses[404] > 5
    assert all(b"Disallow: /private/" in reply.body for reply in replies if reply.status == 200)


def test_the_same_seed_gives_the_same_urls_and_the_shares_asked_for() -> None:
    mix = workload.Mix(short=0.2, gone=0.1, slow=0, private=0)
    listed = workload.urls(5000, 100, 7, port=8080, mix=mix)
    assert listed == workload.urls(5000, 100, 7, port=8080, mix=mix)
    assert len(set(listed)) == 5000
    assert 0.17 < sum("//s" in url for url in listed) / 5000 < 0.23
    assert 0.08 < sum("/gone/" in url for url in listed) / 5000 < 0.12
    hosts = Counter(url.split("/")[2] for url in listed if "//h" in url)
    assert hosts["h0.bench:8080"] > 5 * hosts["h20.bench:8080"] > 0


def test_repeats_are_the_same_url_again() -> None:
    listed = workload.urls(1000, 10, 1, port=1, mix=workload.Mix(repeat=0.5))
    assert 400 < len(set(listed)) < 600


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def test_requests_may_arrive_in_any_pieces_and_several_at_once(web: SyntheticWeb) -> None:
    sent = b"GET /gone/1 HTTP/1.1\r\nHost: h1.bench\r\n\r\n"
    sent += b"HEAD /gone/2 HTTP/1.1\r\nhost:h2.bench\r\nConnection: close\r\n\r\n"
    whole = replayed(web, [sent])
    assert whole.sent.count(b"HTTP/1.1 404 Not Found") == 2
    assert whole.closed
    for size in (1, 7, 50):
        assert replayed(web, [sent[at : at + size] for at in range(0, len(sent), size)]).sent == whole.sent


def replayed(web: SyntheticWeb, pieces: list[bytes]) -> Wire:
    wire = Wire()
    connection = Connection(web.reply, Log(io.BytesIO()))
    connection.connection_made(wire)
    for piece in pieces:
        connection.data_received(piece)
    return wire


def test_nonsense_closes_the_connection(web: SyntheticWeb) -> None:
    assert replayed(web, [b"nonsense\r\n\r\n"]).closed
    assert replayed(web, [b"x" * 70_000]).closed


def test_a_header_is_found_in_any_place() -> None:
    head = b"get / http/1.1\r\naccept: */*\r\nhost: a.bench"
    assert (header(head, b"host"), header(head, b"accept"), header(head, b"cookie")) == (b"a.bench", b"*/*", b"")


def test_the_log_reads_back(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as sink:
        log = Log(sink)
        log.add(1.5, b"h1.bench", b"/a/1", 200)
        log.add(2.25, b"h2.bench", b"/gone/2", 404)
        log.flush()
    assert [tuple(asked) for asked in read_log(path)] == [
        (1.5, "h1.bench", "/a/1", 200),
        (2.25, "h2.bench", "/gone/2", 404),
    ]


def test_growth_compares_the_middle_of_a_run_with_its_end() -> None:
    flat = growth([(float(second), 100_000_000) for second in range(100)])
    rising = growth([(float(second), 100_000_000 + second * 1_000_000) for second in range(100)])
    assert flat["second_half_growth"] == 0
    assert 0.2 < rising["second_half_growth"] < 0.4


def test_a_paced_feed_writes_a_tweet_per_slot() -> None:
    out = io.BytesIO()
    paced(["http://h1.bench:80/a/1"] * 5, 1000.0)(out)
    assert len(out.getvalue().splitlines()) == 5


def test_our_summary_is_found_among_other_output(tmp_path: pathlib.Path) -> None:
    job = Job("-", tmp_path / "urls.txt", 1, tmp_path)
    output = tmp_path / "stdout"
    output.write_text('py-spy> Sampling\n{"completed": 3,\n "outcomes": {"fetched": 2, "gone": 1}}\npy-spy> Wrote\n')
    counted = ours_count(job, output)
    assert (counted.pages, counted.ended, counted.outcomes["gone"]) == (2, 3, 1)
    output.write_text("Traceback\n")
    assert ours_count(job, output).ended == 0


def test_a_command_is_measured_with_its_children_and_nothing_outlives_it(tmp_path: pathlib.Path) -> None:
    """The parent burns 0.2 s of CPU and leaves a sleeping child behind."""
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "end = time.process_time() + 0.2\n"
        "while time.process_time() < end: pass\n"
        "time.sleep(0.4)\n"
    )
    cost = run([sys.executable, "-c", code], tmp_path / "out", timeout_s=30)
    assert cost.returncode == 0
    assert cost.cpu_s >= 0.2
    assert cost.processes_max == 2
    assert cost.left_behind == 1
    assert not is_running(int((tmp_path / "out").read_text()))


def test_a_command_that_takes_too_long_is_ended(tmp_path: pathlib.Path) -> None:
    cost = run([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "out", timeout_s=0.3)
    assert cost.timed_out
    assert cost.returncode != 0
    assert cost.wall_s < 5


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
