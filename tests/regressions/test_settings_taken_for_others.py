"""Values that were taken for others, or that raised something else than a Refusal."""

import pytest

from topology.errors import Refusal
from topology.settings import Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retries_max", 2.7),  # was taken for 2
        ("user_agent", 5),  # was taken for "5"
        ("user_agent", "a\r\nX-Injected: b"),
        ("robots_agent", "SpiderDuck/0.1"),  # no robots.txt can name it
        ("partitions", float("inf")),  # OverflowError
        ("domains", "{}"),  # ValueError, as from SPIDERDUCK_DOMAINS
        ("domains", {"a.test": 5}),  # ValueError
    ],
)
def test_an_impossible_value_is_a_refusal(name, value):
    with pytest.raises(Refusal, match=name):
        Settings.load(flags={name: value}, environ={})


def test_a_range_is_told_exactly():
    """It was told as `between 1024 and 2.68435e+08`."""
    with pytest.raises(Refusal, match="between 1024 and 268435456"):
        Settings.load(flags={"body_bytes_max": 1}, environ={})
