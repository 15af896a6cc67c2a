"""The web behind a process: the same answers as in the worker, the same gate, and a death that is only a trouble."""

import asyncio
import itertools
import os
import signal
import time

import pytest

from agents.clients.http import Ask, Limits, Reply, Trouble, TroubleKind, Web
from agents.clients.packer import pack
from agents.clients.web_pool import RemoteWeb
from agents.clients.web_process import Config
from agents.fetching.guard import Guard
from tests.webs import Answer, SavedWeb, image, page, redirect

AGENT = "SpiderDuck-test"


def told(story, *, allow=(), connect=True):
    """Run a story with a remote web whose connections go to a test web."""

    async def run(web):
        to = ("127.0.0.1", web.port) if connect else None
        async with RemoteWeb(Config(AGENT, allow, to, Limits())) as remote:
            return await story(remote, web)

    with SavedWeb() as web:
        return asyncio.run(run(web))


def ask(url, **changes):
    return Ask(url, **({"body_bytes_max": 1 << 20, "deadline_s": 5.0} | changes))


def test_it_answers_what_the_web_of_this_process_answers():
    urls = [f"http://{kind}.test/" for kind in ("page", "gone", "moved", "image")]

    async def story(remote, web):
        web.say(urls[0], page("Here", body="x" * 5000))
        web.say(urls[1], Answer(404, b"no"))
        web.say(urls[2], redirect("http://b.test/"))
        web.say(urls[3], image(40, 30))
        async with Web(user_agent=AGENT, guard=Guard(), connect_to=("127.0.0.1", web.port)) as here:
            for url in urls:
                one, other = await remote.get(ask(url)), await here.get(ask(url))
                for name in ("status", "reason", "body", "truncated", "address"):
                    assert getattr(one, name) == getattr(other, name)
                assert [h for h in one.headers if h[0] != "Date"] == [h for h in other.headers if h[0] != "Date"]
                assert one.request_headers == tuple((str(name), value) for name, value in other.request_headers)
                assert one.sent_s <= one.finished_s

    told(story)


def test_a_body_that_is_wanted_packed_comes_packed():
    async def story(remote, web):
        web.say("http://a.test/", page("Here"))
        plain = await remote.get(ask("http://a.test/"))
        packed = await remote.get(ask("http://a.test/", packed=True))
        assert packed.body == b""
        assert packed.packed == pack(plain.body)
        assert plain.packed is None

    told(story)


def test_nothing_is_sent_before_the_gate_opens():
    async def story(remote, web):
        opened = asyncio.Event()

        async def gate():
            await opened.wait()

        asking = asyncio.create_task(remote.get(ask("http://a.test/x", before_send=gate)))
        await asyncio.sleep(0.2)
        assert web.asked("http://a.test/x") == 0
        opened.set()
        assert isinstance(await asking, Reply)
        assert web.asked("http://a.test/x") == 1

    told(story)


def test_what_the_gate_raises_reaches_who_asked_and_nothing_is_sent():
    async def story(remote, web):
        async def gate():
            raise LookupError("no slot")

        with pytest.raises(LookupError, match="no slot"):
            await remote.get(ask("http://a.test/x", before_send=gate))
        assert isinstance(await remote.get(ask("http://a.test/y")), Reply)
        assert web.asked("http://a.test/x") == 0

    told(story)


def test_who_stops_waiting_costs_the_others_nothing():
    async def story(remote, web):
        web.say("http://slow.test/", Answer(200, b"late", delay_s=0.3))
        leaving, staying = (asyncio.create_task(remote.get(ask("http://slow.test/"))) for _ in range(2))
        await asyncio.sleep(0.05)
        leaving.cancel()
        assert (await staying).body == b"late"

    told(story)


def test_many_at_once_each_get_their_own_answer():
    async def story(remote, _):
        replies = await asyncio.gather(*(remote.get(ask(f"http://h{n}.test/p{n}")) for n in range(60)))
        assert all(f"h{n}.test/p{n}".encode() in reply.body for n, reply in enumerate(replies))

    told(story)


def test_the_guard_stands_in_the_process_too():
    async def story(remote, web):
        refused = await remote.get(ask(f"http://127.0.0.1:{web.port}/"))
        assert (refused.kind, refused.transient) == (TroubleKind.UNSAFE, False)
        assert not web.requests

    told(story, connect=False)


def test_a_network_that_is_allowed_is_allowed_in_the_process_too():
    async def story(remote, web):
        assert isinstance(await remote.get(ask(f"http://127.0.0.1:{web.port}/")), Reply)

    told(story, connect=False, allow=("127.0.0.0/8",))


def test_a_process_that_dies_is_a_transient_trouble_and_is_replaced():
    async def story(remote, web):
        web.say("http://slow.test/", Answer(200, b"never", delay_s=30))
        asking = asyncio.create_task(remote.get(ask("http://slow.test/", deadline_s=60.0)))
        await asyncio.sleep(0.2)
        [before] = remote.pids
        os.kill(before, signal.SIGKILL)
        got = await asyncio.wait_for(asking, 5)
        assert isinstance(got, Trouble)
        assert got.transient
        until_s = time.monotonic() + 10
        while not isinstance(again := await remote.get(ask("http://a.test/", deadline_s=2.0)), Reply):
            assert again.transient
            assert time.monotonic() < until_s
            await asyncio.sleep(0.1)
        assert remote.pids != [before]

    told(story)


def test_the_process_goes_when_it_is_let_go():
    async def story(remote, _):
        return remote.pids[0]

    pid = told(story)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_requests_of_one_pace_stand_apart_on_the_wire_even_when_their_words_come_together():
    async def story(remote, web):
        async def gate():
            await asyncio.sleep(0)

        urls = [f"http://a.test/{n}" for n in range(5)]
        await asyncio.gather(*(remote.get(ask(url, before_send=gate, pace=("a.test", 0.1))) for url in urls))
        times = web.times("a.test")
        assert all(later - earlier > 0.08 for earlier, later in itertools.pairwise(times))

    told(story)
