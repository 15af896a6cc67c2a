"""A byline whose ancestors lead up to the document itself broke the reader: the document is no element."""

from agents.reading.page import read


def test_a_byline_in_a_broken_head_is_read():
    read(b"<link rel=canonical href=<p class=byline>By ", url="http://a.test/", content_type="text/html")
