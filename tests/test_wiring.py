"""The wiring: every stage attached, every name pinned, partitions equal, two apps in one process."""

import pytest

from topology import names
from topology.describe import describing
from topology.errors import Refusal
from topology.settings import STAGES, Settings
from topology.wiring import ATTACH, Stores, build

# Renaming one of these orphans data: a topic's backlog, a table's state, a group's offsets.
PINNED = {
    "app": "spiderduck",
    "topics": [
        "tweets",
        "url-requests",
        "fetch-requests",
        "deferred",
        "pages",
        "documents",
        "completions",
        "url-completed",
        "dead-letters",
        "domain-commands",
    ],
    "tables": ["urls", "domains", "robots"],
    "agents": ["extract", "decide", "settle", "fetch", "defer", "parse", "archive", "complete"],
}


@pytest.fixture
def worker(tmp_path):
    return describing(Settings.load(flags={"data": str(tmp_path)}, environ={}))


def test_the_names_that_outlive_a_process_are_these(worker):
    assert worker.app.conf.id.startswith(PINNED["app"])
    assert list(names.TOPICS) == PINNED["topics"] == list(worker.topics)
    assert list(names.TABLES) == PINNED["tables"] == list(worker.tables)
    assert list(names.AGENTS) == PINNED["agents"] == [agent.partition("@")[0] for agent in worker.app.agents]


def test_every_stage_of_the_settings_can_be_attached():
    assert tuple(ATTACH) == STAGES


def test_every_agent_reads_the_topic_the_map_says(worker):
    reads = {name: list(agent.get_topic_names()) for name, agent in worker.app.agents.items()}
    assert reads == {
        "extract": ["tweets"],
        "decide": ["url-requests"],
        "settle": ["documents"],
        "fetch": ["fetch-requests"],
        "defer": ["deferred"],
        "parse": ["pages"],
        "archive": ["pages"],
        "complete": ["completions"],
    }


def test_topics_and_changelogs_have_the_same_number_of_partitions(tmp_path):
    settings = Settings.load(flags={"data": str(tmp_path), "partitions": 7}, environ={})
    worker = describing(settings)
    assert {topic.partitions for topic in worker.topics.values()} == {7}
    assert {table.changelog_topic.partitions for table in worker.app.tables.values()} == {7}


def test_two_apps_live_in_one_process(tmp_path):
    one, other = (
        describing(Settings.load(flags={"data": str(tmp_path / name)}, environ={})) for name in ("one", "other")
    )
    assert one.app is not other.app
    assert one.events is not other.events
    assert set(one.app.agents) == set(other.app.agents)


def test_a_worker_may_run_some_of_the_stages(tmp_path):
    worker = describing(Settings.load(flags={"data": str(tmp_path), "stages": "fetch"}, environ={}))
    assert set(worker.app.agents) == {"fetch", "defer"}


def test_a_stage_without_what_it_needs_does_not_start(tmp_path):
    settings = Settings.load(flags={"data": str(tmp_path), "stages": "fetch"}, environ={})
    with pytest.raises(ValueError, match="stage fetch needs the web"):
        build(settings, Stores())


def test_an_unknown_stage_stops_the_start():
    with pytest.raises(Refusal, match="stages.*some of extract"):
        Settings.load(flags={"stages": "fetch,brew"}, environ={})
