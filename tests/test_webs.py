"""The test web keeps its own word: what the other tests rely on."""

import asyncio
import gzip
import io
import pathlib
import time
import urllib.error
import urllib.request
from http.client import HTTPResponse, IncompleteRead, RemoteDisconnected

import pytest
from PIL import Image

from tests.webs import Answer, Asked, SavedWeb, bomb, image, key, page, redirect


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def get(web: SavedWeb, url: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Ask the test web for `url`, redirects not followed."""
    host, target = key(url)
    request = urllib.request.Request(f"http://127.0.0.1:{web.port}{target}", headers={"Host": host, **headers})
    opener = urllib.request.build_opener(_Stay)
    try:
        with opener.open(request, timeout=5) as response:
            assert isinstance(response, HTTPResponse)
            return response.status, response.read(), dict(response.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), dict(error.headers)


def test_any_url_is_a_page_and_the_same_one_every_time() -> None:
    with SavedWeb() as web:
        first, again = get(web, "http://any.test/a?b=1"), get(web, "http://any.test/a?b=1")
        other = get(web, "http://other.test/a?b=1")
    assert first[0] == 200
    assert b"<title>Page any.test/a?b=1</title>" in first[1]
    assert first == again != other


def test_robots_txt_is_missing_until_a_test_gives_one() -> None:
    with SavedWeb() as web:
        web.robots("b.test", "User-agent: *\nDisallow: /x\n")
        assert get(web, "http://a.test/robots.txt")[0] == 404
        assert get(web, "http://b.test/robots.txt")[1].startswith(b"User-agent")


def test_answers_come_in_turn_and_the_last_one_stays() -> None:
    with SavedWeb() as web:
        url = web.say("http://a.test/", Answer(503), Answer(500), page("At last"))
        assert [get(web, url)[0] for _ in range(4)] == [503, 500, 200, 200]
        assert web.asked(url) == 4


def test_redirects_lead_on_and_may_loop() -> None:
    with SavedWeb() as web:
        web.redirect("http://a.test/1", "http://b.test/2", "http://a.test/1", status=302)
        status, _, headers = get(web, "http://a.test/1")
        back = get(web, "http://b.test/2")[2]
    assert (status, headers["Location"], back["Location"]) == (302, "http://b.test/2", "http://a.test/1")


def test_a_meta_refresh_names_its_target() -> None:
    with SavedWeb() as web:
        body = get(web, web.refresh("http://a.test/old", "http://a.test/new?x=1&y=2"))[1]
    assert b'content="0; url=http://a.test/new?x=1&amp;y=2"' in body


def test_an_answer_may_depend_on_the_request() -> None:
    def fresh(asked: Asked) -> Answer:
        return Answer(304, headers=()) if asked.headers.get("if-none-match") == '"v1"' else page("New")

    with SavedWeb() as web:
        url = web.say("http://a.test/", fresh)
        assert [get(web, url)[0], get(web, url, **{"If-None-Match": '"v1"'})[0]] == [200, 304]


def test_arrival_times_are_kept_per_domain_without_robots() -> None:
    with SavedWeb() as web:
        before = time.monotonic()
        for url in ("http://a.test/1", "http://www.a.test/2", "http://nota.test/3", "http://a.test/robots.txt"):
            get(web, url)
        assert len(web.times("a.test")) == 2
        assert len(web.times("a.test", robots=True)) == 3
        assert before <= web.times("a.test")[0] <= web.times("a.test")[1] <= time.monotonic()


def test_a_delay_passes_before_the_answer_and_others_do_not_wait_for_it() -> None:
    async def both(web: SavedWeb) -> tuple[float, float]:
        async def timed(url: str) -> float:
            start = time.monotonic()
            await asyncio.to_thread(get, web, url)
            return time.monotonic() - start

        return await asyncio.gather(timed("http://slow.test/"), timed("http://fast.test/"))

    with SavedWeb() as web:
        web.say("http://slow.test/", Answer(delay_s=0.3))
        slow, fast = asyncio.run(both(web))
    assert slow >= 0.3 > fast


def test_a_cut_connection_delivers_less_than_it_promised() -> None:
    with SavedWeb() as web:
        web.say("http://a.test/", Answer(body=b"x" * 1000, cut_after_bytes=100))
        web.say("http://b.test/", Answer(raw=b""))
        with pytest.raises(IncompleteRead) as cut:
            get(web, "http://a.test/")
        with pytest.raises(RemoteDisconnected):
            get(web, "http://b.test/")
    assert len(cut.value.partial) == 100


def test_a_slow_body_comes_in_pieces() -> None:
    with SavedWeb() as web:
        web.say("http://a.test/", Answer(body=b"abc", piece_bytes=1, pause_s=0.05))
        start = time.monotonic()
        assert get(web, "http://a.test/")[1] == b"abc"
    assert time.monotonic() - start >= 0.1


def test_a_bomb_is_small_until_it_is_opened() -> None:
    body = bomb(5_000_000).body
    assert len(body) < 10_000
    assert len(gzip.decompress(body)) == 5_000_000


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_pictures_have_the_size_they_were_asked_for(kind: str) -> None:
    with Image.open(io.BytesIO(image(1200, 630, kind).body)) as picture:
        assert (picture.size, picture.format) == ((1200, 630), kind.upper())


def test_saved_pages_answer_at_their_own_address_and_by_a_short_link(shared: pathlib.Path) -> None:
    with SavedWeb(shared) as web:
        status, _, headers = get(web, web.short(3))
        page_status, body, _ = get(web, headers["Location"])
    assert web.saved > 100
    assert (status, page_status) == (301, 200)
    assert len(body) > 10_000


def test_a_redirect_is_a_value_too() -> None:
    assert redirect("/x", 307).headers == (("Location", "/x"),)


def test_it_stops_while_a_client_is_still_being_served() -> None:
    async def hang(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n")
        await writer.drain()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()

    web = SavedWeb()
    with web:
        web.say("http://slow.test/", Answer(body=b"x" * 10, piece_bytes=1, pause_s=5))
        asyncio.run(hang(web.port))
        start = time.monotonic()
    assert time.monotonic() - start < 2
