"""One message in, its tweets and their URLs out: nothing raised, nothing lost."""

import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import topology
from agents.extracting import tweets
from agents.extracting.tweets import Read, Tweet, Unreadable, read_tweets
from topology.urls import Address, Refusal

V1 = {
    "created_at": "Wed Oct 10 20:19:24 +0000 2018",
    "id": 1050118621198921728,
    "id_str": "1050118621198921728",
    "text": "To make room https://t.co/aaaaaaaaaa https://t.co/bbbbbbbbbb",
    "entities": {
        "hashtags": [],
        "urls": [
            {
                "url": "https://t.co/aaaaaaaaaa",
                "expanded_url": "https://example.com/AbC",
                "display_url": "example.com/AbC",
                "indices": [13, 36],
            }
        ],
        "media": [
            {
                "url": "https://t.co/bbbbbbbbbb",
                "expanded_url": "https://twitter.com/x/status/1/photo/1",
                "media_url_https": "https://pbs.twimg.com/media/x.jpg",
            }
        ],
    },
    "user": {"id": 6253282, "url": "https://t.co/cccccccccc"},
}
V2 = {
    "id": "20",
    "created_at": "2021-09-22T16:38:35.000Z",
    "text": "look https://t.co/dddddddddd",
    "entities": {
        "urls": [
            {
                "start": 5,
                "end": 28,
                "url": "https://t.co/dddddddddd",
                "expanded_url": "https://bit.ly/3u1yqGg",
                "unwound_url": "https://example.org/far/away",
            }
        ]
    },
}
MINIMAL = {"id": 30, "text": "read example.com/a and http://example.org", "created_at": None}
PAGE = {"data": [V2], "includes": {"tweets": [MINIMAL, V2], "users": [{"id": "7"}]}, "meta": {"result_count": 1}}

NAMES = (
    "id id_str text full_text entities urls media url expanded_url display_url data includes tweets meta errors"
    " retweeted_status quoted_status extended_tweet note_tweet created_at"
)
STRINGS = st.text(st.characters(exclude_categories=()), max_size=8)  # halves of surrogate pairs too
# A schema cannot tell 1.0 from 1, and NaN is no JSON.
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FRACTIONS | STRINGS | st.just("http://a.com t.co/b"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split(" ")), inner, max_size=6),
    max_leaves=25,
)


def read(value):
    return read_tweets(json.dumps(value).encode())


def shared_urls(value):
    (tweet,) = read(value).tweets
    return [url.url for url in tweet.urls]


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_reported(raw):
    """Never raises; what comes out can be encoded; a message without tweets says why, unless it is an empty page."""
    result = read_tweets(raw)
    for tweet in result.tweets:
        for text in (tweet.id, tweet.created_at or "", *(url.url for url in tweet.urls)):
            text.encode()
    for problem in result.problems:
        assert problem.reason
        assert problem.fragment or raw.strip() == b""
    if not result.tweets and not result.problems:
        assert json.loads(raw).keys() & {"data", "includes", "meta", "errors"}


@given(JSON)
def test_reading_in_one_pass_and_piece_by_piece_agree(value):
    raw = json.dumps(value).encode()
    whole = tweets._read_well_formed(raw)
    if whole is not None:
        assert whole == tweets._read_piecewise(raw)


@given(JSON)
def test_a_broken_neighbour_changes_nothing(neighbour):
    """In a page, every good tweet is read whatever stands beside it."""
    result = read({"data": [neighbour, V2], "includes": {"tweets": [MINIMAL, neighbour]}})
    (v2,), (minimal,) = read(V2).tweets, read(MINIMAL).tweets
    by_id = {tweet.id: tweet for tweet in result.tweets}
    if not {"20", "30"} & _ids_in(neighbour):
        assert by_id["20"] == v2
        assert by_id["30"] == minimal


def _ids_in(value):
    if isinstance(value, dict):
        own = {str(value.get("id")).strip(), str(value.get("id_str")).strip()}
        return own.union(*map(_ids_in, value.values()))
    return set().union(*map(_ids_in, value)) if isinstance(value, list) else set()


