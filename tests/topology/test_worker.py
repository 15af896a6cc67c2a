"""The long-running worker: it says where it is, goes on where it was, and refuses what it cannot have."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

import topology.worker
from tests.serving import Client, serving, settings_for
from tests.webs import SavedWeb
from topology.errors import Refusal
from topology.worker import Crashed, announced, serve, url_of, whereabouts


@pytest.fixture
def web():
    with SavedWeb() as saved:
        yield saved


def test_what_was_known_is_answered_from_the_table_after_a_restart(tmp_path, web):
    url = web.redirect("http://short.test/1", "http://long.test/page")
    with serving(settings_for(tmp_path, web.port)) as client:
        assert client.share(url).status == 202
        before = client.known(url)
    with serving(settings_for(tmp_path, web.port)) as client:
        after = client.get("/urls", url=url).json
    assert after == before
    assert (after["source"], after["metadata"]["title"]) == ("table", "Page long.test/page")
    assert web.asked("http://long.test/page") == 1


def test_the_data_directory_says_who_serves_it_and_where(tmp_path, web):
    with serving(settings_for(tmp_path, web.port)) as client:
        assert json.loads((tmp_path / "worker.json").read_text()) == {"pid": os.getpid(), "url": client.url}
        assert whereabouts(tmp_path) == client.url
        assert Client(client.url).get("/health").json["status"] == "ok"
    assert not (tmp_path / "worker.json").exists()
    assert whereabouts(tmp_path) is None


def test_the_file_of_a_killed_worker_does_not_count(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "worker.json").write_text(json.dumps({"pid": gone.pid, "url": "http://127.0.0.1:1"}))
    assert whereabouts(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "url": ""}', '{"pid": 99999999999999999999, "url": ""}'])
def test_a_broken_file_does_not_count(tmp_path, text):
    (tmp_path / "worker.json").write_text(text)
    assert whereabouts(tmp_path) is None


def test_the_file_goes_also_when_serving_fails(tmp_path):
    with pytest.raises(ValueError, match="on purpose"), announced(tmp_path, "http://127.0.0.1:1"):
        raise ValueError("on purpose")
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_refused_before_anything_starts(tmp_path, web):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(Refusal, match=rf"127.0.0.1 port {port}.*--web-port"),
            serving(settings_for(tmp_path / "data", web.port, web_port=port)),
        ):
            pass
    assert not (tmp_path / "data").exists()


def test_an_address_that_is_not_ours_is_refused(tmp_path, web):
    with (
        pytest.raises(Refusal, match=r"192\.0\.2\.1 port \d+.*--web-host"),
        serving(settings_for(tmp_path / "data", web.port, web_host="192.0.2.1")),
    ):
        pass


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8080"), ("0.0.0.0", "http://127.0.0.1:8080"), ("::", "http://[::1]:8080")],  # noqa: S104
)
def test_a_worker_on_every_address_is_asked_on_the_loopback(tmp_path, host, url):
    assert url_of(settings_for(tmp_path, 1, web_host=host, web_port=8080)) == url


def test_faust_finds_an_app_that_describes_and_does_not_start(tmp_path, monkeypatch):
    monkeypatch.setenv("SPIDERDUCK_DATA", str(tmp_path / "none"))
    app = topology.worker.app
    assert {agent.fun.__doc__.partition("\n")[0] for agent in app.agents.values()} > {
        "Store each ending, then announce it."
    }
    assert all(table.help for table in app.tables.values())
    assert not (tmp_path / "none").exists()


def test_a_worker_whose_app_crashes_does_not_go_on_waiting(tmp_path, monkeypatch):
    class App:
        crash_reason = RuntimeError("the log is gone")

        async def wait(self, _):
            return SimpleNamespace(stopped=True)

    @asynccontextmanager
    async def crashing(*_, **__):
        yield SimpleNamespace(app=App())

    monkeypatch.setattr("topology.worker.running", crashing)
    with pytest.raises(Crashed, match="the log is gone"):
        asyncio.run(serve(settings_for(tmp_path, 1), stop=asyncio.Event(), ready=lambda _: None))
    assert whereabouts(tmp_path) is None


def test_the_module_has_no_other_names_up_its_sleeve():
    with pytest.raises(AttributeError, match="no attribute 'apple'"):
        topology.worker.apple  # noqa: B018


def test_importing_the_module_makes_no_app():
    code = "import topology.worker, sys; sys.exit('app' in vars(topology.worker))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
