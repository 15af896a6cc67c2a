"""Two fetches of one URL in one millisecond had one id: the second was dropped as a replay, its waiters forgotten."""

from tables.urls import EMPTY, ask, settle
from topology.outcomes import Outcome
from topology.records import Document, Share, UrlRequest, Waiter


def test_the_next_fetch_has_another_id():
    def asked(entry, tweet_id):
        return ask(entry, UrlRequest("u", "d", Waiter(0, 0, Share(tweet_id, "u"))), now_ms=7, waiting_max=9)

    entry, first = asked(EMPTY, "1")
    document = Document("u", "d", first.request.fetch_id, "page", Outcome.FAILED)
    entry, _ = settle(entry, document, now_ms=7, window=lambda _: 0.0)
    _, second = asked(entry, "2")
    assert second.request.fetch_id != first.request.fetch_id