def test_an_object_of_v1_shares_its_links_and_its_photo():
    (tweet,) = read(V1).tweets
    assert tweet.id == "1050118621198921728"
    assert tweet.created_at == "Wed Oct 10 20:19:24 +0000 2018"
    assert [(url.url, url.aliases) for url in tweet.urls] == [
        ("https://example.com/AbC", ("https://t.co/aaaaaaaaaa",)),
        ("https://twitter.com/x/status/1/photo/1", ("https://t.co/bbbbbbbbbb",)),
    ]
    assert tweet.urls[0].address.domain == "example.com"


def test_what_was_shared_is_the_expanded_url_and_not_where_twitter_thinks_it_leads():
    (tweet,) = read(V2).tweets
    assert [(url.url, url.aliases) for url in tweet.urls] == [("https://bit.ly/3u1yqGg", ("https://t.co/dddddddddd",))]


@pytest.mark.parametrize("message", [{"data": V2}, {"data": [V2]}, {"data": V2, "matching_rules": [{"id": "1"}]}])
def test_an_object_of_v2_may_come_in_data(message):
    assert read(message) == read(V2)


def test_a_page_holds_the_tweets_of_data_and_of_includes_once_each():
    result = read(PAGE)
    assert [tweet.id for tweet in result.tweets] == ["20", "30"]
    assert result.problems == ()


@pytest.mark.parametrize(
    "page",
    [
        {"meta": {"result_count": 0}},
        {"errors": [{"title": "Not Found"}]},
        {"data": [], "meta": {}},
        {"data": None, "errors": []},
        {"data": [], "includes": None},
    ],
)
def test_a_page_without_results_is_no_problem(page):
    assert read(page) == Read()


def test_the_minimal_form_shares_what_its_text_says():
    assert shared_urls(MINIMAL) == ["http://example.com/a", "http://example.org"]
    assert shared_urls({"id": 1, "urls": ["https://a.com/x"]}) == ["https://a.com/x"]


def test_retweeted_and_quoted_tweets_are_tweets_of_their_own():
    quoted = {"id": 3, "text": "http://c.com"}
    retweeted = {"id": 2, "text": "http://b.com", "quoted_status": quoted}
    result = read({"id": 1, "text": "RT @x: http://a.com", "retweeted_status": retweeted})
    assert [(tweet.id, [url.url for url in tweet.urls]) for tweet in result.tweets] == [
        ("1", ["http://a.com"]),
        ("2", ["http://b.com"]),
        ("3", ["http://c.com"]),
    ]


@pytest.mark.parametrize("name", ["extended_tweet", "note_tweet"])
def test_a_long_text_stands_for_the_cut_one(name):
    """The cut one ends in a link to the tweet itself, which nobody shared."""
    own = {"urls": [{"url": "https://t.co/self", "expanded_url": "https://twitter.com/i/web/status/1"}]}
    whole = {"urls": [{"url": "https://t.co/a", "expanded_url": "https://a.com/"}]}
    text = {"extended_tweet": "full_text", "note_tweet": "text"}[name]
    tweet = {"id": 1, "text": "so… https://t.co/self", "entities": own, name: {text: "so long https://t.co/a"}}
    tweet[name]["entities"] = whole
    assert shared_urls(tweet) == ["https://a.com/"]


def test_a_link_cut_with_its_retweet_is_no_url():
    assert shared_urls({"id": 1, "text": "RT @x: see https://t.co/b8kO…"}) == []
    assert shared_urls({"id": 1, "text": "RT @x: see https://t.co…"}) == []
    assert shared_urls({"id": 1, "text": "see https://a.com/b…"}) == ["https://a.com/b"]


def test_a_url_is_shared_once_whatever_its_spellings():
    tweet = {
        "id": 1,
        "text": "HTTP://Example.com/a#top https://t.co/a https://t.co/a example.com/a http://example.com/A",
        "entities": {"urls": [{"url": "https://t.co/a", "expanded_url": "http://example.com/a"}] * 2},
    }
    ((first, second),) = (each.urls for each in read(tweet).tweets)
    assert (first.url, first.aliases) == ("http://example.com/a", ("https://t.co/a", "HTTP://Example.com/a#top"))
    assert (second.url, second.aliases) == ("http://example.com/A", ())


