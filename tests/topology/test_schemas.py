"""The published JSON Schemas: they are what is really sent, and they only grow.

After adding a field, write them anew with `python -m tests.topology.test_schemas` and add its line to PINNED.
"""

import json
import pathlib
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving import serving, settings_for, until
from tests.webs import SavedWeb, image, page
from topology.embedded_log import Log, Partition
from topology.public import dead_letter, schemas

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "topology" / "schemas"
ABOUT = {
    "url-completed": "One message of the public topic `url-completed`: how one (tweet, URL) ended. Key: the tweet's "
    "id. At least one for every URL of every tweet; fields may be added, so ignore those you do not know.",
    "dead-letters": "One message of the public topic `dead-letters`: something that could not be read, verbatim, in "
    "`text` or, when it is not UTF-8, in `base64`. Fields may be added, so ignore those you do not know.",
}

# What users rely on, for ever: every field, its types, and `!` where it is always there.
PINNED = {
    "dead-letters": """
        base64: null|string
        reason!: string
        schema!: integer
        source!: string
        text: null|string
    """,
    "url-completed": """
        canonical_url!: null|string
        content!.digest!: string
        content!: null|object
        hops![].ms!: integer
        hops![].status!: integer
        hops![].url!: string
        hops!: array
        hops![]: object
        http!.bytes!: integer
        http!.content_type!: null|string
        http!.status!: integer
        http!.truncated!: boolean
        http!: null|object
        metadata!.author: null|string
        metadata!.category: null|string
        metadata!.description: null|string
        metadata!.extra: object
        metadata!.icon: null|string
        metadata!.image.alt: null|string
        metadata!.image.height: integer|null
        metadata!.image.media_type: null|string
        metadata!.image.url!: string
        metadata!.image.width: integer|null
        metadata!.image: null|object
        metadata!.language: null|string
        metadata!.media_type: null|string
        metadata!.provenance: object
        metadata!.published: null|string
        metadata!.site_name: null|string
        metadata!.title: null|string
        metadata!: null|object
        outcome!: string
        reason!: null|string
        resolved!: boolean
        schema!: integer
        times!.completed!: string
        times!.own_ms!: integer
        times!.queued_ms!: integer
        times!.read!: string
        times!.tweeted!: null|string
        times!.waited_ms!: integer
        times!.web_ms!: integer
        times!: object
        tweet_id!: string
        url!: string
    """,
}
OUTCOMES = {
    "fetched",
    "cached",
    "gone",
    "denied",
    "refused",
    "halted",
    "rejected",
    "unsafe",
    "invalid",
    "too-large",
    "too-many-redirects",
    "redirect-loop",
    "wall",
    "broken",
    "expired",
    "failed",
}


def document(topic: str) -> dict[str, Any]:
    """The schema as it is published, made from the classes that are sent."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:spiderduck:schema:{topic}:1",
        "title": topic,
        "description": ABOUT[topic],
        **schemas()[topic],
    }


def text(topic: str) -> str:
    return json.dumps(document(topic), indent=2, ensure_ascii=False) + "\n"


def published(topic: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{topic}.schema.json").read_text("utf-8"))


def lines_of(schema: dict[str, Any]) -> set[str]:
    """Every field of a schema, as the lines of PINNED say it."""
    found: set[str] = set()

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        return schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part

    def look(part: dict[str, Any], path: str) -> None:
        ways = [resolved(way) for way in part.get("anyOf", [part])]
        if path:
            found.add(f"{path}: {'|'.join(sorted({way.get('type', 'string') for way in ways}))}")
        for way in ways:
            for name, inner in way.get("properties", {}).items():
                mark = "!" if name in way.get("required", ()) else ""
                look(inner, f"{path}{'.' if path else ''}{name}{mark}")
            if "$ref" in (items := way.get("items", {})):
                look(items, f"{path}[]")

    look(resolved(schema), "")
    return found


@pytest.mark.parametrize("topic", sorted(ABOUT))
def test_what_is_published_is_what_is_sent(topic):
    assert published(topic) == document(topic), "write them anew: python -m tests.topology.test_schemas"


def test_every_public_topic_that_goes_out_has_a_schema():
    assert set(schemas()) == set(ABOUT) == set(PINNED)


@pytest.mark.parametrize("topic", sorted(ABOUT))
def test_a_schema_only_grows(topic):
    pinned = {line.strip() for line in PINNED[topic].strip().splitlines()}
    assert pinned - lines_of(published(topic)) == set(), "renamed, removed, retyped or no longer always there"
    assert lines_of(published(topic)) - pinned == set(), "new: pin it, so that it stays"


def test_the_words_for_how_a_url_can_end_only_grow():
    assert set(published("url-completed")["$defs"]["Outcome"]["enum"]) >= OUTCOMES


@pytest.mark.parametrize("topic", sorted(ABOUT))
def test_readers_of_today_understand_fields_of_tomorrow(topic):
    schema = published(topic)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert not [name for name, part in schema["$defs"].items() if part.get("additionalProperties", True) is not True]


@given(st.binary(max_size=100), st.text(max_size=20), st.text(max_size=20))
def test_every_dead_letter_is_valid_and_gives_back_what_it_holds(raw, reason, source):
    letter = json.loads(dead_letter(raw, reason, source))
    jsonschema.validate(letter, published("dead-letters"))
    assert ("text" in letter) != ("base64" in letter)


def test_real_announcements_and_dead_letters_are_valid(tmp_path):
    """One of each kind of ending that is easy to have, read from the log as a consumer would."""
    with SavedWeb() as web:
        web.redirect("http://r.test/1", "http://r.test/2")
        web.say("http://rich.test/", page("Rich", head='<meta property="og:image" content="http://rich.test/i.png">'))
        web.say("http://rich.test/i.png", image(640, 480))
        web.robots("no.test", "User-agent: *\nDisallow: /")
        web.redirect("http://loop.test/a", "http://loop.test/b", "http://loop.test/a")
        urls = ["http://r.test/1", "http://rich.test/", "http://no.test/x", "http://loop.test/a", "ftp://x.test/"]
        with serving(settings_for(tmp_path, web.port)) as client:
            client.share(*urls, tweet_id="1")
            client.share("http://r.test/1", tweet_id="2")
            client.post("/tweets", b"\xff\xfe no tweet", "text/plain")
            until(lambda: len(answered(client, "1")) == len(urls) and answered(client, "2"))
            until(lambda: b'unreadable"} 1' in client.get("/metrics").body)
    sent = {topic: messages(tmp_path, topic) for topic in ABOUT}
    for topic, found in sent.items():
        for message in found:
            jsonschema.validate(message, published(topic))
    outcomes = {message["outcome"] for message in sent["url-completed"]}
    assert outcomes >= {"fetched", "refused", "redirect-loop", "invalid"}
    assert len(sent["url-completed"]) == 6
    assert [letter["reason"] for letter in sent["dead-letters"]]


def answered(client, tweet_id):
    said = client.get(f"/tweets/{tweet_id}")
    return said.json["completed"] if said.status == 200 else []


def messages(data, topic):
    log = Log(data / "log", memory_bytes_max=1 << 20, kept_records_max=1000)
    try:
        partitions = range(log.partitions(topic) or 0)
        records = [r for n in partitions for r in log.read(Partition(topic, n), 0, records_max=100, bytes_max=1 << 20)]
        return [json.loads(record.value) for record in records]
    finally:
        log.close()


if __name__ == "__main__":
    for name in ABOUT:
        (FOLDER / f"{name}.schema.json").write_text(text(name), "utf-8")
    sys.stdout.write(f"written: {', '.join(ABOUT)}\n")
