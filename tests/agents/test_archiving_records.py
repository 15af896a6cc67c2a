"""Laws of WARC records: valid, true, each a member of its own, and not corruptible by a site."""

import contextlib
import gzip
import hashlib
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from agents.archiving.reading import BadRecord, archived
from agents.archiving.records import (
    Original,
    payload_digest,
    request,
    response,
    revisit,
    warc_date,
    warcinfo,
)
from topology.deflate import squeeze
from topology.records import Http, Page, Placed, Visit

STARTED_MS = 1_795_286_700_123
VISIT = Visit(STARTED_MS - 5, STARTED_MS, STARTED_MS + 300, "93.184.216.34")
RECEIVED = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Server", "nginx"),
    ("Set-Cookie", "a=1"),
    ("Set-Cookie", "b=2"),
)


def sha1(body):
    return hashlib.sha1(body, usedforsecurity=False).digest()


def page(
    body=b"<title>Hi</title>", *, response_headers=RECEIVED, url="https://example.com/a?b=c", truncated=False, **rest
):
    squeezed = squeeze(body)
    return Page(
        url=url,
        domain="example.com",
        fetch_id="f1",
        kind="page",
        http=Http(rest.pop("status", 200), "text/html", len(body), truncated),
        visit=rest.pop("visit", VISIT),
        body=squeezed.data,
        body_crc32=squeezed.crc32,
        body_sha1=sha1(body),
        response_headers=response_headers,
        **{"reason_phrase": "OK", "request_headers": (("Host", "example.com"), ("User-Agent", "SpiderDuck")), **rest},
    )


def read(*members):
    """What warcio finds in a file of these members: (type, WARC headers, HTTP headers, body), digests checked."""
    records = []
    for record in ArchiveIterator(io.BytesIO(b"".join(members)), check_digests="raise"):
        body = record.raw_stream.read()
        records.append((record.rec_type, dict(record.rec_headers.headers), record.http_headers, body))
    return records


def test_a_response_record_says_everything_of_the_visit():
    [(kind, head, http, body)] = read(response(page()))
    assert kind == "response"
    assert body == b"<title>Hi</title>"
    assert head.pop("WARC-Record-ID").startswith("<urn:uuid:")
    assert int(head.pop("Content-Length")) > len(body)
    assert head == {
        "WARC-Type": "response",
        "WARC-Target-URI": "https://example.com/a?b=c",
        "WARC-Date": "2026-11-21T18:45:00.123Z",
        "WARC-IP-Address": "93.184.216.34",
        "WARC-Payload-Digest": payload_digest(sha1(body)),
        "Content-Type": "application/http;msgtype=response",
    }
    assert (http.protocol, http.statusline, tuple(http.headers)) == ("HTTP/1.1", "200 OK", RECEIVED)


def test_the_member_is_what_compressing_the_whole_record_would_give():
    """Headers, body and end, in one gzip stream whose CRC and length hold (Python's gzip checks both)."""
    record = gzip.decompress(response(page(b"body")))
    assert record.startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
    assert record.endswith(b"\r\n\r\nbody\r\n\r\n")


@given(st.binary(max_size=2000))
def test_any_body_comes_back_and_fits_its_digest(body):
    [(_, head, _, found)] = read(response(page(body)))
    assert found == body
    assert head["WARC-Payload-Digest"] == payload_digest(sha1(body))


def test_members_stand_one_after_another_and_each_alone():
    members = [warcinfo("3f/x.warc.gz", {}, STARTED_MS), response(page()), request(page()), response(page(b""))]
    kinds = ["warcinfo", "response", "request", "response"]
    assert [record[0] for record in read(*members)] == kinds
    assert [read(member)[0][0] for member in members] == kinds


def test_a_request_record_is_concurrent_to_its_response():
    [(_, answer, _, _), (kind, asked, http, _)] = read(response(page()), request(page()))
    assert kind == "request"
    assert asked["WARC-Concurrent-To"] == answer["WARC-Record-ID"] != asked["WARC-Record-ID"]
    assert (http.protocol, http.statusline) == ("GET", "/a?b=c HTTP/1.1")
    assert http.headers == [("Host", "example.com"), ("User-Agent", "SpiderDuck")]


def test_a_page_that_does_not_say_what_was_asked_has_no_request_record():
    assert request(page(request_headers=())) == b""


def test_a_page_cut_by_its_limit_says_so():
    [(_, head, _, _)] = read(response(page(truncated=True)))
    assert head["WARC-Truncated"] == "length"


