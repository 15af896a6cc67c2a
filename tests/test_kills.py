"""Killed at any instruction, nothing is lost: the same command, killed twenty times, then left to finish."""

import collections
import gzip
import json
import os
import pathlib
import random
import signal
import subprocess
import sys

from tests.webs import Answer, SavedWeb, redirect

SEED = 20
KILLS = 20
HOSTS = 30
URLS_PER_HOST = 140
RATE_PER_S = 10.0
# Some die before they have begun, most in the middle; twenty lives together do not finish the work.
LIFE_S = (0.5, 3.6)
FINISH_S_MAX = 90.0
ROOT = pathlib.Path(__file__).resolve().parents[1]


def command(*words):
    return [sys.executable, "-m", "topology.cli", *map(str, words)]


def spiderduck(*words):
    """Run the command to its end and return what it printed."""
    done = subprocess.run(command(*words), cwd=ROOT, capture_output=True, timeout=FINISH_S_MAX, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def write_tweets(path, rng):
    """Tweets whose URLs are pages, short links, missing pages, and repeats of earlier ones."""
    urls = []
    for host in range(HOSTS):
        for number in range(URLS_PER_HOST):
            kind = rng.choices(["page", "short", "gone"], [8, 1, 1])[0]
            urls.append(f"http://{kind}{host}.kill.example{host}.com/{kind}/{number}")
    urls += rng.choices(urls, k=len(urls) // 10)
    rng.shuffle(urls)
    with gzip.open(path, "wt") as lines:
        for number, url in enumerate(urls):
            tweet = {"id": str(10_000 + number), "created_at": "2026-01-02T03:04:05.000Z", "urls": [url]}
            lines.write(json.dumps(tweet) + "\n")
    return {(str(10_000 + number), url) for number, url in enumerate(urls)}


def teach(web, pairs):
    """Short links lead to a page of their own host; missing pages are missing."""
    for _, url in pairs:
        if "/short/" in url:
            web.say(url, redirect(url.replace("/short/", "/page/") + "?from=short"))
        elif "/gone/" in url:
            web.say(url, Answer(404))


def live_and_die(words, life_s):
    """Start the command and kill it; return whether it was killed before its end."""
    process = subprocess.Popen(
        command(*words), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        process.wait(timeout=life_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def counts_of(completions):
    shares = collections.defaultdict(set)
    for event in completions:
        shares[event["canonical_url"] or event["url"]].add((event["tweet_id"], event["url"]))
    return shares


def test_nothing_is_lost_however_often_it_is_killed(tmp_path):
    rng = random.Random(SEED)
    tweets, data = tmp_path / "tweets.jsonl.gz", tmp_path / "data"
    pairs = write_tweets(tweets, rng)
    with SavedWeb() as web:
        teach(web, pairs)
        words = ("run", tweets, "--data", data, "--connect-to", f"127.0.0.1:{web.port}", "--rate", RATE_PER_S, "--json")
        kills = sum(live_and_die(words, rng.uniform(*LIFE_S)) for _ in range(KILLS))
        assert kills == KILLS, "the work was done before it had been killed often enough: give it more"
        summary = json.loads(spiderduck(*words))
        events = [json.loads(line) for line in spiderduck("completed", "--data", data).splitlines()]

        # Every (tweet, URL) has its url-completed, and nothing else has.
        assert {(event["tweet_id"], event["url"]) for event in events} == pairs
        assert summary["requests"] == len(pairs)

        # Share counts are exact: what was done twice is counted once.
        shares = counts_of(events)
        urls = sorted({event["url"] for event in rng.sample(events, 200)})
        for line in spiderduck("get", *urls, "--data", data).splitlines():
            record = json.loads(line)
            assert record["shares"]["total"] == len(shares[record["canonical_url"]])

        # Nobody was asked faster than its rate, restarts included.
        for host in range(HOSTS):
            asked = web.times(f"example{host}.com", robots=True)
            assert_paced(asked)

        # What was fetched is archived.
        fetched = [event for event in events if event["outcome"] == "fetched"]
        for event in rng.sample(fetched, 5):
            assert b"<title>" in spiderduck("content", event["url"], "--data", data)


def assert_paced(times):
    """No second holds more requests than the rate allows; one more for what the clocks of two processes differ."""
    for first in range(len(times)):
        within = sum(1 for at in times[first:] if at < times[first] + 1.0)
        assert within <= RATE_PER_S + 1, times[first : first + within]
