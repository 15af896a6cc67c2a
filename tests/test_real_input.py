"""The main job on real input: other people's tweets and pages, through the command a user gives."""

import json
import pathlib
import subprocess
import sys

import pytest

from agents.extracting.tweets import read_tweets
from tests.webs import SavedWeb

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUN_S_MAX = 120
# exact %, lenient %: what the best simple extractor reaches on these pages
BARS = {
    "title": (76, 90),
    "description": (82, 86),
    "image": (84, 84),
    "author": (54, 55),
    "date": (75, 77),
    "lang": (93, 93),
}


def spiderduck(*words, killed_after_s=None):
    """Run the command; with `killed_after_s`, kill it then (SIGKILL) and return nothing."""
    argv = [sys.executable, "-m", "topology.cli", *map(str, words)]
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, timeout=killed_after_s or RUN_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        assert killed_after_s is not None
        return None
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def completed(data):
    return [json.loads(line) for line in spiderduck("completed", "--data", data).splitlines()]


@pytest.fixture(scope="module")
def crawled(shared, tmp_path_factory):
    """Crawl all shared tweets, and all saved pages through short links; kill it once on the way."""
    folder = tmp_path_factory.mktemp("real")
    with SavedWeb(shared) as web:
        links = folder / "links.jsonl"
        links.write_text(
            "".join(json.dumps({"id": f"9{number}", "urls": [web.short(number)]}) + "\n" for number in range(web.saved))
        )
        files = (*sorted((shared / "tweets").glob("*.jsonl")), links)
        words = ("run", *files, "--data", folder / "data", "--connect-to", f"127.0.0.1:{web.port}", "--rate", 50)
        spiderduck(*words, "--json", killed_after_s=4)
        summary = json.loads(spiderduck(*words, "--json"))
    return files, folder / "data", summary


def test_every_url_of_every_tweet_is_announced(crawled):
    files, data, summary = crawled
    asked = {
        (tweet.id, shared_url.url)
        for file in files
        for line in file.read_bytes().splitlines()
        for tweet in read_tweets(line).tweets
        for shared_url in tweet.urls
    }
    events = completed(data)
    assert {(event["tweet_id"], event["url"]) for event in events} == asked
    assert len(asked) > 350
    assert summary["unreadable"] == []
    assert {event["outcome"] for event in events} <= {"fetched", "cached", "wall"}


def test_saved_pages_are_read_as_well_at_the_end_as_at_the_start(crawled, shared, tmp_path):
    """The bars hold for what is announced: nothing on the way loses or mixes fields."""
    _, data, _ = crawled
    manifest = json.loads((shared / "web" / "manifest.json").read_text())
    links = {f"9{number}": entry["id"] for number, entry in enumerate(manifest)}
    found = [row(links[e["tweet_id"]], e["metadata"]) for e in completed(data) if e["tweet_id"] in links]
    results = tmp_path / "results.jsonl"
    results.write_text("".join(json.dumps(each) + "\n" for each in found))
    reached = scored(shared / "web" / "score.py", results)
    assert {field: reached[field] for field, bar in BARS.items() if any(map(int.__lt__, reached[field], bar))} == {}


def row(page_id, metadata):
    found = metadata or {}
    names = {"date": "published", "lang": "language"} | {n: n for n in ("title", "description", "author")}
    image = found.get("image") or {}
    return {"id": page_id, "image": image.get("url")} | {field: found.get(name) for field, name in names.items()}


def scored(script, results):
    """Return {field: (exact %, lenient %)} as the shared score prints it."""
    table = subprocess.run([sys.executable, script, results], capture_output=True, check=True).stdout.decode()
    lines = [line.replace("%", "").split() for line in table.splitlines()[1:]]
    return {field: (int(exact), int(lenient)) for field, _, exact, lenient in lines}
