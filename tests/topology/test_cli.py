"""The `spiderduck` command as a person and a script meet it: what it prints, how it ends, how it goes on."""

import contextlib
import gzip
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.webs import Answer, SavedWeb
from topology.cli import main
from topology.commands.show import Rate, display, every, unreadable_lines
from topology.demo import sites
from topology.demo import web as demo_web
from topology.embedded_log import Log
from topology.run import Progress, Unread

ROOT = Path(__file__).resolve().parents[2]
DEMO = str(files("topology.demo") / "tweets.jsonl")
COMMANDS = ("demo", "run", "get", "content", "tweet", "completed", "worker", "produce", "topology", "settings")


def spiderduck(*args: object, **more: Any) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(arg) for arg in args], prog_name="spiderduck", **more)


def begun(*args: object, **more: Any) -> "subprocess.Popen[bytes]":
    """Start the command as a process."""
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "topology.cli", *map(str, args)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


def tweets(count: int, name: str) -> str:
    """That many tweets, each with a URL of its own, at ten domains with this name in theirs."""
    return "".join(json.dumps({"id": str(n), "urls": [f"http://{name}{n % 10}.test/{n}"]}) + "\n" for n in range(count))


def visits(web: SavedWeb, name: str) -> int:
    """How many pages of these domains were asked for."""
    return sum(asked.host.startswith(name) and asked.target != "/robots.txt" for asked in web.requests)


def until(condition: Any, seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.01)


