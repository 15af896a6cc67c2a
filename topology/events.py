"""What is counted and timed, by name. One `Events` per app; /metrics, the progress bar and --json read it.

A name here is a promise to whoever made a dashboard of it: add, do not rename.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.registry import Collector

# Counters: (name, label) -> count. The label's meaning stands behind the name.
COUNTERS: Final = {
    "tweets_read": "form",  # ok, unreadable
    "shares": "how",  # (tweet, URL) accepted: ok, invalid
    "requests": "how",  # how decide answered: fetch, attached, known, crowded, follow
    "completed": "outcome",
    "updated": "what",  # records updated without an announcement: image, expired-image
    "fetches": "result",  # HTTP status class, or the trouble's name
    "retries": "why",
    "deferred": "why",  # politeness, retry, crowded
    "robots": "result",  # fetched, cached, unreachable
    "parsed": "result",  # ok, broken, killed
    "archived": "kind",  # response, revisit
    "swept": "table",
    "poisoned": "stage",  # messages a bug could not handle: they are in dead-letters
    "resent": "stage",  # messages handled again because the log refused what followed from them
}

# Durations in milliseconds, by stage.
STAGES_MS: Final = ("decide", "queue", "wait", "web", "parse", "settle", "store", "own", "total")

_GROWTH: Final = 1.05  # a bucket is 5 % wide: a percentile is that exact
_LOG_GROWTH: Final = math.log(_GROWTH)
_LEAST_MS: Final = 0.001  # what is shorter took no time
_NO_TIME: Final = math.floor(math.log(_LEAST_MS) / _LOG_GROWTH) - 1


@dataclass(slots=True)
class Durations:
    """A histogram of milliseconds with buckets 5 % wide: constant memory, any percentile."""

    buckets: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total_ms: float = 0.0

    def add(self, ms: float) -> None:
        """Count one duration."""
        self.count += 1
        self.total_ms += ms
        self.buckets[math.floor(math.log(ms) / _LOG_GROWTH) if ms >= _LEAST_MS else _NO_TIME] += 1

    def percentile(self, percent: float) -> float:
        """Return the duration that `percent` of all stay within, 0 when there are none."""
        left = math.ceil(self.count * percent / 100)
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                middle_ms = math.exp((bucket + 0.5) * _LOG_GROWTH)
                return 0.0 if bucket == _NO_TIME else round(middle_ms, 3 if middle_ms < 1 else 1)
        return 0.0


class Events:
    """Counters and durations of one app."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTERS}
        self.stages: dict[str, Durations] = {name: Durations() for name in STAGES_MS}
        self.gauges: dict[str, float] = {}

    def count(self, name: str, label: str, by: int = 1) -> None:
        """Count something that happened."""
        self.counts[name][label] += by

    def took(self, stage: str, ms: float) -> None:
        """Time one step of one URL."""
        self.stages[stage].add(ms)

    def percentiles(self) -> dict[str, dict[str, float]]:
        """Return {stage: {p50, p95, p99}} of the stages that did something, in milliseconds."""
        return {
            name: {f"p{percent}": durations.percentile(percent) for percent in (50, 95, 99)}
            for name, durations in self.stages.items()
            if durations.count
        }


class Exposition(Collector):
    """The counters as Prometheus reads them."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def collect(self) -> "list[CounterMetricFamily | SummaryMetricFamily | GaugeMetricFamily]":
        """Return one family per counter, per stage, per gauge."""
        families: list[CounterMetricFamily | SummaryMetricFamily | GaugeMetricFamily] = []
        for name, by_label in self._events.counts.items():
            counter = CounterMetricFamily(f"spiderduck_{name}", f"{name}, by {COUNTERS[name]}", labels=[COUNTERS[name]])
            for label, count in by_label.items():
                counter.add_metric([label], count)
            families.append(counter)
        stages = SummaryMetricFamily("spiderduck_stage_milliseconds", "time per URL and stage", labels=["stage"])
        for stage, durations in self._events.stages.items():
            stages.add_metric([stage], durations.count, durations.total_ms)
        families.append(stages)
        for name, value in self._events.gauges.items():
            families.append(GaugeMetricFamily(f"spiderduck_{name}", name.replace("_", " "), value=value))
        return families
