"""The URLs of a run: the same list for every side, as tweets for us and as lines for the others.

Hosts are drawn by a power law (Zipf), as shares on a social network are. What a URL is (page, short link,
missing, slow, forbidden by robots.txt) is written in its path (see `sites`), so the shares chosen here hold
exactly.
"""

import itertools
import json
import pathlib
import random
from dataclasses import dataclass
from datetime import UTC, datetime

SHORTENERS = 8
SLOW_MS = (200, 800)


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of the URL kinds, each 0..1; what remains are plain pages.

    `broken` pages answer 500 for ever: clients that wait before they try again then dominate a run's length,
    so the default has none.
    """

    short: float = 0.10
    gone: float = 0.01
    slow: float = 0.01
    private: float = 0.01
    broken: float = 0.0
    repeat: float = 0.0
    zipf: float = 1.0


def urls(count: int, hosts: int, seed: int, *, port: int, mix: Mix | None = None) -> list[str]:
    """Return `count` URLs over `hosts` sites, all carrying `port`; none twice unless `mix.repeat` says so."""
    mix = mix or Mix()
    rng = random.Random(f"workload {seed}")
    cumulative = list(itertools.accumulate(1 / rank**mix.zipf for rank in range(1, hosts + 1)))
    ranks = rng.choices(range(hosts), cum_weights=cumulative, k=count)
    made: list[str] = []
    for number, rank in enumerate(ranks):
        if made and rng.random() < mix.repeat:
            made.append(rng.choice(made))
        else:
            made.append(_url(rng, mix, rank, number, port))
    return made


def _url(rng: random.Random, mix: Mix, rank: int, number: int, port: int) -> str:
    kinds = ("short", "gone", "slow", "private", "broken", "a")
    shares = [mix.short, mix.gone, mix.slow, mix.private, mix.broken]
    kind = rng.choices(kinds, [*shares, 1 - sum(shares)])[0]
    host = f"http://h{rank}.bench:{port}"
    if kind == "slow":
        return f"{host}/slow/{rng.randint(*SLOW_MS)}/{number}"
    if kind != "short":
        return f"{host}/{kind}/{number}"
    # One short link in five goes through a second shortener, as t.co over bit.ly does.
    first, second = rng.sample(range(SHORTENERS), 2)
    code = f"{rank}.{number}" if rng.random() < 0.8 else f"{second}.{rank}.{number}"
    return f"http://s{first}.bench:{port}/{code}"


def tweet(number: int, url: str, created_s: float) -> bytes:
    """Return one small v2 tweet written at `created_s` (epoch), a line of JSON.

    The URL stands in the entities: `.bench` is no top-level domain (which keeps every name of the benchmark
    off the Internet), so the rules for finding URLs in text rightly pass over it.
    """
    ident = str((int(created_s * 1000) << 22) + number)
    created = datetime.fromtimestamp(created_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entity = {"start": 8, "end": 8 + len(url), "url": url, "expanded_url": url}
    fields = {"id": ident, "text": f"Reading {url}", "created_at": created, "entities": {"urls": [entity]}}
    return json.dumps(fields).encode() + b"\n"


def write(folder: pathlib.Path, listed: list[str], created_s: float) -> tuple[pathlib.Path, pathlib.Path]:
    """Write `tweets.jsonl` (one URL each, written at `created_s`) and `urls.txt` into `folder`; return their paths."""
    as_tweets, as_lines = folder / "tweets.jsonl", folder / "urls.txt"
    as_tweets.write_bytes(b"".join(tweet(number, url, created_s) for number, url in enumerate(listed)))
    as_lines.write_text("\n".join(listed) + "\n")
    return as_tweets, as_lines