def jsons(text: str | bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def web() -> Iterator[SavedWeb]:
    with SavedWeb() as web:
        yield web


def toward(web: SavedWeb, data: Path, rate: float = 1000) -> list[object]:
    """Options of a run in `data` against the test web."""
    return ["--data", data, "--rate", rate, "--allow-net", "127.0.0.0/8", "--connect-to", f"127.0.0.1:{web.port}"]


# -- one run of the demonstration, and everything that can be read after it


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A data directory, and the result of the run that made it; two of its inputs are unreadable."""
    folder = tmp_path_factory.mktemp("crawl")
    bad = folder / "bad.jsonl"
    bad.write_text('{"id": "1", "text": "fine"}\nnot json\n\n{"no": "tweet"}\n')
    with demo_web.serve() as (host, port):
        result = spiderduck(
            *("run", DEMO, bad, "--data", folder / "data", "--json", "--rate", 100),
            *("--allow-net", "127.0.0.0/8", "--connect-to", f"{host}:{port}"),
        )
    return folder / "data", result


def test_json_is_one_object_and_nothing_else_is_on_standard_output(crawl: tuple[Path, Result]) -> None:
    data, result = crawl
    (summary,) = jsons(result.stdout)
    assert summary["tweets"] == 44
    assert summary["requests"] == summary["completed"] == sum(summary["outcomes"].values()) == 46
    assert set(summary["latency_ms"]) == {"p50", "p95", "p99"}
    assert set(summary["own_ms"]) == {"p50", "p99"}
    assert summary["urls_per_s"] > 1
    assert summary["finished"] is True
    assert summary["data"] == str(data)


def test_unreadable_input_is_named_and_is_status_3(crawl: tuple[Path, Result]) -> None:
    _, result = crawl
    assert result.exit_code == 3
    assert "bad.jsonl:2: " in result.stderr
    assert "bad.jsonl:4: " in result.stderr
    assert "completed --dead-letters --data" in result.stderr
    assert [Path(unread["source"]).name for unread in json.loads(result.stdout)["unreadable"]] == [
        "bad.jsonl:2",
        "bad.jsonl:4",
    ]


def test_every_tweet_and_url_is_announced_once(crawl: tuple[Path, Result]) -> None:
    result = spiderduck("completed", "--data", crawl[0])
    assert result.exit_code == 0
    counts = Counter((one["tweet_id"], one["url"]) for one in jsons(result.stdout))
    assert len(counts) == counts.total() == 46


def test_announcements_come_oldest_first(crawl: tuple[Path, Result]) -> None:
    times = [one["times"]["completed"] for one in jsons(spiderduck("completed", "--data", crawl[0]).stdout)]
    assert times == sorted(times)


def test_limit_ends_after_so_many(crawl: tuple[Path, Result]) -> None:
    assert len(jsons(spiderduck("completed", "--data", crawl[0], "--limit", 3).stdout)) == 3


def test_dead_letters_hold_what_was_unreadable_verbatim(crawl: tuple[Path, Result]) -> None:
    letters = jsons(spiderduck("completed", "--dead-letters", "--data", crawl[0]).stdout)
    assert sorted(letter["text"] for letter in letters) == ["not json", '{"no": "tweet"}']


def test_what_was_announced_can_be_got_under_every_name(crawl: tuple[Path, Result]) -> None:
    """Through the short link, the t.co form, another spelling, and the canonical URL."""
    names = ("http://s.example/heron", "https://t.co/Demo00Duck", "HTTP://News.example.com:80/2026/heron#top")
    result = spiderduck("get", "--data", crawl[0], *names, "http://news.example.com/2026/heron?utm_source=x")
    assert result.exit_code == 0
    answers = jsons(result.stdout)
    assert {answer["canonical_url"] for answer in answers} == {"http://news.example.com/2026/heron"}
    assert [answer["url"] for answer in answers[:3]] == list(names)
    assert answers[0]["title"].startswith("Night heron")
    assert answers[0]["shares"]["total"] == sum(answers[0]["shares"]["by_day"].values()) >= 5


def test_get_prints_the_fields_that_were_asked_for(crawl: tuple[Path, Result]) -> None:
    result = spiderduck("get", "--data", crawl[0], "http://s.example/heron", "--fields", "title,language")
    assert set(json.loads(result.stdout)) == {"url", "canonical_url", "title", "language"}


def test_an_unknown_url_says_so_and_is_status_1(crawl: tuple[Path, Result]) -> None:
    result = spiderduck("get", "--data", crawl[0], "http://s.example/heron", "http://nobody.example/")
    assert result.exit_code == 1
    assert jsons(result.stdout)[1] == {"url": "http://nobody.example/", "unknown": True}


def test_content_is_the_body_byte_for_byte(crawl: tuple[Path, Result]) -> None:
    body = sites.answer("museum.example", "/ukiyoe").body
    assert spiderduck("content", "http://museum.example/ukiyoe", "--data", crawl[0]).stdout_bytes == body
    whole = spiderduck("content", "--headers", "http://museum.example/ukiyoe", "--data", crawl[0]).stdout_bytes
    assert whole.startswith(b"HTTP/1.1 200\r\nContent-Type: text/html\r\n")
    assert whole.endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize(
    ("url", "why"), [("http://nobody.example/", "unknown"), ("http://news.example.com/drafts/canal", "robots.txt")]
)
def test_content_that_is_not_there_says_why(crawl: tuple[Path, Result], url: str, why: str) -> None:
    result = spiderduck("content", url, "--data", crawl[0])
    assert result.exit_code == 1
    assert why in result.stderr
    assert result.stdout_bytes == b""


def test_a_tweet_answers_with_its_announcements(crawl: tuple[Path, Result]) -> None:
    (answer,) = jsons(spiderduck("tweet", "2061372205953974273", "--data", crawl[0]).stdout)
    assert (answer["url"], answer["outcome"]) == ("http://news.example.com/2026/heron", "fetched")
    assert spiderduck("tweet", "0", "--data", crawl[0]).exit_code == 1


# -- inputs


def test_every_form_of_input_and_a_summary_a_person_can_read(web: SavedWeb, tmp_path: Path) -> None:
    rows = [{"id": str(n), "urls": [f"http://forms.test/{n}"]} for n in range(1, 8)]
    (tmp_path / "lines.jsonl").write_text(json.dumps(rows[0]) + "\n" + json.dumps(rows[1]) + "\n")
    (tmp_path / "array.json").write_text(json.dumps(rows[2:4], indent=2))
    (tmp_path / "page.json").write_text(json.dumps({"data": rows[4:6]}))
    (tmp_path / "lines.jsonl.gz").write_bytes(gzip.compress(json.dumps(rows[6]).encode()))
    result = spiderduck("run", *sorted(tmp_path.iterdir()), *toward(web, tmp_path / "data"))
    assert result.exit_code == 0, result.output
    said = dict(line.rstrip().split(maxsplit=1) for line in result.stdout.splitlines() if line[:1].isalpha())
    assert said["tweets"] == "7"
    assert said["requests"].startswith("7 ")
    assert {web.asked(f"http://forms.test/{n}") for n in range(1, 8)} == {1}


def test_a_pipe_is_crawled_while_it_is_open_and_ctrl_c_ends_the_wait(web: SavedWeb, tmp_path: Path) -> None:
    run = begun("run", "-", "--json", *toward(web, tmp_path / "data"), stdin=subprocess.PIPE)
    assert run.stdin is not None
    run.stdin.write(json.dumps({"id": "1", "urls": ["http://pipe.test/1"]}).encode() + b"\n")
    run.stdin.flush()
    until(lambda: web.asked("http://pipe.test/1"))
    run.send_signal(signal.SIGINT)
    assert run.wait(10) == 130  # while its standard input is open
    out, err = run.communicate()
    assert json.loads(out)["completed"] == 1
    assert b"has to be given again" in err


# -- going on


def announced(data: Path) -> Counter[tuple[str, str]]:
    return Counter((one["tweet_id"], one["url"]) for one in jsons(spiderduck("completed", "--data", data).stdout))


def interrupted(web: SavedWeb, tmp_path: Path, host: str, number: signal.Signals) -> "subprocess.Popen[bytes]":
    """A run of 60 tweets, at three requests a second to each of ten domains, that got this signal after 20."""
    (tmp_path / "tweets.jsonl").write_text(tweets(60, host))
    run = begun("run", tmp_path / "tweets.jsonl", *toward(web, tmp_path / "data", 3))
    until(lambda: visits(web, host) >= 20)
    run.send_signal(number)
    return run


def test_ctrl_c_finishes_what_is_in_flight_and_the_same_command_goes_on(web: SavedWeb, tmp_path: Path) -> None:
    run = interrupted(web, tmp_path, "int", signal.SIGINT)
    _, err = run.communicate(timeout=10)
    assert run.returncode == 130
    assert b"the same command goes on where it stopped: " in err
    assert b"Traceback" not in err
    before = announced(tmp_path / "data")
    assert len(before) == visits(web, "int") < 60  # whatever was asked for has been announced
    result = spiderduck("run", tmp_path / "tweets.jsonl", "--json", *toward(web, tmp_path / "data"))
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary["requests"] == summary["completed"] == 60
    assert announced(tmp_path / "data").total() == len(announced(tmp_path / "data")) == 60


def test_after_a_kill_the_same_command_loses_nothing(web: SavedWeb, tmp_path: Path) -> None:
    run = interrupted(web, tmp_path, "kill", signal.SIGKILL)
    run.communicate(timeout=10)
    result = spiderduck("run", tmp_path / "tweets.jsonl", "--json", *toward(web, tmp_path / "data"))
    assert result.exit_code == 0
    assert json.loads(result.stdout)["completed"] == len(announced(tmp_path / "data")) == 60


def test_a_second_ctrl_c_stops_at_once(web: SavedWeb, tmp_path: Path) -> None:
    slow = web.say("http://slow.test/1", Answer(delay_s=8.0))
    (tmp_path / "f.jsonl").write_text(json.dumps({"id": "1", "urls": [slow]}))
    run = begun("run", tmp_path / "f.jsonl", *toward(web, tmp_path / "data"))
    until(lambda: web.asked(slow))
    run.send_signal(signal.SIGINT)
    assert run.stderr is not None
    while b"finishing" not in run.stderr.readline():
        pass
    start = time.monotonic()
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=5)
    assert time.monotonic() - start < 2
    assert run.returncode == 130
    assert b"stopped at once" in err


def test_sigterm_ends_like_ctrl_c(web: SavedWeb, tmp_path: Path) -> None:
    run = interrupted(web, tmp_path, "term", signal.SIGTERM)
    _, err = run.communicate(timeout=10)
    assert run.returncode == 130
    assert b"goes on where it stopped" in err


def test_a_finished_run_given_again_reads_its_input_again(web: SavedWeb, tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text(tweets(3, "again"))
    for outcome in ("fetched", "cached"):
        result = spiderduck("run", tmp_path / "f.jsonl", "--json", *toward(web, tmp_path / "data"))
        assert json.loads(result.stdout)["outcomes"] == {outcome: 3}


def test_follow_waits_for_the_log_sees_a_run_live_and_ends_at_a_signal(web: SavedWeb, tmp_path: Path) -> None:
    follower = begun("completed", "--follow", "--data", tmp_path / "data")
    (tmp_path / "f.jsonl").write_text(tweets(5, "follow"))
    assert spiderduck("run", tmp_path / "f.jsonl", *toward(web, tmp_path / "data")).exit_code == 0
    assert follower.stdout is not None
    seen = [json.loads(follower.stdout.readline())["tweet_id"] for _ in range(5)]
    (tmp_path / "g.jsonl").write_text(json.dumps({"id": "next", "urls": ["http://follow.test/next"]}))
    assert spiderduck("run", tmp_path / "g.jsonl", *toward(web, tmp_path / "data")).exit_code == 0
    seen.append(json.loads(follower.stdout.readline())["tweet_id"])
    follower.send_signal(signal.SIGINT)
    out, err = follower.communicate(timeout=5)
    assert (follower.returncode, out, err) == (0, b"", b"")
    assert sorted(seen) == ["0", "1", "2", "3", "4", "next"]


def test_a_reader_that_goes_away_is_no_error(crawl: tuple[Path, Result]) -> None:
    run = begun("completed", "--data", crawl[0])
    assert run.stdout is not None
    run.stdout.close()
    with run:
        assert run.stderr is not None
        assert run.stderr.read() == b""
    assert run.returncode == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_a_worker_takes_what_is_produced_and_ends_at_a_signal(web: SavedWeb, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps(jsons(tweets(100, "worker")), indent=2))
    worker = begun("worker", "--web-port", free_port(), *toward(web, tmp_path / "data"))
    result = spiderduck("produce", tmp_path / "f.json", "--data", tmp_path / "data", "--wait", 10)
    assert (result.exit_code, result.stdout) == (0, "100 accepted\n"), result.stderr
    until(lambda: visits(web, "worker") == 100)
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=10)
    assert worker.returncode == 0
    assert err.startswith(b"ready: http://127.0.0.1:")
    assert len(announced(tmp_path / "data")) == 100


# -- refusals


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "missing.jsonl"], "missing.jsonl cannot be read"),
        (["run", "/"], "it is a directory"),
        (["run", DEMO, "--rate", "fast"], "--rate: rate_per_s = 'fast' is impossible: it must be a number"),
        (["run", DEMO, "--rate", "0"], "between 0.001 and"),
        (["run", DEMO, "--allow-net", "here"], "--allow-net: "),
        (["run", DEMO, "--connect-to", "here"], "HOST:PORT"),
        (["run", DEMO, "--set", "nonsense=1"], "--set: there is no setting 'nonsense'"),
        (["run", DEMO, "--set", "nonsense"], "NAME=VALUE"),
        (["run", DEMO, "--config", "missing.toml"], "missing.toml cannot be read"),
        (["run", DEMO, "--set", "stages=fetch"], "a run needs every stage"),
        (["run", DEMO, "--set", "log_url=kafka://localhost"], "embedded:"),
        (["run"], "Missing argument"),
        (["fly"], "No such command"),
        (["get", "http://a.test/"], "there is no metadata in"),
        (["get", "http://a.test/", "--fields", "titel"], "--fields: there is no 'titel'"),
        (["content", "http://a.test/"], "there is no metadata in"),
        (["tweet", "1"], "there is no metadata in"),
        (["completed"], "there is no log in"),
        (["completed", "--from-now"], "add --follow"),
        (["produce", DEMO, "--wait", "0"], "no worker is running"),
        (["produce", DEMO, "--wait", "0", "--to", "ftp://x"], "it must be a URL such as"),
        (["produce", DEMO, "--wait", "0", "--to", "http://127.0.0.1:9"], "cannot be reached"),
    ],
)
def test_what_cannot_be_done_is_status_2_and_says_why(args: list[str], said: str, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        result = spiderduck(*args)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_data_directory_in_use_is_refused(web: SavedWeb, tmp_path: Path) -> None:
    log = Log(tmp_path / "log", memory_bytes_max=1, kept_records_max=1)
    result = spiderduck("run", DEMO, *toward(web, tmp_path))
    log.close()
    assert result.exit_code == 2
    assert "another process is using the data directory" in result.stderr


# -- the rest


def test_help_is_there_at_once() -> None:
    start = time.perf_counter()
    result = subprocess.run([sys.executable, "-m", "topology.cli", "--help"], cwd=ROOT, capture_output=True, check=True)
    assert time.perf_counter() - start < 1.0  # 0.1 s on an idle machine
    for command in COMMANDS:
        assert command in result.stdout.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    assert spiderduck(command, "--help").exit_code == 0


def test_version_and_settings_are_printed() -> None:
    assert spiderduck("--version").stdout.startswith("spiderduck ")
    assert "requests per second per registered domain" in spiderduck("settings").stdout


def test_the_topology_is_drawn() -> None:
    assert "url-requests" in spiderduck("topology").stdout
    assert "url-requests" in spiderduck("topology", "--mermaid").stdout


def test_the_demo_shows_itself_and_begins_afresh(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        result = spiderduck("demo", "--set", "rate_per_s=100")
        assert result.exit_code == 0
        assert "completed        46" in result.stdout
        commands = [line.split(" ", 6)[-1] for line in result.stdout.splitlines() if line.endswith("--data data/demo")]
        assert len(commands) == 3
        assert Path("data/demo/made-by-spiderduck-demo").exists()


def progress(elapsed_s: float, completed: int, *, fed_all: bool = False) -> Progress:
    return Progress(50, completed, {"fetched": completed}, fed_all, elapsed_s, 7, 2, [("slow.test", 7)])


def test_the_rate_is_that_of_the_last_few_seconds() -> None:
    rate = Rate()
    assert rate.after(progress(0.0, 0)) == 0
    for second in range(1, 11):
        rate.after(progress(second, second * 10))
    assert rate.after(progress(20.0, 200)) == pytest.approx(10, abs=0.1)
    assert rate.after(progress(30.0, 200)) == 0


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    lines: list[str] = []
    show = every(10, lines.append)
    for tenth in range(250):
        show(progress(tenth / 10, tenth))
    assert len(lines) == 2
    assert lines[0] == "100 of 109 URLs read so far, 10 URLs/s, fetched 100"


def test_the_display_names_the_slowest_domains() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(display(progress(2.0, 30, fed_all=True), 15))
    text = out.getvalue()
    assert "30 of 50 URLs 15 URLs/s" in text
    assert "waiting for their turn: 7 (slow.test 7); put off: 2" in text


def test_twenty_unreadable_inputs_are_named_and_the_rest_is_counted() -> None:
    lines = list(unreadable_lines([Unread(f"f:{n}", "bad") for n in range(30)], 30, "read them"))
    assert lines[0] == "unreadable: f:0: bad"
    assert lines[19:] == [
        "unreadable: f:19: bad",
        "unreadable: 10 more",
        "what could not be read is kept, verbatim: read them",
    ]