def test_a_revisit_refers_to_the_original_and_has_no_body():
    original = Original("https://example.com/first", "2026-11-21T00:00:00.000Z", Placed("3f/x", 0, 1))
    [(kind, head, http, body)] = read(revisit(page(), original))
    assert (kind, body, http.get_statuscode()) == ("revisit", b"", "200")
    assert head["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert head["WARC-Refers-To-Target-URI"] == original.url
    assert head["WARC-Refers-To-Date"] == original.date
    assert head["WARC-Payload-Digest"] == payload_digest(page().body_sha1)


def test_warcinfo_names_the_segment_and_the_format():
    [(kind, head, _, body)] = read(warcinfo("3f/x.warc.gz", {"software": "SpiderDuck 1\r\nx: y"}, STARTED_MS))
    assert (kind, head["WARC-Filename"]) == ("warcinfo", "3f/x.warc.gz")
    assert body.decode().splitlines()[:2] == ["software: SpiderDuck 1 x: y", "format: WARC File Format 1.1"]


def test_a_replayed_page_has_the_same_record_ids_and_another_visit_has_others():
    later = Visit(started_ms=STARTED_MS + 1)
    ids = [read(response(p))[0][1]["WARC-Record-ID"] for p in (page(), page(), page(visit=later))]
    assert ids[0] == ids[1] != ids[2]


def test_dates_are_utc_with_milliseconds():
    assert warc_date(0) == "1970-01-01T00:00:00.000Z"
    assert warc_date(STARTED_MS) == "2026-11-21T18:45:00.123Z"


# --- headers are true of the stored body


def headers_of(body, *headers):
    return read(response(page(body, response_headers=headers)))[0][2].headers


def test_codings_and_a_length_that_no_longer_hold_are_kept_under_another_name():
    found = headers_of(
        b"decoded", ("content-encoding", "br"), ("Transfer-Encoding", "chunked"), ("Content-Length", "3"), ("ETag", "x")
    )
    assert found == [
        ("X-Crawler-content-encoding", "br"),
        ("X-Crawler-Transfer-Encoding", "chunked"),
        ("X-Crawler-Content-Length", "3"),
        ("ETag", "x"),
        ("Content-Length", "7"),
    ]


def test_a_length_that_holds_stays_as_it_is():
    assert headers_of(b"decoded", ("Content-Length", "7")) == [("Content-Length", "7")]


def test_of_two_lengths_only_the_true_one_remains():
    found = headers_of(b"decoded", ("Content-Length", "7"), ("Content-Length", "9"))
    assert found == [("Content-Length", "7"), ("X-Crawler-Content-Length", "9")]


# --- a site cannot write into the archive

ATTACK = "x\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\0"


@pytest.mark.parametrize("where", ["value", "name", "reason", "url", "asked", "address"])
def test_line_ends_in_what_came_from_outside_do_not_end_a_line(where):
    attacked = {
        "value": lambda: page(response_headers=(("X", ATTACK), ("Y", "z"))),
        "name": lambda: page(response_headers=((ATTACK, "v"), ("Y", "z"))),
        "reason": lambda: page(reason_phrase=ATTACK),
        "url": lambda: page(url="https://example.com/" + ATTACK),
        "asked": lambda: page(request_headers=(("X", ATTACK),)),
        "address": lambda: page(visit=Visit(address=ATTACK)),
    }[where]()
    answer, asked = read(response(attacked), request(attacked))
    assert (answer[0], answer[3], asked[0], asked[3]) == ("response", b"<title>Hi</title>", "request", b"")
    assert len(answer[2].headers) == len(attacked.response_headers)


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=4), st.text(max_size=20))
def test_whatever_the_headers_are_the_body_comes_back(headers, reason):
    [(_, _, _, body)] = read(response(page(response_headers=tuple(headers), reason_phrase=reason)))
    assert body == b"<title>Hi</title>"


# --- reading one back


def test_a_member_reads_back_as_the_page():
    found = archived(response(page()), body_bytes_max=100)
    assert (found.url, found.date) == ("https://example.com/a?b=c", "2026-11-21T18:45:00.123Z")
    assert (found.status, found.headers, found.body) == (200, RECEIVED, b"<title>Hi</title>")


def test_a_body_longer_than_the_reader_takes_is_refused():
    member = response(page(bytes(200_000)))
    assert len(archived(member, body_bytes_max=200_000).body) == 200_000
    with pytest.raises(BadRecord, match="more than 199999 bytes"):
        archived(member, body_bytes_max=199_999)


def test_what_is_no_response_record_is_refused():
    for member in (request(page()), warcinfo("x", {}, 0), b"", b"no gzip", gzip.compress(b"no WARC"), bytes(500)):
        with pytest.raises(BadRecord):
            archived(member, body_bytes_max=1000)


def test_a_member_cut_anywhere_is_refused():
    member = response(page(bytes(range(256)) * 4))
    for cut in range(len(member)):
        with pytest.raises(BadRecord):
            archived(member[:cut], body_bytes_max=2000)


@given(st.data())
def test_a_damaged_member_is_refused_or_has_the_same_body(data):
    member = bytearray(response(page()))
    member[data.draw(st.integers(0, len(member) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(BadRecord):
        assert archived(bytes(member), body_bytes_max=10_000).body == b"<title>Hi</title>"


def test_zlib_reads_the_member_as_one_stream():
    member = response(page())
    stream = zlib.decompressobj(31)
    stream.decompress(member)
    assert (stream.eof, stream.unused_data) == (True, b"")
