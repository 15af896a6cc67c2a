"""The demo's web answers for every tweet of the demo, and shows one of each thing that happens to a URL."""

import http.client
import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image
from selectolax.lexbor import LexborHTMLParser

from topology.demo import sites, web

TWEETS = [json.loads(line) for line in (files("topology.demo") / "tweets.jsonl").read_text("utf-8").splitlines()]


def single(line: dict[str, Any]) -> list[dict[str, Any]]:
    return line.get("data", [line])


def urls() -> Iterator[str]:
    """Every URL the tweets name: entities, else the words of the text that look like one."""
    for tweet in (tweet for line in TWEETS for tweet in single(line)):
        if "entities" in tweet:
            yield from (entity["expanded_url"] for entity in tweet["entities"]["urls"])
        else:
            yield from (word.strip("().") for word in tweet["text"].split() if "http://" in word)


def look(url: str) -> sites.Answer:
    parts = urlsplit(url)
    return sites.answer(parts.hostname or "", parts.path)


def followed(url: str) -> list[str]:
    """The addresses a redirect leads through, at most ten."""
    chain = [url]
    while len(chain) < 10 and (location := look(chain[-1]).location):
        chain.append(location)
    return chain


def get(port: int, host: str, path: str) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection(web.HOST, port, timeout=5)
    try:
        connection.request("GET", path, headers={"Host": f"{host}:{port}"})
        response = connection.getresponse()
        return response.status, response.read(), response.getheader("Location")
    finally:
        connection.close()


def test_the_tweets_come_in_every_shape_that_is_read() -> None:
    shapes = Counter(
        "page" if "data" in line else "v1.1" if "id_str" in line else "v2" if "entities" in line else "minimal"
        for line in TWEETS
    )
    assert len(TWEETS) == 40
    assert min(shapes[shape] for shape in ("v1.1", "v2", "minimal")) >= 10
    assert shapes["page"] == 1


def test_no_two_tweets_have_one_id() -> None:
    ids = [tweet["id"] for line in TWEETS for tweet in single(line)]
    assert len(set(ids)) == len(ids)


def test_entities_stand_where_they_say() -> None:
    for tweet in (tweet for line in TWEETS for tweet in single(line)):
        text = tweet.get("full_text") or tweet["text"]
        for entity in tweet.get("entities", {}).get("urls", []):
            start, end = entity.get("indices") or (entity["start"], entity["end"])
            assert text[start:end] == entity["url"]


def test_every_url_leads_to_a_site_of_the_demo() -> None:
    assert {urlsplit(url).hostname for start in urls() for url in followed(start)} <= sites.HOSTS


def test_urls_are_shared_more_than_once_so_that_coalescing_shows() -> None:
    counts = Counter(urls())
    assert sum(count > 1 for count in counts.values()) >= 8


def test_there_is_one_of_everything() -> None:
    shared = set(urls())
    chains = {url: followed(url) for url in shared}
    assert any(len(chain) == 10 for chain in chains.values()), "a loop"
    assert any(len(chain) == 3 and chain[-1] == "http://video.example/w/pulpo" for chain in chains.values()), "two hops"
    assert any(look(url).status == 404 for url in shared)
    assert any(look(url).delay_s > 1 for url in shared)
    assert any(b'http-equiv="refresh"' in look(url).body for url in shared)
    assert any("/drafts/" in url for url in shared)
    assert b"Disallow: /drafts/" in look("http://news.example.com/robots.txt").body
    assert any(look(url).content_type == "image/png" for url in shared)


def test_every_page_has_a_title_in_the_charset_it_travels_in() -> None:
    pages = [look(url) for url in set(urls()) if look(url).content_type.startswith("text/html") and look(url).body]
    for page in pages:
        charset = "shift_jis" if b"charset=Shift_JIS" in page.body else "utf-8"
        title = LexborHTMLParser(page.body.decode(charset)).css_first("title")
        assert title is not None
        assert title.text()


def test_the_japanese_page_is_no_utf_8() -> None:
    body = look("http://museum.example/ukiyoe").body
    with pytest.raises(UnicodeDecodeError):
        body.decode("utf-8")
    assert "木版画" in body.decode("shift_jis")


def test_the_pictures_of_the_pages_exist_and_have_a_size() -> None:
    for host, path, size in (
        ("news.example.com", "/img/heron.png", (1200, 630)),
        ("museum.example", "/img/rain.png", (900, 1350)),
    ):
        with Image.open(io.BytesIO(sites.answer(host, path).body)) as picture:
            picture.load()
            assert picture.size == size


def test_the_server_answers_by_host_and_is_gone_after() -> None:
    with web.serve() as (address, port):
        assert address == "127.0.0.1"
        assert get(port, "news.example.com", "/2026/heron?x=1")[0] == 200
        assert get(port, "s.example", "/Pulpo") == (301, b"", "http://l.example/q7")
        assert get(port, "s.example", "/pulpo")[0] == 404  # short links are case-sensitive
        assert get(port, "elsewhere.example", "/")[0] == 404
    with pytest.raises(ConnectionRefusedError):
        get(port, "news.example.com", "/")


def test_two_demos_do_not_meet() -> None:
    with web.serve() as (_, first), web.serve() as (_, second):
        assert first != second


def test_a_slow_page_holds_up_nobody_but_its_reader() -> None:
    with web.serve() as (_, port):
        slow = http.client.HTTPConnection(web.HOST, port, timeout=5)
        slow.request("GET", "/relatorio", headers={"Host": "slow.example"})
        start = time.monotonic()
        assert get(port, "news.example.com", "/2026/bakery")[0] == 200
        assert time.monotonic() - start < 1
        slow.close()


def test_head_has_no_body_and_nonsense_ends_the_connection() -> None:
    with web.serve() as (_, port):
        connection = http.client.HTTPConnection(web.HOST, port, timeout=5)
        connection.request("HEAD", "/2026/heron", headers={"Host": "news.example.com"})
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
        connection.sock.sendall(b"nonsense\r\n\r\n")
        assert connection.sock.recv(10) == b""
        connection.close()