def test_a_bare_domain_in_the_text_is_the_url_of_an_entity_under_either_scheme():
    link = {"url": "https://t.co/a", "expanded_url": "https://example.com/news", "display_url": "example.com/ne…"}
    for text in ("example.com/news", "example.com/ne…", "https://t.co/a"):
        assert shared_urls({"id": 1, "text": text, "entities": {"urls": [link]}}) == ["https://example.com/news"]


def test_what_cannot_be_parsed_is_still_shared():
    (tweet,) = read({"id": 1, "text": "", "entities": {"urls": [{"url": "http://", "expanded_url": None}]}}).tweets
    assert tweet.urls[0].url == "http://"
    assert isinstance(tweet.urls[0].address, Refusal)


def test_ampersands_escaped_for_html_are_unescaped():
    assert shared_urls({"id": 1, "text": "http://a.com/?b=1&amp;c=2"}) == ["http://a.com/?b=1&c=2"]


@pytest.mark.parametrize("scale", [-1, 0, 10**6, None, "x", [1]])
def test_positions_may_be_nonsense(scale):
    link = {"url": "https://t.co/a", "expanded_url": "http://a.com", "indices": scale, "start": scale, "end": scale}
    result = read({"id": 1, "text": "https://t.co/a", "entities": {"urls": [link]}})
    assert [url.url for url in result.tweets[0].urls] == ["http://a.com"]
    assert result.problems == ()


@pytest.mark.parametrize(
    ("given_id", "tweet_id"),
    [
        ({"id": 2**64}, str(2**64)),
        ({"id": 10**30}, "1" + "0" * 30),
        ({"id": 0}, "0"),
        ({"id": " 7 "}, "7"),
        ({"id": 1380242611781386200, "id_str": "1380242611781386245"}, "1380242611781386245"),  # JavaScript rounds
        ({"id": 5, "id_str": None}, "5"),
    ],
)
def test_an_id_is_a_string_or_a_whole_number(given_id, tweet_id):
    assert read(given_id | {"text": ""}).tweets == (Tweet(tweet_id, None, ()),)


