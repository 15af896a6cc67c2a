"""The HTTP client against a server made of sockets: what it sends, what it accepts, and what it never does."""

import asyncio
import gzip
import socket
import time
import zlib
from contextlib import asynccontextmanager
from ipaddress import ip_network

import pytest
import uvloop

from agents.clients import http_bodies
from agents.clients.http import Ask, Limits, Reply, Trouble, TroubleKind, Web
from agents.fetching.guard import Guard

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
LOOPBACK = Guard((ip_network("127.0.0.0/8"),))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=LOOPS)
def run(request):
    """Run a coroutine on each kind of event loop."""

    def run_on(coroutine):
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(asyncio.wait_for(coroutine, 20))

    return run_on


class Site:
    """A server that answers each request with the next script, the last one for ever; it notes what came in."""

    def __init__(self, *scripts):
        self.scripts = list(scripts) or [OK]
        self.connections = 0
        self.requests = []
        self.arrived_s = []
        self.writers = []
        self.port = 0

    async def serve(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        try:
            first = await reader.readexactly(1)
            if first == b"\x16":
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")  # a TLS handshake; other servers say so too
                return
            while True:
                head, first = first + await reader.readuntil(b"\r\n\r\n"), b""
                self.arrived_s.append(time.perf_counter())
                self.requests.append(head.decode("latin-1"))
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                if callable(script):
                    await script(writer)
                else:
                    writer.write(script)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*scripts, ssl=None):
    """A site on the loopback interface."""
    site = Site(*scripts)
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=ssl)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for writer in site.writers:
            writer.close()
        await asyncio.sleep(0)


def web_to(guard=LOOPBACK, **options):
    return Web(user_agent="SpiderDuck/1.0", guard=guard, **options)


async def ask(web, url, *, bytes_max=1_000_000, deadline_s=5.0, **options):
    return await web.get(Ask(url, bytes_max, deadline_s, **options))


async def ask_once(*scripts, path="/", guard=LOOPBACK, limits=None, **options):
    """The answer to one request of a site with these scripts."""
    async with serving(*scripts) as site, web_to(guard, limits=limits) as web:
        return await ask(web, f"http://127.0.0.1:{site.port}{path}", **options)


def response(body=b"", *headers, status=b"200 OK"):
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def closing(data):
    """A script: send this, then close."""

    async def script(writer):
        writer.write(data)
        await writer.drain()
        writer.close()

    return script


def test_a_reply_says_what_was_sent_and_what_came(run):
    async def story():
        script = b"HTTP/1.1 200 Fine by me\r\nX-B: 1\r\nx-a: \xe4\r\nX-B: 2\r\nContent-Length: 2\r\n\r\nok"
        async with serving(script) as site, web_to(clock=lambda: 12.5) as web:
            url = f"http://127.0.0.1:{site.port}/a%7eb/%2F?q=%C3%A4&x=~'#frag".replace("#frag", "")
            reply = await ask(web, url, headers=(("If-None-Match", '"x"'),))
            assert (reply.status, reply.reason, reply.body, reply.truncated) == (200, "Fine by me", b"ok", False)
            assert reply.headers == (("X-B", "1"), ("x-a", "ä"), ("X-B", "2"), ("Content-Length", "2"))
            assert (reply.address, reply.sent_s, reply.finished_s) == ("127.0.0.1", 12.5, 12.5)
            line, *headers = site.requests[0].removesuffix("\r\n\r\n").split("\r\n")
            assert line == "GET /a%7eb/%2F?q=%C3%A4&x=~' HTTP/1.1"
            assert tuple(tuple(h.split(": ", 1)) for h in headers) == reply.request_headers
            assert dict(reply.request_headers)["Host"] == f"127.0.0.1:{site.port}"
            assert dict(reply.request_headers)["User-Agent"] == "SpiderDuck/1.0"
            assert dict(reply.request_headers)["If-None-Match"] == '"x"'
            assert "gzip" in dict(reply.request_headers)["Accept-Encoding"]

    run(story())


