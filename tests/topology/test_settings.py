"""Settings: where they come from, what is impossible, and that a refusal names it."""

import dataclasses
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.errors import Refusal
from topology.settings import PREFIX, STAGES, DomainSettings, Settings, explain

FIELDS = {knob.name: knob for knob in dataclasses.fields(Settings)}
NUMBERS = [name for name, knob in FIELDS.items() if "least" in knob.metadata]
TEXTS = ["log_url", "metadata_url", "content_url", "web_host", "user_agent", "robots_agent"]


def load(toml=None, environ=None, tmp_path=None, **flags):
    config = None
    if toml is not None:
        config = tmp_path / "spiderduck.toml"
        config.write_text(toml)
    return Settings.load(config=config, environ=environ or {}, flags=flags)


def test_flags_win_over_the_environment_that_over_the_file_that_over_the_defaults(tmp_path):
    toml = "rate_per_s = 1\nretries_max = 1\nfetches_max = 1\n"
    environ = {"SPIDERDUCK_RATE_PER_S": "2", "SPIDERDUCK_RETRIES_MAX": "2", "PATH": "/bin"}
    settings = load(toml, environ, tmp_path, rate_per_s=3)
    assert (settings.rate_per_s, settings.retries_max, settings.fetches_max) == (3.0, 2, 1)
    assert settings.queue_urls_max == Settings().queue_urls_max


def test_no_source_leaves_the_defaults():
    assert Settings.load(environ={}) == Settings()


def test_every_default_is_possible():
    defaults = {name: getattr(Settings(), name) for name in FIELDS}
    given_ = {name: value for name, value in defaults.items() if name not in {"connect_to", "allow_net"}}
    assert Settings.load(flags=given_, environ={}) == Settings()


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().rate_per_s = 5  # type: ignore[misc]  # that is the test


# -- names


def test_an_unknown_name_is_refused_wherever_it_stands(tmp_path):
    with pytest.raises(Refusal, match=r"SPIDERDUCK_FOO: there is no setting 'foo'; the settings are .*rate_per_s"):
        load(environ={"SPIDERDUCK_FOO": "1"})
    with pytest.raises(Refusal, match=r"spiderduck\.toml: there is no setting 'rate_per_min'"):
        load("rate_per_min = 1", tmp_path=tmp_path)
    with pytest.raises(Refusal, match="there is no setting 'bar'"):
        load(bar=1)


def test_every_setting_is_explained_and_can_be_set_in_the_environment():
    explained = {name: (default, why) for name, default, why in explain()}
    assert list(explained) == list(FIELDS)
    assert all(why for _, why in explained.values())
    for name in NUMBERS:
        default = getattr(Settings(), name)
        assert explained[name][0] == str(default)
        assert getattr(load(environ={PREFIX + name.upper(): str(default)}), name) == default


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(Refusal, match="cannot be read"):
        Settings.load(config=tmp_path / "none.toml", environ={})
    for raw in (b"rate_per_s = ", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(raw)
        with pytest.raises(Refusal, match=r"bad\.toml cannot be read"):
            Settings.load(config=tmp_path / "bad.toml", environ={})


# -- values


def refused(name, value, **sources):
    with pytest.raises(Refusal) as refusal:
        load(**sources) if sources else load(**{name: value})
    said = str(refusal.value)
    assert name in said
    assert repr(value) in said or str(value) in said
    return said


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_out_of_its_range_is_refused_with_name_value_and_range(name):
    limits = FIELDS[name].metadata
    for outside in (limits["least"] - 1, limits["most"] + 1, -math.inf, math.nan):
        said = refused(name, outside)
        if math.isfinite(outside):
            assert f"between {limits['least']:.12g} and {limits['most']:.12g}" in said
            refused(name, str(outside), environ={PREFIX + name.upper(): str(outside)})


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["", "many", "1;2", None, [], {}, True, b"1x", math.inf])
def test_what_is_no_number_is_refused(name, value):
    said = refused(name, value)
    assert "number" in said or "boolean" in said or "between" in said


@pytest.mark.parametrize("name", NUMBERS)
def test_the_ends_of_a_range_are_possible_and_fit_their_kind(name):
    limits = FIELDS[name].metadata
    for end in (limits["least"], limits["most"]):
        assert getattr(load(**{name: end}), name) == end
    assert type(getattr(load(**{name: limits["most"]}), name)) is type(getattr(Settings(), name))


