"""What a benchmark says at the end: medians, ratios, a table, a JSON file."""

import json
import os
import pathlib
import platform
import statistics
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = pathlib.Path(__file__).with_name("results")
_MEDIANS = ("pages_per_s", "wall_pages_per_s", "cpu_ms_per_page", "rss_mb_max", "web_cpu_ms_per_page")


def medians(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the median of each figure per side, over the repeats."""
    sides = dict.fromkeys(row["side"] for row in rows)
    return {
        side: {key: statistics.median(row[key] for row in rows if row["side"] == side) for key in _MEDIANS}
        for side in sides
    }


def ratios(middle: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return how many times the pages per second of each peer ours reads; empty without ours."""
    ours = middle.get("ours")
    if not ours:
        return {}
    return {
        f"ours/{side}": round(ours["pages_per_s"] / figures["pages_per_s"], 2)
        for side, figures in middle.items()
        if side != "ours" and figures["pages_per_s"]
    }


def machine() -> dict[str, Any]:
    """Return what figures have to be read with: cores, processor kind, Python."""
    return {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}


def save(name: str, result: dict[str, Any]) -> pathlib.Path:
    """Write `results/<name>.json`; return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine()} | result, indent=1) + "\n")
    return path


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """Print a line per run, then the medians and ratios, then our latencies."""
    table = Table(title="The same URLs, one side after the other")
    for column in (
        "side",
        "pages",
        "ended",
        "pages/s",
        "with start-up",
        "CPU ms/page",
        "peak RSS MB",
        "web CPU ms/page",
    ):
        table.add_column(column, justify="left" if column == "side" else "right")
    for row in rows:
        cells = [f"{row[key]:,.1f}" for key in _MEDIANS]
        failed = "" if row["returncode"] == 0 else f" [red](exit {row['returncode']})[/red]"
        table.add_row(row["side"] + failed, str(row["pages"]), str(row["ended"]), *cells)
    middle = medians(rows)
    table.add_section()
    for side, figures in middle.items():
        table.add_row(f"median {side}", "", "", *(f"{figures[key]:,.1f}" for key in _MEDIANS))
    console.print(table)
    for name, ratio in ratios(middle).items():
        console.print(f"{name}: [bold]{ratio:.2f}[/bold]")
    for row in rows:
        if row.get("summary"):
            show_latency(row["summary"], console)
            break


def show_latency(summary: dict[str, Any], console: Console) -> None:
    """Print our percentiles: the whole, our own share, each stage."""
    table = Table(title="Our latency, ms")
    for column in ("of", "p50", "p95", "p99"):
        table.add_column(column, justify="left" if column == "of" else "right")
    spans = {"tweet to completion": summary.get("latency_ms"), "our own share": summary.get("own_ms")}
    for name, figures in (spans | summary.get("stages_ms", {})).items():
        if figures:
            table.add_row(name, *(_number(figures.get(key)) for key in ("p50", "p95", "p99")))
    console.print(table)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