def test_a_name_and_password_in_the_url_are_sent_as_browsers_send_them(run):
    async def story():
        async with serving() as site, web_to() as web:
            reply = await ask(web, f"http://user:pass@127.0.0.1:{site.port}/")
            assert dict(reply.request_headers)["Authorization"] == "Basic dXNlcjpwYXNz"
            assert "user" not in site.requests[0]

    run(story())


def test_redirects_are_not_followed_and_cookies_not_kept(run):
    async def story():
        script = response(b"", b"Location: /elsewhere", b"Set-Cookie: a=b", status=b"302 Found")
        async with serving(script) as site, web_to() as web:
            for _ in range(2):
                reply = await ask(web, f"http://127.0.0.1:{site.port}/")
                assert (reply.status, dict(reply.headers)["Location"]) == (302, "/elsewhere")
            assert len(site.requests) == 2
            assert site.connections == 1  # keep-alive
            assert not any("cookie" in request.lower() for request in site.requests)

    run(story())


def test_a_proxy_from_the_environment_is_ignored(run, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    assert run(ask_once()).status == 200


def test_early_hints_come_before_the_answer(run):
    assert run(ask_once(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)).body == b"ok"


PAGE = b"".join(b"<p>line %d of a page</p>\n" % i for i in range(4000))


def raw_deflate(data):
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


def coded(name, data):
    match name:
        case "gzip" | "x-gzip":
            return gzip.compress(data)
        case "deflate":
            return zlib.compress(data)
        case "raw deflate":
            return raw_deflate(data)
        case "br":
            return pytest.importorskip("brotli").compress(data, quality=4)
        case "zstd":
            return pytest.importorskip("backports.zstd").compress(data)


CODINGS = ["gzip", "x-gzip", "deflate", "raw deflate", "br", "zstd"]


@pytest.mark.parametrize("coding", CODINGS)
def test_a_coded_body_is_decoded_however_it_is_cut_on_the_wire(run, coding):
    body = coded(coding, PAGE)

    async def dribble(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: ")
        writer.write(coding.removeprefix("raw ").encode() + b"\r\n\r\n")
        for start, end in [(0, 1), (1, 2), (2, 11), (11, len(body))]:
            writer.write(b"%x\r\n%s\r\n" % (end - start, body[start:end]))
            await writer.drain()
            await asyncio.sleep(0.001)
        writer.write(b"0\r\n\r\n")

    reply = run(ask_once(dribble))
    assert reply.body == PAGE
    assert not reply.truncated


@pytest.mark.parametrize("coding", CODINGS)
def test_a_bomb_costs_its_cap_and_nothing_else(coding):
    bomb = coded(coding, b"\0" * 30_000_000)
    decoder = http_bodies.decoder_for([coding.removeprefix("raw ")])
    assert decoder.feed(bomb, 100_001) == b"\0" * 100_001


def test_a_bomb_is_cut_at_the_cap_and_its_connection_closed(run):
    async def story():
        bomb = response(gzip.compress(b"\0" * 30_000_000), b"Content-Encoding: gzip")
        async with serving(bomb) as site, web_to() as web:
            for _ in range(2):
                reply = await ask(web, f"http://127.0.0.1:{site.port}/", bytes_max=5000)
                assert (len(reply.body), reply.truncated) == (5000, True)

    run(story())


def test_coded_bytes_that_decode_to_nothing_end_too(run):
    empty_blocks = gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * 100_000

    async def story():
        return await ask_once(response(empty_blocks, b"Content-Encoding: gzip"), bytes_max=1000)

    reply = run(story())
    assert (reply.body, reply.truncated) == (b"", True)


@pytest.mark.parametrize(
    ("size", "truncated"), [(0, False), (999, False), (1000, False), (1001, True), (300_000, True)]
)
def test_a_body_is_truncated_when_there_is_more_than_its_cap(run, size, truncated):
    reply = run(ask_once(response(b"x" * size), bytes_max=1000))
    assert (len(reply.body), reply.truncated) == (min(size, 1000), truncated)


@pytest.mark.parametrize(
    ("body", "coding", "plain"),
    [
        (gzip.compress(b"one") + gzip.compress(b"two"), b"gzip", b"onetwo"),
        (gzip.compress(b"one") + b"trailing rubbish", b"gzip", b"one"),
        (gzip.compress(b"cut short" * 50)[:-8], b"gzip", b"cut short" * 50),
        (b"<html>not compressed at all", b"gzip", b"<html>not compressed at all"),
        (b"plain", b"utf-8", b"plain"),
        (b"plain", b"identity", b"plain"),
        (b"", b"gzip", b""),
        (gzip.compress(b"upper"), b"GZIP", b"upper"),
    ],
)
def test_what_browsers_forgive_is_forgiven(run, body, coding, plain):
    assert run(ask_once(response(body, b"Content-Encoding: " + coding))).body == plain


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xff" * 50, b"gzip"),
        (gzip.compress(gzip.compress(b"x")), b"gzip, gzip"),
        (b"\xff" * 40, b"zstd"),
        (b"\xff" * 40, b"br"),
        (b"\xff" * 40, b"compress"),
    ],
)
def test_a_body_that_is_not_coded_as_it_says_is_trouble(run, body, coding):
    answer = run(ask_once(response(body, b"Content-Encoding: " + coding)))
    assert (answer.kind, answer.transient, answer.address) == (TroubleKind.PROTOCOL, False, "127.0.0.1")


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (closing(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), TroubleKind.RESET),
        (closing(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), TroubleKind.RESET),
        (closing(b""), TroubleKind.RESET),
        (closing(b"HTTP/1.1 200 OK\r\nContent-"), TroubleKind.RESET),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", TroubleKind.PROTOCOL),
        (b"SSH-2.0-OpenSSH_9.6\r\n", TroubleKind.PROTOCOL),
        (b"<html>HTTP/0.9</html>\r\n\r\n", TroubleKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", TroubleKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n", TroubleKind.TOO_LARGE_HEADERS),
        (b"HTTP/1.1 200 OK\r\n" + b"X-Many: 1\r\n" * 5000 + b"\r\n", TroubleKind.TOO_LARGE_HEADERS),
        (b"HTTP/1.1 200 OK\r\n" + (b"X-A: " + b"x" * 10_000 + b"\r\n") * 9 + b"\r\n", TroubleKind.TOO_LARGE_HEADERS),
    ],
)
def test_a_broken_answer_has_a_name_and_a_sentence(run, script, kind):
    trouble = run(ask_once(script))
    assert isinstance(trouble, Trouble), trouble
    assert (trouble.kind, trouble.transient) == (kind, kind is TroubleKind.RESET)
    assert trouble.reason.endswith(".")
    assert trouble.address == "127.0.0.1"


