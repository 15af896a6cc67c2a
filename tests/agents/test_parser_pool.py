"""The pool: a page that hangs, kills or bloats the parser costs that page and no other.

The processes run this file: `Wild` reads pages as the real one does, and does what a page's URL tells it to.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.clients import parser_process
from agents.clients.parser_pool import _AHEAD, ParserPool
from agents.clients.parser_process import Job, Result, answer_to
from topology.deflate import squeeze
from topology.errors import Refusal

WILD = "tests.wild_parser"
PAGE = b"<html><head><title>%s</title></head><body></body></html>"


def job(what, title=None):
    body = squeeze(PAGE % (title or what).encode()).data
    return Job(f"http://{what}.test/", 200, "text/html", body, 1 << 20)


def title_of(result):
    assert result.error is None, result.error
    return result.reading.metadata.title


def told(story, *, processes=1, parse_s_max=10.0, module=WILD, site_rules=None):
    async def run():
        async with ParserPool(
            processes=processes, parse_s_max=parse_s_max, site_rules=site_rules or {}, module=module
        ) as pool:
            return await story(pool)

    return asyncio.run(run())


def test_the_real_one_reads_pages_each_with_its_own_answer():
    async def story(pool):
        results = await asyncio.gather(*(pool.parse(job(f"p{n}")) for n in range(30)))
        assert [title_of(result) for result in results] == [f"p{n}" for n in range(30)]
        assert pool.killed == 0

    told(story, processes=2, module="agents.clients.parser_process")


@pytest.mark.parametrize(
    ("culprit", "why"),
    [
        ("hang", "it took longer than 0.3 s to parse"),
        ("die", "the parser died on it"),
        ("babble", "the parser died on it"),
        ("lie", "the parser died on it"),
    ],
)
def test_one_bad_page_is_broken_and_the_others_are_answered_by_a_new_process(culprit, why):
    async def story(pool):
        before = pool.pids
        jobs = [job(culprit if n == 4 else f"p{n}") for n in range(12)]
        results = await asyncio.wait_for(asyncio.gather(*map(pool.parse, jobs)), 20)
        assert [n for n, result in enumerate(results) if result.error is not None] == [4]
        assert results[4].error == why
        assert [title_of(result) for n, result in enumerate(results) if n != 4] == [
            f"p{n}" for n in range(12) if n != 4
        ]
        assert pool.killed == 1
        assert pool.pids != before

    told(story, parse_s_max=0.3 if culprit == "hang" else 10.0)


def test_many_bad_pages_are_each_broken_alone():
    async def story(pool):
        jobs = [job("die" if n % 3 == 0 else f"p{n}") for n in range(9)]
        results = await asyncio.wait_for(asyncio.gather(*map(pool.parse, jobs)), 20)
        assert [n for n, result in enumerate(results) if result.error is not None] == [0, 3, 6]

    told(story)


def test_a_page_that_wants_all_the_memory_is_broken_and_the_machine_is_not():
    async def story(pool):
        hog, fine = await asyncio.gather(pool.parse(job("hog")), pool.parse(job("fine")))
        assert hog.error is not None
        assert title_of(fine) == "fine"

    told(story)


def test_while_one_process_hangs_the_other_works():
    async def story(pool):
        hanging = asyncio.create_task(pool.parse(job("hang")))
        await asyncio.sleep(0.05)
        began_s = time.monotonic()

        async def timed(number):
            assert (await pool.parse(job(f"p{number}"))).error is None
            return time.monotonic() - began_s

        took = await asyncio.gather(*(timed(number) for number in range(20)))
        # Those sent ahead behind the hanging page wait with it; nobody else does.
        assert sum(took_s > 0.5 for took_s in took) < _AHEAD
        assert (await hanging).error == "it took longer than 1 s to parse"

    told(story, processes=2, parse_s_max=1.0)


def test_the_load_is_spread():
    async def story(pool):
        results = await asyncio.gather(*(pool.parse(job("whoami")) for _ in range(16)))
        pids = [int(result.error) for result in results]
        assert set(pids) == set(pool.pids)
        assert 4 <= pids.count(pool.pids[0]) <= 12

    told(story, processes=2)


def test_pages_are_read_in_the_order_they_came():
    async def story(pool):
        done = []

        async def one(number):
            await pool.parse(job(f"p{number}"))
            done.append(number)

        await asyncio.gather(*(one(number) for number in range(12)))
        assert done == list(range(12))

    told(story)


def test_who_stops_waiting_costs_the_others_nothing():
    async def story(pool):
        leaving = asyncio.create_task(pool.parse(job("p1")))
        staying = asyncio.create_task(pool.parse(job("p2")))
        await asyncio.sleep(0)
        leaving.cancel()
        assert title_of(await staying) == "p2"

    told(story)


def test_the_time_of_a_page_counts_from_its_turn_and_not_from_the_queue():
    async def story(pool):
        results = await asyncio.gather(*(pool.parse(job("slow")) for _ in range(6)))  # 0.1 s each
        assert all(result.error is None for result in results)

    told(story, parse_s_max=0.4)


def test_stopping_cancels_who_waits_and_leaves_no_process():
    async def story():
        pool = await ParserPool(processes=1, parse_s_max=60, site_rules={}, module=WILD).__aenter__()
        waiting = [asyncio.create_task(pool.parse(job("hang"))) for _ in range(8)]  # with a process, and in the queue
        await asyncio.sleep(0.05)
        pids = pool.pids
        await pool.stop()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        assert not any(alive(pid) for pid in pids)

    asyncio.run(story())


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"a.test": {"title": {"css": "h1:::"}}}, "'h1:::' is not a css selector"),
        ({"a.test": {"title": {"xpath": "//["}}}, "is not a xpath selector"),
        ({"a.test": {"title": "h1"}}, "the site rules cannot be used: Expected `object`"),
    ],
)
def test_wrong_site_rules_are_refused_with_what_is_wrong(rules, message):
    with pytest.raises(Refusal, match="site rules") as refusal:
        told(None, processes=2, site_rules=rules, module="agents.clients.parser_process")
    assert message in str(refusal.value)


def test_a_process_that_does_not_start_is_refused(capfd):
    with pytest.raises(Refusal, match="do not start: their error stands above"):
        told(None, module="tests.no_such_module")
    assert "no_such_module" in capfd.readouterr().err


def test_a_process_that_does_not_come_back_is_tried_again_and_no_page_blamed(monkeypatch):
    """A machine out of memory for a moment used to break every page that waited."""
    monkeypatch.setattr("agents.clients.parser_pool._RESPAWN_S", 0.05)

    async def story(pool):
        parser = pool._parsers[0]
        parser._module = "tests.no_such_module"
        dying = asyncio.create_task(pool.parse(job("die")))
        waiting = asyncio.create_task(pool.parse(job("p1")))
        assert (await dying).error == "the parser died on it"
        await asyncio.sleep(0.3)
        assert not waiting.done()
        parser._module = WILD
        assert title_of(await asyncio.wait_for(waiting, 10)) == "p1"
        assert pool.killed == 1

    told(story)


def test_an_answer_at_the_last_moment_is_not_the_next_pages_fault():
    """The clock and the answer may cross: then the page behind was broken for it."""

    async def story(pool):
        parser = pool._parsers[0]
        first = asyncio.create_task(pool.parse(job("slow")))
        second = asyncio.create_task(pool.parse(job("p2")))
        await asyncio.sleep(0.02)
        os.kill(parser.pid, signal.SIGSTOP)  # the answer below is there, and nothing else will come
        parser._too_slow = parser._jobs[0]
        parser._jobs.popleft()[1].set_result(Result())
        os.kill(parser.pid, signal.SIGKILL)
        assert (await first).error is None
        assert title_of(await asyncio.wait_for(second, 10)) == "p2"
        assert pool.killed == 0

    told(story)


def test_whatever_goes_wrong_with_a_body_is_a_value():
    assert "Error" in answer_to(Job("http://a.test/", 200, None, b"\xff\xff\xff", 100), None).error
    assert answer_to(Job("not a url", 200, "text/html", squeeze(b"<p>").data, 100), None).error is None
    assert parser_process.FRAME == 4


def test_the_modules_of_a_process_are_few():
    """What a process imports it costs in memory, once per process."""
    code = "import sys, agents.clients.parser_process; print('faust' in sys.modules, 'aiohttp' in sys.modules)"
    root = Path(__file__).resolve().parents[2]
    said = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert said.stdout == "False False\n"
