"""Accuracy on real pages, by the score that comes with them: at least what the best simple extractor reaches."""

import importlib.util
import pathlib
from types import ModuleType

import pytest

from agents.reading.taming import tamed
from tests.accuracy import pages, results

# field: (exact %, lenient %), rounded as score.py rounds.
BARS = {
    "title": (76, 90),
    "description": (82, 86),
    "image": (84, 84),
    "author": (70, 74),
    "date": (85, 87),
    "lang": (93, 93),
}


@pytest.fixture(scope="module")
def web(shared: pathlib.Path) -> pathlib.Path:
    return shared / "web"


@pytest.fixture(scope="module")
def score(web: pathlib.Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("shared_web_score", web / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def marks(web: pathlib.Path, score: ModuleType) -> dict[str, list[int]]:
    """The marks of each field: 2 exact, 1 lenient, 0 wrong or missing, as `score.main` gives them."""
    found = {row["id"]: row for row in results(web)}
    marks: dict[str, list[int]] = {field: [] for field in score.FIELDS}
    for page, _ in pages(web):
        for field, compare in score.FIELDS.items():
            want, got = page["expected"].get(field), found[page["id"]][field]
            if want:
                marks[field].append(compare(want, got) if got else score.WRONG)
    return marks


@pytest.mark.parametrize("field", BARS)
def test_a_field_is_read_at_least_as_well_as_its_bar(field: str, marks: dict[str, list[int]]) -> None:
    exact = 100 * marks[field].count(2) / len(marks[field])
    lenient = 100 * sum(mark >= 1 for mark in marks[field]) / len(marks[field])
    assert (round(exact), round(lenient)) >= BARS[field]
    assert round(lenient) >= BARS[field][1]


def test_no_real_page_is_cut_as_hostile(web: pathlib.Path) -> None:
    assert [page["id"] for page, body in pages(web) if tamed(body) != body] == []
