"""A page with a meta refresh is archived under a URL that leads to the target's record: it became its content."""

from agents.clients.metadata import Record, placement_of, with_content

MOVED, HERE = "http://a.test/moved", "http://a.test/here"


def test_the_content_of_a_record_is_the_page_it_was_read_from_whatever_was_archived_last():
    for order in ((MOVED, HERE), (HERE, MOVED)):
        fields = {"url": HERE, "title": "Here"}
        for url in order:
            fields |= placement_of(url, {"segment": url, "offset": 0, "length": 1})
        shown = with_content(Record(HERE, fields)).fields
        assert shown == {"url": HERE, "title": "Here", "content": {"segment": HERE, "offset": 0, "length": 1}}


def test_a_record_whose_page_is_not_archived_has_no_content():
    fields = {"url": HERE, **placement_of(MOVED, {"segment": "s", "offset": 0, "length": 1})}
    assert with_content(Record(HERE, fields)).fields == {"url": HERE}
