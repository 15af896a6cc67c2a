"""Buckets were 5 % of (ms + 1) wide, and rounded to 0.1 ms: a percentile of 0.2 ms was off by half."""

from topology.events import Durations


def test_half_a_millisecond_is_half_a_millisecond():
    for ms in (0.02, 0.2, 0.5, 1.0, 3.0):
        histogram = Durations()
        histogram.add(ms)
        assert abs(histogram.percentile(50) - ms) <= 0.05 * ms