def test_a_reset_in_the_middle_of_a_body_is_transient_trouble(run):
    async def reset(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        await asyncio.sleep(0.02)
        linger = b"\x01\0\0\0\0\0\0\0"
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    trouble = run(ask_once(reset))
    assert (trouble.kind, trouble.transient) == (TroubleKind.RESET, True)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"])
def test_a_dribbling_server_is_left_at_the_deadline(run, head):
    async def dribble(writer):
        writer.write(head)
        for _ in range(200):
            writer.write(b"X" if head.endswith(b"\r\n\r\n") else b"X-A: 1\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def story():
        began = time.perf_counter()
        trouble = await ask_once(dribble if head else lambda _: asyncio.sleep(2), deadline_s=0.2)
        assert time.perf_counter() - began < 1.0
        assert (trouble.kind, trouble.transient) == (TroubleKind.TIMEOUT, True)
        await asyncio.sleep(0)  # a cancellation left over would come up here

    run(story())


def test_nobody_listening_is_refused_and_transient(run):
    async def story():
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        async with web_to() as web:
            trouble = await ask(web, f"http://127.0.0.1:{port}/")
            assert (trouble.kind, trouble.transient) == (TroubleKind.REFUSED, True)
        async with web_to(connect_to=("127.0.0.1", port)) as web:
            for url in ("http://a.example/", "https://a.example/", "https://a.example/"):
                assert (await ask(web, url)).kind is TroubleKind.REFUSED

    run(story())


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http:///x", "nonsense", "http://127.0.0.1:99999/", "data:,x"])
def test_what_is_no_http_url_is_invalid(run, url):
    async def story():
        async with web_to() as web:
            assert (await ask(web, url)).kind is TroubleKind.INVALID

    run(story())


# -- names and addresses


class Names:
    """A scripted name system: the answers of each name in turn, the last one for ever; counts the questions."""

    def __init__(self, **answers):
        self.answers = {name.replace("_", "."): list(value) for name, value in answers.items()}
        self.asked = 0

    def __call__(self, name):
        self.asked += 1
        answers = self.answers[name]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer


def test_a_name_that_does_not_exist_is_remembered_and_final(run):
    async def story():
        names = Names(no_example=[socket.gaierror(socket.EAI_NONAME, "Name or service not known")])
        async with web_to(lookup=names) as web:
            for _ in range(3):
                trouble = await ask(web, "http://no.example/")
                assert (trouble.kind, trouble.transient) == (TroubleKind.DNS, False)
            assert names.asked == 1

    run(story())


def test_a_name_server_that_fails_is_transient(run):
    async def story():
        names = Names(no_example=[socket.gaierror(socket.EAI_AGAIN, "Temporary failure")])
        async with web_to(lookup=names) as web:
            for _ in range(2):
                trouble = await ask(web, "http://no.example/")
                assert (trouble.kind, trouble.transient) == (TroubleKind.DNS, True)
            assert names.asked == 2

    run(story())


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://a.localhost:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://inside.example:{port}/",
        "http://user:pass@127.0.0.1:{port}/",
        "https://127.0.0.1:{port}/",
        "https://inside.example:{port}/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
def test_nothing_inside_is_ever_connected_to(run, url):
    async def story():
        names = Names(inside_example=[["127.0.0.1", "::1", "10.0.0.1"]])
        async with serving() as site, web_to(Guard(), lookup=names) as web:
            trouble = await ask(web, url.format(port=site.port))
            assert (trouble.kind, trouble.transient) == (TroubleKind.UNSAFE, False)
            assert "not public" in trouble.reason
            await asyncio.sleep(0.02)
            assert site.connections == 0

    run(story())


def test_a_name_that_is_rebound_to_an_inside_address_is_refused_when_it_is(run):
    """DNS rebinding: the first answer is harmless, the next one is not."""

    async def story():
        names = Names(rebind_example=[["127.0.0.2"], ["127.0.0.1"]])
        guard = Guard((ip_network("127.0.0.2/32"),))
        async with serving() as site, web_to(guard, lookup=names, limits=Limits(names_ttl_s=0)) as web:
            first = await ask(web, f"http://rebind.example:{site.port}/")
            assert first.kind is TroubleKind.REFUSED  # allowed, but the site listens on 127.0.0.1 only
            second = await ask(web, f"http://rebind.example:{site.port}/")
            assert second.kind is TroubleKind.UNSAFE
            assert site.connections == 0

    run(story())


def test_of_several_addresses_only_the_public_ones_are_tried(run):
    async def story():
        names = Names(mixed_example=[["10.0.0.1", "169.254.169.254", "127.0.0.1"]])
        async with serving() as site, web_to(lookup=names) as web:
            reply = await ask(web, f"http://mixed.example:{site.port}/")
            assert (reply.status, reply.address) == (200, "127.0.0.1")

    run(story())


def test_the_address_really_connected_to_is_what_counts(run, monkeypatch):
    """Should a socket ever come from elsewhere, the request is still not written."""

    async def story():
        async with serving() as site, web_to(Guard()) as web:
            monkeypatch.setattr(web._session.connector, "_socket_factory", None)
            monkeypatch.setattr(web._guard, "host_refusal", lambda _: None)
            trouble = await ask(web, f"http://127.0.0.1:{site.port}/")
            assert trouble.kind is TroubleKind.UNSAFE
            await asyncio.sleep(0.02)
            assert site.requests == []

    run(story())


# -- connect_to


def test_with_connect_to_every_connection_goes_there_under_its_own_host(run):
    async def story():
        async with serving() as site, web_to(Guard(), connect_to=("127.0.0.1", site.port)) as web:
            urls = ["http://a.example/x?y=1", "http://b.example:8080/", "https://c.example/", "https://d.example:80/"]
            for url in [*urls, "http://8.8.8.8/"]:
                assert (await ask(web, url)).status == 200
            hosts = [dict(h.split(": ", 1) for h in r.split("\r\n")[1:-2])["Host"] for r in site.requests]
            assert hosts == ["a.example", "b.example:8080", "c.example", "d.example:80", "8.8.8.8"]
            assert site.requests[0].startswith("GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\n")
            assert site.connections == 2  # one of them asked for TLS

    run(story())


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/", "http://localhost/", "https://x.localhost/", "http://[::1]/"]
)
def test_with_connect_to_an_inside_address_in_the_url_is_still_unsafe(run, url):
    async def story():
        async with serving() as site, web_to(Guard(), connect_to=("127.0.0.1", site.port)) as web:
            assert (await ask(web, url)).kind is TroubleKind.UNSAFE
            assert site.connections == 0

    run(story())


def server_context(tmp_path):
    """TLS for a server that nobody has vouched for."""
    import ssl  # noqa: PLC0415 - only these tests need it

    x509 = pytest.importorskip("cryptography.x509")
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415

    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a.example")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    pem, raw = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = tmp_path / "both.pem"
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(pem)
    path.write_bytes(certificate + key.private_bytes(pem, raw, serialization.NoEncryption()))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    return context


def test_with_connect_to_tls_is_spoken_when_the_target_speaks_it(run, tmp_path):
    async def story():
        async with (
            serving(ssl=server_context(tmp_path)) as site,
            web_to(Guard(), connect_to=("127.0.0.1", site.port)) as web,
        ):
            for host in ("a.example", "b.example"):
                assert (await ask(web, f"https://{host}/")).status == 200
            assert site.requests[1].startswith("GET / HTTP/1.1\r\nHost: b.example\r\n")

    run(story())


def test_a_certificate_nobody_vouches_for_is_trouble_of_its_own_kind(run, tmp_path):
    async def story():
        names = Names(a_example=[["127.0.0.1"]])
        async with serving(ssl=server_context(tmp_path)) as site, web_to(lookup=names) as web:
            trouble = await ask(web, f"https://a.example:{site.port}/")
            assert (trouble.kind, trouble.transient) == (TroubleKind.TLS, False)
            assert "self-signed" in trouble.reason or "self signed" in trouble.reason
            plain = await ask(web, f"http://127.0.0.1:{site.port}/")
            assert plain.kind in {TroubleKind.RESET, TroubleKind.PROTOCOL}

    run(story())


# -- the gate


def test_the_gate_opens_after_the_connection_stands_and_right_before_the_request(run):
    async def story():
        async with serving() as site, web_to() as web:
            seen = []

            async def gate():
                await asyncio.sleep(0.05)
                seen.append((site.connections, len(site.requests)))

            reply = await ask(web, f"http://127.0.0.1:{site.port}/", before_send=gate)
            assert seen == [(1, 0)]
            assert reply.status == 200

    run(story())


def test_requests_are_spaced_on_the_wire_however_long_connecting_takes(run):
    async def story():
        interval_s, next_s = 0.04, 0.0

        def slow_names(name):
            time.sleep(0.02 * (int(name[1]) % 3))
            return ["127.0.0.1"]

        async def gate():
            nonlocal next_s
            slot_s = max(next_s, time.perf_counter())
            next_s = slot_s + interval_s
            await asyncio.sleep(slot_s - time.perf_counter())

        async with serving() as site, web_to(lookup=slow_names) as web:
            asks = (ask(web, f"http://h{i}.example:{site.port}/", before_send=gate) for i in range(8))
            assert all(reply.status == 200 for reply in await asyncio.gather(*asks))
            gaps = [b - a for a, b in zip(site.arrived_s, site.arrived_s[1:], strict=False)]
            assert min(gaps) > interval_s * 0.6  # the server shares our loop

    run(story())


def test_waiting_at_the_gate_does_not_count_against_the_deadline(run):
    async def story():
        async with serving() as site, web_to() as web:
            reply = await ask(
                web, f"http://127.0.0.1:{site.port}/", deadline_s=0.2, before_send=lambda: asyncio.sleep(0.4)
            )
            assert reply.status == 200

    run(story())


@pytest.mark.parametrize("error", [OSError("mine"), TimeoutError("mine"), ValueError("mine"), LookupError("mine")])
def test_what_the_gate_raises_comes_out_as_it_was_and_nothing_is_sent(run, error):
    async def story():
        async def gate():
            raise error

        async with serving() as site, web_to() as web:
            with pytest.raises(type(error), match="mine"):
                await ask(web, f"http://127.0.0.1:{site.port}/", before_send=gate)
            await asyncio.sleep(0.02)
            assert site.requests == []
            assert (await ask(web, f"http://127.0.0.1:{site.port}/")).status == 200

    run(story())


def test_a_pooled_connection_that_died_at_the_gate_is_replaced_and_the_gate_asked_again(run):
    async def story():
        async with serving() as site, web_to() as web:
            url, asked = f"http://127.0.0.1:{site.port}/", 0
            await ask(web, url)

            async def gate():
                nonlocal asked
                asked += 1
                if asked == 1:
                    site.writers[0].close()
                await asyncio.sleep(0.05)

            assert (await ask(web, url, before_send=gate)).status == 200
            assert (asked, len(site.requests), site.connections) == (2, 2, 2)

    run(story())


def test_an_answer_nobody_asked_for_is_not_taken_for_the_next_one(run):
    async def story():
        async with serving(OK, response(b"real")) as site, web_to() as web:
            url = f"http://127.0.0.1:{site.port}/"
            await ask(web, url)

            async def gate():
                if len(site.writers) == 1:
                    site.writers[0].write(response(b"poison"))
                await asyncio.sleep(0.05)

            assert (await ask(web, url, before_send=gate)).body == b"real"

    run(story())


def test_a_request_is_never_sent_twice_for_one_ask(run):
    """Left alone, aiohttp repeats a GET on a connection the server has just closed: two on one slot."""

    async def story():
        async with serving(OK, closing(b""), OK) as site, web_to() as web:
            url, asked = f"http://127.0.0.1:{site.port}/", 0

            async def gate():
                nonlocal asked
                asked += 1

            await ask(web, url)
            trouble = await ask(web, url, before_send=gate)
            assert (trouble.kind, trouble.transient, asked, len(site.requests)) == (TroubleKind.RESET, True, 1, 2)

    run(story())


def test_cancelling_goes_through_and_leaves_no_connection_in_use(run):
    async def story():
        async with serving(lambda _: asyncio.sleep(1)) as site, web_to(limits=Limits(connections_max=1)) as web:
            url = f"http://127.0.0.1:{site.port}/"
            task = asyncio.create_task(ask(web, url))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            site.scripts = [OK]
            assert (await ask(web, url)).status == 200

    run(story())


def test_idle_connections_are_bounded_and_the_longest_idle_goes_first(run):
    async def story():
        names = Names(**{f"h{i}_example": [["127.0.0.1"]] for i in range(6)})
        async with serving() as site, web_to(lookup=names, limits=Limits(idle_max=3)) as web:
            for i in range(6):
                await ask(web, f"http://h{i}.example:{site.port}/")
            await asyncio.sleep(0.05)
            still_open = [not writer.transport.is_closing() for writer in site.writers]
            assert still_open == [False, False, False, True, True, True]
            await ask(web, f"http://h5.example:{site.port}/")
            assert site.connections == 6

    run(story())


def test_a_web_that_is_not_open_is_a_mistake_and_says_so(run):
    async def story():
        with pytest.raises(RuntimeError, match="not open"):
            await ask(web_to(), "http://8.8.8.8/")

    run(story())


def test_a_reply_is_a_value(run):
    reply = run(ask_once())
    assert isinstance(reply, Reply)
    with pytest.raises(AttributeError):
        reply.status = 500
