"""`GET /health`: may this worker be used, and what ails it; `GET /metrics`: its counters as Prometheus reads them.

Three questions, three answers. `/health` is 503 while the worker starts or its partitions are being rearranged, and
200 after. A store that is down makes the status `waiting`, still with 200: tweets are taken and nothing is lost, and a
restart would mend nothing. `/health?ready=1` is 503 then too: for who would rather send readers elsewhere.
`/health?live=1` is 200 whenever it is answered at all: what a liveness probe should ask, because a worker that
recovers a large table must not be killed for it.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web
from faust.types import AppT
from faust.web import View
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from topology import names
from topology.events import Exposition
from topology.views.http import flag, parameters, reply
from topology.views.owner import started
from topology.wiring import Worker

Backlogs = Callable[[], dict[str, int]]  # messages not acknowledged, by topic that a stage reads


class Health(msgspec.Struct, frozen=True):
    """How a worker stands. `stages`: ok, starting, or waiting; `backlog`: messages not acknowledged, by topic."""

    status: str
    stages: dict[str, str]
    backlog: dict[str, int]
    trouble: list[str]


def health(worker: Worker, backlogs: Backlogs) -> Health:
    """Say how a worker stands."""
    if not started(worker):
        starting = dict.fromkeys(worker.settings.stages, "starting")
        return Health(
            "starting", starting, {}, ["Its partitions are not assigned yet, or their tables are being read."]
        )
    trouble = {name: reason for name in worker.settings.stages if (reason := _trouble(worker, name))}
    stages = {name: "waiting" if name in trouble else "ok" for name in worker.settings.stages}
    sentences = [f"{name} waits for a store: {reason}" for name, reason in trouble.items()]
    return Health("waiting" if trouble else "ok", stages, backlogs(), sentences)


def status_of(health_: Health, *, ready: bool, live: bool) -> int:
    """Return the status code, by the question that is asked."""
    fine = live or health_.status == "ok" or (health_.status == "waiting" and not ready)
    return HTTPStatus.OK if fine else HTTPStatus.SERVICE_UNAVAILABLE


def _trouble(worker: Worker, stage: str) -> str | None:
    batches = getattr(worker.stages.get(stage), "batches", None)
    return None if batches is None else batches.trouble


class Gauges(Collector):
    """What is counted when it is asked for: backlog, lanes, tables."""

    def __init__(self, worker: Worker, backlogs: Backlogs) -> None:
        self._worker = worker
        self._backlogs = backlogs

    def collect(self) -> list[GaugeMetricFamily]:
        """Return one family per gauge; before the worker has started only whether it has."""
        up = started(self._worker)
        families = [
            GaugeMetricFamily("spiderduck_started", "1 when partitions are assigned and tables read", float(up))
        ]
        if up:
            found = self._backlogs()
            families.append(_gauge("backlog", "messages not acknowledged", "topic", found))
            families.append(_gauge("table_entries", "entries, about", "table", self._sizes()))
            families.append(_gauge("stage_waiting", "1 while a store is down", "stage", self._waiting()))
            families.extend(self._lanes())
        return families

    def _lanes(self) -> list[GaugeMetricFamily]:
        fetcher = self._worker.stages.get(names.FETCH)
        if fetcher is None:
            return []
        lanes = fetcher.lanes
        requests = {"waiting": lanes.waiting, "under_way": lanes.under_way}
        return [
            _gauge("lane_requests", "requests in the lanes of domains", "state", requests),
            GaugeMetricFamily("spiderduck_lanes", "domains that have a lane", float(len(lanes))),
        ]

    def _sizes(self) -> dict[str, int]:
        partitions = self._worker.settings.partitions
        here = self._worker.app.assignor.assigned_actives()
        return {
            name: sum(store.size(number) for number in range(partitions) if self._owns(name, number, here))
            for name, store in self._worker.tables.items()
        }

    def _owns(self, table: str, number: int, actives: Any) -> bool:
        topic = self._worker.app.tables[table].changelog_topic.get_topic_name()
        return any(tp.topic == topic and tp.partition == number for tp in actives)

    def _waiting(self) -> dict[str, int]:
        return {stage: int(_trouble(self._worker, stage) is not None) for stage in self._worker.settings.stages}


def _gauge(name: str, why: str, label: str, values: dict[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"spiderduck_{name}", f"{why}, by {label}", labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def registry_of(worker: Worker, backlogs: Backlogs) -> CollectorRegistry:
    """Return a registry of one worker's own: two workers in one process share nothing."""
    registry = CollectorRegistry()
    registry.register(Exposition(worker.events))
    registry.register(Gauges(worker, backlogs))
    ProcessCollector(registry=registry)  # resident memory, CPU seconds, open files
    return registry


def attach(worker: Worker, backlogs: Backlogs) -> None:
    """Register the views of the worker itself."""
    app: AppT = worker.app
    registry = registry_of(worker, backlogs)

    @app.page("/health", name="health")
    class HealthView(View):
        """How this worker stands."""

        async def get(self, request: web.Request) -> web.Response:
            """Answer probes and people."""
            query = parameters(request, "ready", "live")
            found = health(worker, backlogs)
            return reply(found, status_of(found, ready=flag(query, "ready"), live=flag(query, "live")))

    @app.page("/metrics", name="metrics")
    class MetricsView(View):
        """Counters and gauges of this worker."""

        async def get(self, request: web.Request) -> web.Response:
            """Answer Prometheus."""
            parameters(request)
            body = generate_latest(registry)
            return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
