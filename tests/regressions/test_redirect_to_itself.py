"""A redirect to the same page under another fragment or spelling is a circle, not ten hops to nowhere."""

from agents.decide import follow
from topology.outcomes import Outcome
from topology.records import Document, Share, Waiter


def test_a_fragment_makes_no_other_url():
    waiter = Waiter(0, 0, Share("t", "http://a.test/"))
    for target in ("http://a.test/#x", "HTTP://a.test:80/"):
        document = Document("http://a.test/", "a.test", "f", "page", Outcome.REDIRECTED, redirect_to=target)
        assert follow(waiter, document, now_ms=0, redirects_max=10).outcome is Outcome.REDIRECT_LOOP
