"""The flow is read off what is wired, in a fixed order, and building it touches nothing."""

import asyncio
import re

import pytest

from topology import names
from topology.describe import PUBLIC, as_mermaid, as_text, describe, describing
from topology.errors import Refusal
from topology.settings import Settings


@pytest.fixture
def nowhere(tmp_path):
    return Settings.load(flags={"data": str(tmp_path / "none")}, environ={})


@pytest.fixture
def flow(nowhere):
    return describe(describing(nowhere))


def test_every_agent_is_in_the_flow_in_the_order_of_its_names(flow):
    agents = [reader.agent for stage in flow.stages for reader in stage.readers]
    assert sorted(agents, key=names.AGENTS.index) == agents
    assert set(agents) == set(names.AGENTS)


def test_the_edges_are_those_of_the_map(flow):
    assert {stage.name: set(stage.sends_to) for stage in flow.stages} == {
        "extract": {"url-requests", "completions", "dead-letters"},
        "decide": {"url-requests", "fetch-requests", "deferred", "documents", "completions"},
        "fetch": {"pages", "documents", "deferred"},
        "defer": {"url-requests", "fetch-requests"},
        "parse": {"documents", "url-requests"},
        "archive": set(),
        "complete": {"url-completed"},
    }


def test_every_table_has_one_owner(flow):
    assert [table for stage in flow.stages for table in stage.tables] == list(names.TABLES)


def test_every_agent_and_table_has_its_sentence(flow):
    sentences = [reader.sentence for stage in flow.stages for reader in stage.readers] + list(flow.tables.values())
    assert all(re.fullmatch(r".{10,}\.", sentence) for sentence in sentences), sentences


def test_only_what_runs_here_is_shown(tmp_path):
    settings = Settings.load(flags={"data": str(tmp_path), "stages": "fetch"}, environ={})
    assert [stage.name for stage in describe(describing(settings)).stages] == ["fetch", "defer"]


def test_building_it_touches_nothing_and_it_refuses_to_start(nowhere):
    worker = describing(nowhere)
    with pytest.raises(Refusal, match="spiderduck worker"):
        asyncio.run(worker.app.start())
    assert not nowhere.data.exists()


def test_the_text_names_every_topic_and_marks_the_public_ones(flow):
    text = as_text(flow)
    assert all(f"  {topic} (public)" in text if topic in PUBLIC else f"  {topic}\n" in text for topic in names.TOPICS)
    assert "  reads pages: Keep each page as it came." in text


def test_the_same_worker_is_drawn_the_same_way(nowhere):
    drawings = {as_text(describe(describing(nowhere))) + as_mermaid(describe(describing(nowhere))) for _ in range(2)}
    assert len(drawings) == 1


def test_mermaid_declares_every_node_it_connects(flow):
    first, *lines = as_mermaid(flow).splitlines()
    assert first == "flowchart LR"
    shape = re.compile(r'  (?:(topic_\w+)\[\["[\w-]+"\]\]|(stage_\w+)\["\w+"\]|(table_\w+)\[\("\w+"\)\])')
    edge = re.compile(r"  (\w+) (?:-->|-\.-) (\w+)")
    declared = {next(filter(None, found.groups())) for line in lines if (found := shape.fullmatch(line))}
    connected = {node for line in lines if (found := edge.fullmatch(line)) for node in found.groups()}
    rest = [line for line in lines if not shape.fullmatch(line) and not edge.fullmatch(line)]
    assert connected <= declared
    assert [line.split()[0] for line in rest] == ["classDef", "class"]
    assert set(rest[1].split()[1].split(",")) == {f"topic_{topic.replace('-', '_')}" for topic in PUBLIC}
