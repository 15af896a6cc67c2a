"""A retry comes back under the id of its fetch: it was taken for a replay of what was done, and never made."""

import asyncio

from agents.fetch import Fetcher
from agents.fetching.robots_desk import RobotsDesk
from tests.doubles import FakeClock, MemoryStore, Recorder, ScriptedWeb, event, reply, simulated
from topology.events import Events
from topology.records import FetchRequest
from topology.settings import Settings

URL = "http://a.test/"


def test_a_retry_is_made_and_a_replay_is_not():
    async def story():
        clock, events, settings = FakeClock(), Events(), Settings()
        web = ScriptedWeb(clock, {URL: [reply(503), reply(200)]})
        pages, deferred = Recorder(), Recorder()
        fetcher = Fetcher(
            settings,
            events,
            clock,
            web=web,
            robots=RobotsDesk(settings, events, clock, web=web, rows=MemoryStore()),
            domain_rows=MemoryStore(),
            to_pages=pages,
            to_documents=Recorder(),
            to_deferred=deferred,
        )
        dispatching = asyncio.create_task(fetcher.dispatch())
        first = FetchRequest(URL, "a.test", "f")
        for request in (first, first, lambda: deferred.last.fetch, lambda: deferred.last.fetch):
            acted = await fetcher.on_request(event(request() if callable(request) else request))
            if acted.then is not None:
                acted.then()
        assert web.urls.count(URL) == 2
        assert len(pages.sent) == 1
        dispatching.cancel()

    simulated(story())
