"""The flow as text and as a Mermaid diagram, read off a worker that was built: it shows what is wired, not a wish.

Faust knows which agent reads which topic. What an agent's function closes over is its stage object, and the stage
object holds the outlets it sends to and the tables it owns. Agents that share one are one stage (decide and settle).
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, Final, TypeVar

from tables.store import Store
from topology import names
from topology.errors import Refusal
from topology.outlets import Outlet
from topology.settings import Settings
from topology.wiring import Stores, Worker, build

PUBLIC: Final = frozenset({names.TWEETS, names.URL_COMPLETED, names.DEAD_LETTERS, names.DOMAIN_COMMANDS})
"""Topics whose messages users write or read."""

_OURS: Final = ("agents.", "topology.", "tables.")
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Reader:
    """One agent: the topic it reads, and its sentence."""

    agent: str
    topic: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Stage:
    """Agents that share a stage object, where they send to, and the tables it owns. Named after the first agent."""

    name: str
    readers: tuple[Reader, ...]
    sends_to: tuple[str, ...]
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A worker's stages and topics, in the order a tweet meets them."""

    stages: tuple[Stage, ...]
    topics: tuple[str, ...]
    tables: Mapping[str, str]  # name -> sentence


class Absent:
    """Stands for a store in a worker that is only described; whoever uses it is told so."""

    def __getattr__(self, name: str) -> Any:
        raise _not_to_be_started()


def describing(settings: Settings) -> Worker:
    """Build a worker to look at: no store is opened, nothing is written, and it refuses to start."""
    absent: Any = Absent()
    stores = Stores(**{each.name: absent for each in fields(Stores)})
    worker = build(replace(settings, log_url="embedded:"), stores)
    for name, table in worker.app.tables.items():
        table.help = sentence_of(import_module(f"tables.{name}"))
    worker.app.on_first_start = _refuse_to_start
    return worker


async def _refuse_to_start() -> None:
    raise _not_to_be_started()


def _not_to_be_started() -> Refusal:
    return Refusal("this app describes a worker and has no stores: start one with `spiderduck worker`")


def describe(worker: Worker) -> Flow:
    """Read the flow off a worker that was built."""
    shared: dict[int, tuple[Any, list[Reader]]] = {}
    for name in names.AGENTS:
        agent = worker.app.agents.get(name)
        if agent is not None:
            stage = _stage_object(worker, agent.fun)
            reader = Reader(name, agent.channel.get_topic_name(), sentence_of(agent.fun))
            shared.setdefault(id(stage), (stage, []))[1].append(reader)
    stages = tuple(_stage(stage, tuple(readers)) for stage, readers in shared.values())
    return Flow(stages, names.TOPICS, {name: sentence_of(import_module(f"tables.{name}")) for name in names.TABLES})


def sentence_of(thing: Any) -> str:
    """Return the first sentence of something's docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _stage_object(worker: Worker, agent_function: Any) -> Any:
    closed_over = inspect.getclosurevars(agent_function).nonlocals.values()
    stages = {id(stage) for stage in worker.stages.values()}
    # The alarm of what is deferred is not among the worker's stages: it is known by its outlets.
    return next(thing for thing in closed_over if id(thing) in stages or any(_held(thing, Outlet)))


def _stage(stage: Any, readers: tuple[Reader, ...]) -> Stage:
    sent = {outlet.topic for outlet in _held(stage, Outlet)}
    if hasattr(stage, "_bury"):
        sent.add(names.DEAD_LETTERS)
    owned = {store.name for store in _held(stage, Store)}
    return Stage(
        readers[0].agent,
        readers,
        tuple(topic for topic in names.TOPICS if topic in sent),
        tuple(table for table in names.TABLES if table in owned),
    )


def _held(thing: Any, kind: type[Thing]) -> Iterator[Thing]:
    """Find what a stage object holds of a kind, in its attributes and in those of its own parts."""
    for value in getattr(thing, "__dict__", {}).values():
        if isinstance(value, kind):
            yield value
        elif type(value).__module__.startswith(_OURS) and not isinstance(value, (Absent, Settings)):
            yield from _held(value, kind)


# -- as text


def as_text(flow: Flow) -> str:
    """Write a flow as indented lines."""
    lines = [line for stage in flow.stages for line in _stage_lines(stage)]
    lines += ["tables", *(f"  {name}: {sentence}" for name, sentence in flow.tables.items())]
    lines += ["topics", *(f"  {topic}{' (public)' if topic in PUBLIC else ''}" for topic in flow.topics)]
    return "\n".join([*lines, f"Whatever a stage cannot handle for a fault of ours is in {names.DEAD_LETTERS} too."])


def _stage_lines(stage: Stage) -> Iterator[str]:
    owns = f", owns {' and '.join(stage.tables)}" if stage.tables else ""
    yield f"{stage.name}{owns}"
    for reader in stage.readers:
        yield f"  reads {reader.topic}: {reader.sentence}"
    for topic in stage.sends_to:
        yield f"  sends to {topic}"


# -- as Mermaid (https://mermaid.js.org/syntax/flowchart.html)


def as_mermaid(flow: Flow) -> str:
    """Write a flow as a Mermaid flowchart: stages are boxes, topics have double sides, tables are cylinders."""
    lines = ["flowchart LR"]
    lines += [f'  {_topic(topic)}[["{topic}"]]' for topic in flow.topics]
    lines += [f'  {_stage_id(stage.name)}["{stage.name}"]' for stage in flow.stages]
    for stage in flow.stages:
        lines += [f"  {_topic(reader.topic)} --> {_stage_id(stage.name)}" for reader in stage.readers]
        lines += [f"  {_stage_id(stage.name)} --> {_topic(topic)}" for topic in stage.sends_to]
        for table in stage.tables:
            lines += [f'  {_table(table)}[("{table}")]', f"  {_stage_id(stage.name)} -.- {_table(table)}"]
    lines += [
        "  classDef public stroke-width:3px",
        f"  class {','.join(_topic(t) for t in flow.topics if t in PUBLIC)} public",
    ]
    return "\n".join(lines)


def _topic(name: str) -> str:
    return f"topic_{name.replace('-', '_')}"


def _stage_id(name: str) -> str:
    return f"stage_{name}"


def _table(name: str) -> str:
    return f"table_{name}"