@pytest.mark.parametrize(
    "given_id",
    ['""', '"  "', f'"{"7" * 65}"', "-1", "1" + "0" * 64, "9" * 5000, "1.5", "1e18", "true", "null", "[1]", "{}"],
    ids=lambda given_id: given_id[:10],
)
def test_without_an_id_nothing_can_be_announced(given_id):
    raw = f'{{"id": {given_id}, "text": "x"}}'.encode()
    (problem,) = read_tweets(raw).problems
    assert "no id" in problem.reason
    assert problem.fragment == raw


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"null", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"7", "not a JSON object"),
        (b'{"id": 1', "not a JSON object"),
        (b'{"id": NaN}', "not a JSON object"),
        ('{"id": 1, "text": "a"}'.encode("utf-16"), "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"a":' * 100_000, "too deeply"),
        (b'{"retweeted_status":' * 5_000 + b"{}" + b"}" * 5_000, "too deeply"),
        (b'{"id": 1, "text": "", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too deeply"),
        (b"{}", "no id"),
        (b'{"delete": {"status": {"id": 1}}}', "no id"),
        (b'{"id": 1, "name": "a user"}', "something other than a tweet"),
        (b'{"data": 3}', "data"),
        (b'{"data": [], "includes": 3}', "includes"),
        (b" " * (tweets.MESSAGE_BYTES_MAX + 1), "limit is"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_cannot_be_read_is_kept_with_a_reason(raw, word):
    result = read_tweets(raw)
    assert result.tweets == ()
    (problem,) = result.problems
    assert word in problem.reason
    assert problem.fragment in raw


def test_the_broken_part_of_a_page_is_reported_verbatim():
    good, no_id, number = b'{"id":1,"text":"http://a.com"}', b'{"text" : "lost"}', b"3.50"
    result = read_tweets(b'{"data":[' + b",".join([good, no_id, number]) + b"]}")
    assert [tweet.id for tweet in result.tweets] == ["1"]
    assert [problem.fragment for problem in result.problems] == [no_id, number]


def test_a_broken_field_costs_that_field():
    """The tweet is read without it, and says so."""
    raw = b'{"id":1,"text":"http://a.com","created_at":[],"entities":{"urls":[3,{"url":"http://b.com"},{"url":4}]}}'
    result = read_tweets(raw)
    assert [url.url for url in result.tweets[0].urls] == ["http://b.com", "http://a.com"]
    (problem,) = result.problems
    assert problem == Unreadable("This could not be read: created_at, entities.urls[0], entities.urls[2].url.", raw)


def test_half_a_surrogate_pair_is_no_character_and_breaks_no_tweet():
    raw = rb'{"id":1,"text":"\ud83d http://a.com/\ude00 \\ud83d \ud83d\ude00 http://b.com/\ud83d\ud83d\ude00"}'
    result = read_tweets(raw)
    assert [url.url for url in result.tweets[0].urls] == ["http://a.com/", "http://b.com/"]
    assert result.problems == ()


def test_bytes_that_are_not_utf_8_break_no_tweet():
    result = read_tweets(b'{"id":1,"text":"caf\xe9 http://a.com"}')
    assert [url.url for url in result.tweets[0].urls] == ["http://a.com"]


def test_a_byte_order_mark_and_line_ends_of_either_kind_are_read_over():
    assert read_tweets(b"\xef\xbb\xbf" + json.dumps(V1).encode() + b"\r\n") == read(V1)


def test_nulls_are_absences():
    tweet = {"id": 1, "text": "http://a.com", "entities": None, "retweeted_status": None, "extended_tweet": None}
    assert shared_urls(tweet) == ["http://a.com"]
    assert shared_urls(tweet | {"entities": {"urls": None, "media": [{}]}}) == ["http://a.com"]


def test_the_urls_of_one_tweet_are_bounded_and_the_rest_is_reported():
    text = " ".join(f"a.com/{number}" for number in range(tweets.URLS_PER_TWEET_MAX + 1))
    result = read({"id": 1, "text": text})
    assert len(result.tweets[0].urls) == tweets.URLS_PER_TWEET_MAX
    assert "more than 1000 URLs" in result.problems[0].reason


def test_a_page_of_nothing_but_rubbish_is_a_bounded_number_of_letters():
    raw = json.dumps({"data": [0] * 5000}).encode()
    problems = read_tweets(raw).problems
    assert len(problems) == tweets.PROBLEMS_PER_MESSAGE_MAX
    assert problems[-1].fragment == raw


def test_real_pages_are_read_whole_and_in_one_pass(shared):
    for path in sorted((shared / "tweets").glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            result = tweets._read_well_formed(line)
            assert result is not None, path.name
            page = json.loads(line)
            listed = page["data"] + page["includes"].get("tweets", [])
            assert {tweet.id for tweet in result.tweets} == {tweet["id"] for tweet in listed}
            links = {
                (tweet["id"], link["expanded_url"])
                for tweet in listed
                for link in tweet.get("entities", {}).get("urls", [])
            }
            addresses = {(tweet.id, url.url) for tweet in result.tweets for url in tweet.urls}
            assert links <= addresses
            assert all(isinstance(url.address, Address) for tweet in result.tweets for url in tweet.urls)


SCHEMA = pathlib.Path(topology.__file__).parent / "schemas" / "tweets.schema.json"
VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


def test_the_published_schema_accepts_every_form():
    Draft202012Validator.check_schema(VALIDATOR.schema)
    for message in [V1, V2, {"data": V2}, MINIMAL, PAGE, {"meta": {}}, {"id": "1", "urls": [], "schema": 1}]:
        VALIDATOR.validate(message)


def test_the_published_schema_accepts_real_pages(shared):
    for path in (shared / "tweets").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            VALIDATOR.validate(json.loads(line))


@given(JSON)
def test_what_the_published_schema_accepts_is_read_whole(value):
    if VALIDATOR.is_valid(value):
        assert read(value).problems == ()
