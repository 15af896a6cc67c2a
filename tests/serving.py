"""A worker that serves its web views while a test asks it over HTTP, as any client would."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from topology.settings import Settings
from topology.worker import serve

START_S_MAX = 30.0
LOOK_S = 0.02


def free_port() -> int:
    """Return a port nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings_for(data: Any, answering_port: int, **flags: Any) -> Settings:
    """Return the settings of a worker on `data` whose web is what answers on a loopback port."""
    web = {"connect_to": ("127.0.0.1", answering_port), "allow_net": "127.0.0.0/8", "images": False}
    own = {"data": str(data), "rate_per_s": 1000, "web_port": free_port()}
    return Settings.load(flags={**web, **own, **flags}, environ={})


@dataclass(frozen=True, slots=True)
class Said:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The answer, which has to be JSON."""
        assert self.headers["content-type"] == "application/json; charset=utf-8", self.headers
        return json.loads(self.body)


@dataclass(slots=True)
class Client:
    """Asks one worker, a new connection each time."""

    url: str

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Said:
        place = urlsplit(self.url)
        with contextlib.closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)) as link:
            link.request(method, path, body, dict(headers or {}))
            answer = link.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Said(answer.status, names, answer.read())

    def get(self, path: str, **query: str) -> Said:
        return self.ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, value: Any, kind: str = "application/json", **headers: str) -> Said:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.ask("POST", path, body, {"Content-Type": kind, **headers})

    def share(self, *urls: str, tweet_id: str = "1") -> Said:
        """Post a tweet with these URLs."""
        return self.post("/tweets", {"id": tweet_id, "text": "", "urls": urls})

    def known(self, url: str) -> Any:
        """Wait until a URL is known, and return what is."""
        return until(lambda: (said := self.get("/urls", url=url)).json["state"] == "known" and said.json)


def until(look: Callable[[], Any], wait_s_max: float = 20.0) -> Any:
    """Look until there is something to see."""
    give_up_s = time.monotonic() + wait_s_max
    while not (seen := look()):
        assert time.monotonic() < give_up_s, "it never came"
        time.sleep(LOOK_S)
    return seen


@dataclass(slots=True)
class _Service:
    settings: Settings
    urls: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    ready: threading.Event = field(default_factory=threading.Event)
    loop: asyncio.AbstractEventLoop | None = None
    stop: asyncio.Event | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the test's thread has to see it
            self.errors.append(error)
        self.ready.set()

    async def _serve(self) -> None:
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        await serve(self.settings, stop=self.stop, ready=self._is_ready)

    def _is_ready(self, url: str) -> None:
        self.urls.append(url)
        self.ready.set()


@contextmanager
def serving(settings: Settings) -> Iterator[Client]:
    """Run `serve` in a thread; whatever it raises is raised here."""
    service = _Service(settings)
    thread = threading.Thread(target=service.run, name="worker", daemon=True)
    thread.start()
    try:
        assert service.ready.wait(START_S_MAX)
        if service.urls:
            yield Client(service.urls[0])
    finally:
        if service.loop is not None and service.stop is not None and thread.is_alive():
            service.loop.call_soon_threadsafe(service.stop.set)
        thread.join(START_S_MAX)
    if service.errors:
        raise service.errors[0]
