"""Parse: what was read decides how a fetch ended; an image is asked for on its own."""

import base64
import hashlib

import pytest

from agents.clients.parser_process import Result, answer_to
from agents.parse import Parser, document_of, image_request
from agents.reading.page import Reading
from tests.doubles import FakeClock, Recorder, event, simulated
from topology.deflate import squeeze
from topology.events import Events
from topology.outcomes import Outcome
from topology.records import Http, Image, Metadata, Page, Visit
from topology.settings import Settings

URL = "http://a.test/x?utm_source=t"
BODY = b"<html><head><title>Here</title><meta property='og:image' content='/i.png'></head></html>"


def page(body=BODY, *, url=URL, kind="page", content_type="text/html", status=200):
    squeezed = squeeze(body)
    sha1 = hashlib.sha1(body, usedforsecurity=False).digest()
    http, visit = Http(status, content_type, len(body)), Visit(web_ms=3)
    return Page(url, "a.test", "f", kind, http, visit, squeezed.data, squeezed.crc32, sha1)


def ended(reading=None, error=None, **changes):
    return document_of(page(**changes), Result(reading, error), refresh_s_max=5.0)


def test_a_page_that_was_read_is_fetched():
    document = ended(Reading(Metadata(title="Here")))
    assert (document.outcome, document.metadata.title, document.fetch_id) == (Outcome.FETCHED, "Here", "f")
    assert document.canonical_url == "http://a.test/x"
    assert document.digest == "sha1:" + base64.b32encode(hashlib.sha1(BODY, usedforsecurity=False).digest()).decode()
    assert (document.http.status, document.visit.web_ms) == (200, 3)


def test_the_canonical_url_a_page_names_is_normalised_and_nonsense_is_not_taken():
    assert ended(Reading(Metadata(), canonical_url="HTTP://www.a.test/X/")).canonical_url == "http://www.a.test/X/"
    assert ended(Reading(Metadata(), canonical_url="ftp://a.test/")).canonical_url == "http://a.test/x"
    assert ended(Reading(Metadata(), canonical_url="http://a.test/" + "x" * 2000)).canonical_url == "http://a.test/x"


def test_a_page_that_broke_the_parser_is_broken_and_says_why():
    document = ended(error="it took longer than 5 s to parse")
    assert document.outcome is Outcome.BROKEN
    assert document.reason == "the page could not be parsed: it took longer than 5 s to parse"
    assert document.digest is not None  # it is in the archive


def test_a_wall_is_an_ending_without_metadata():
    document = ended(Reading(Metadata(title="Are you human?"), wall="a captcha"))
    assert (document.outcome, document.reason, document.metadata) == (Outcome.WALL, "a captcha", None)


@pytest.mark.parametrize(
    ("refresh", "leads"),
    [
        ((0.0, "http://b.test/"), True),
        ((5.0, "http://b.test/"), True),
        ((5.1, "http://b.test/"), False),  # a page that changes after a while
        ((0.0, URL), False),  # one that reloads itself
        ((0.0, URL + "#top"), False),
        ((0.0, "javascript:x()"), False),
    ],
)
def test_a_quick_refresh_elsewhere_is_a_redirect(refresh, leads):
    document = ended(Reading(Metadata(title="Moved"), refresh=refresh))
    assert (document.outcome is Outcome.REDIRECTED) == leads
    assert document.redirect_to == ("http://b.test/" if leads else None)
    assert document.redirect_status == (200 if leads else 0)


def test_an_image_that_claims_to_send_somebody_on_does_not():
    assert ended(Reading(Metadata(), refresh=(0.0, "http://b.test/")), kind="image").outcome is Outcome.FETCHED


def test_the_image_of_a_page_is_asked_for_in_its_pages_name():
    def asked(image, **changes):
        return image_request(ended(Reading(Metadata(image=image and Image(image))), **changes), 5)

    request = asked("https://img.b.test/i.png#x")
    assert (request.url, request.domain) == ("https://img.b.test/i.png", "b.test")
    assert (request.waiter.parent, request.waiter.share, request.waiter.read_ms) == ("http://a.test/x", None, 5)
    assert asked(None) is None
    assert asked("data:image/png;base64,x") is None
    assert asked("http://b.test/i.png", kind="image") is None  # an image has none


class Pool:
    """A pool that works here and now."""

    async def parse(self, job):
        self.job = job
        return answer_to(job, None)


def test_a_page_becomes_a_document_and_its_image_a_request():
    async def story(images):
        documents, requests, pool, events = Recorder(), Recorder(), Pool(), Events()
        settings = Settings.load(flags={"images": images, "parse_bytes_max": 5000}, environ={})
        parser = Parser(settings, events, FakeClock(), pool=pool, to_documents=documents, to_requests=requests)
        acted = await parser.on_page(event(page()))
        assert len(acted.sent) == 1 + images
        assert documents.sent[0][0] == "a.test"
        assert documents.last.metadata.title == "Here"
        assert [record.url for record in requests.records] == ["http://a.test/i.png"] * images
        assert pool.job.bytes_max == 5000
        assert events.counts["parsed"].total() == 1

    simulated(story(True))
    simulated(story(False))


def test_a_page_our_fault_kept_from_being_read_ends_as_broken():
    async def story():
        documents = Recorder()
        parser = Parser(Settings(), Events(), FakeClock(), pool=Pool(), to_documents=documents, to_requests=Recorder())
        await parser.give_up(event(page()).value, "a fault of SpiderDuck")
        assert (documents.last.outcome, documents.last.fetch_id) == (Outcome.BROKEN, "f")
        assert "a fault of SpiderDuck" in documents.last.reason

    simulated(story())