def test_a_whole_number_is_whole():
    """2.7 used to be taken for 2."""
    assert "a whole number" in refused("retries_max", 2.7)
    assert load(retries_max=2.0).retries_max == 2


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("value", ["", "two\nlines", "naïve", 5, None, ["x"], True])
def test_what_is_no_plain_text_is_refused(name, value):
    """A line break in a User-Agent would end the header; a number was taken for a text."""
    refused(name, value)


@pytest.mark.parametrize("token", ["SpiderDuck/0.1", "Spider Duck", "SpiderDuck2", "*", ""])
def test_robots_agent_must_be_something_a_robots_txt_can_name(token):
    assert "product token" in refused("robots_agent", token)


@pytest.mark.parametrize("token", ["SpiderDuck", "spider_duck", "Spider-Duck"])
def test_a_product_token_is_letters_underscores_and_hyphens(token):
    assert load(robots_agent=token).robots_agent == token


@pytest.mark.parametrize("value", ["fetch,parsee", "", [], 5, None, ["fetch", "x"], {"fetch": 1}])
def test_stages_are_some_of_those_there_are(value):
    refused("stages", value)


def test_stages_are_a_list_or_words_with_commas():
    assert load(stages="fetch, parse").stages == load(stages=["fetch", "parse"]).stages == ("fetch", "parse")
    assert load().stages == STAGES


@pytest.mark.parametrize("value", ["10.0.0.1/8", "here", ["127.0.0.0/8", "x"], 5, None])
def test_networks_are_networks(value):
    refused("allow_net", value)


def test_networks_may_be_many():
    assert [str(net) for net in load(allow_net="127.0.0.0/8, ::1").allow_net] == ["127.0.0.0/8", "::1/128"]
    assert load(allow_net="").allow_net == ()


@pytest.mark.parametrize("value", ["host", ":80", "host:", "host:0", "host:65536", "host:http", "host:\u00b2", 80])
def test_connect_to_is_host_and_port(value):
    refused("connect_to", value)


def test_an_ipv6_address_stands_in_brackets():
    assert load(connect_to="[::1]:80").connect_to == ("::1", 80)
    assert load(connect_to="localhost:8080").connect_to == ("localhost", 8080)


@pytest.mark.parametrize(("word", "flag"), [("true", True), ("NO", False), ("1", True), (False, False)])
def test_a_flag_is_a_word(word, flag):
    assert load(images=word).images is flag


@pytest.mark.parametrize("word", ["", "maybe", 2, None, []])
def test_other_words_are_no_flag(word):
    refused("images", word)


@pytest.mark.parametrize("value", ["", "a\0b", 5, None])
def test_data_is_a_path(value):
    refused("data", value)


def test_data_may_be_a_path_or_its_name():
    assert load(data="x/y").data == load(data=Path("x/y")).data == Path("x/y")


# -- by domain


def test_a_domain_may_differ(tmp_path):
    toml = '[domains."News.Example"]\nrate_per_s = 2\nwindow_failed_s = 0\n'
    settings = load(toml, tmp_path=tmp_path)
    assert settings.domain("news.example") == DomainSettings(rate_per_s=2.0, window_failed_s=0.0)
    assert settings.domain("other.example") == DomainSettings()


@pytest.mark.parametrize(
    ("toml", "names"),
    [
        ("domains = 5", ["domains", "5", "table"]),
        ('[domains]\n"a.test" = 5', ["domains.a.test", "5", "table"]),
        ('[domains."a.test"]\nrate = 5', ["domains.a.test", "'rate'", "rate_per_s"]),
        ('[domains."a.test"]\nrate_per_s = 0', ["domains.a.test.rate_per_s", "0", "between 0.001 and 100000"]),
        ('[domains."a.test"]\nwindow_gone_s = "x"', ["domains.a.test.window_gone_s", "'x'", "a number"]),
        ('site_rules = "x"', ["site_rules", "'x'", "table"]),
    ],
)
def test_an_impossible_override_is_refused_by_its_full_name(tmp_path, toml, names):
    with pytest.raises(Refusal) as refusal:
        load(toml, tmp_path=tmp_path)
    assert all(name in str(refusal.value) for name in names), str(refusal.value)


def test_a_table_does_not_fit_into_the_environment():
    for name in ("DOMAINS", "SITE_RULES"):
        refused(name.lower(), "{}", environ={PREFIX + name: "{}"})


@given(
    st.sampled_from(sorted(FIELDS)),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
)
def test_any_value_is_taken_or_refused_and_nothing_else(name, value):
    try:
        settings = Settings.load(flags={name: value}, environ={})
    except Refusal as refusal:
        said = str(refusal)
    else:
        said = name
        limits = FIELDS[name].metadata
        assert "least" not in limits or limits["least"] <= getattr(settings, name) <= limits["most"]
    assert name in said
