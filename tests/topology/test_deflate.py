"""Laws of bodies as embeddable deflate streams."""

import contextlib
import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.deflate import LAST_BLOCK_EMPTY, NotDeflate, TooLong, crc32, crc32_combine, expand, expand_start, squeeze

bodies = st.one_of(
    st.binary(max_size=3000),
    st.builds(lambda part, n: part * n, st.binary(min_size=1, max_size=60), st.integers(1, 3000)),
)


@given(bodies)
def test_a_squeezed_body_expands_to_itself(body):
    assert expand(squeeze(body).data, bytes_max=len(body)) == body


@given(bodies)
def test_zlib_agrees_with_the_stream_the_crc_and_the_length(body):
    squeezed = squeeze(body)
    assert zlib.decompress(squeezed.data + LAST_BLOCK_EMPTY, -15) == body
    assert squeezed.crc32 == zlib.crc32(body)
    assert squeezed.bytes_len == len(body)


@given(st.lists(bodies, max_size=4))
def test_squeezed_bodies_stand_one_after_another_in_one_stream(parts):
    stream = b"".join(squeeze(part).data for part in parts)
    assert zlib.decompress(stream + LAST_BLOCK_EMPTY, -15) == b"".join(parts)


@given(st.binary(max_size=500), st.binary(max_size=500))
def test_the_crc_of_two_runs_is_combined_from_theirs(first, second):
    assert crc32_combine(crc32(first), crc32(second), len(second)) == zlib.crc32(first + second)
    assert crc32(second, crc32(first)) == zlib.crc32(first + second)


@given(bodies.filter(bool))
def test_a_body_longer_than_the_limit_is_refused(body):
    with pytest.raises(TooLong):
        expand(squeeze(body).data, bytes_max=len(body) - 1)


def test_a_bomb_is_refused_before_it_is_inflated():
    with pytest.raises(TooLong):
        expand(squeeze(bytes(50_000_000)).data, bytes_max=1000)


@given(st.binary(min_size=1, max_size=2000), st.data())
def test_a_cut_stream_never_passes_for_the_body(body, data):
    """Without the end of its sync flush a short body may still be whole; cut before it, none is."""
    squeezed = squeeze(body).data
    cut = data.draw(st.integers(0, max(0, len(squeezed) - 6)))
    with contextlib.suppress(NotDeflate, TooLong):
        assert expand(squeezed[:cut], bytes_max=10_000) != body


@given(st.binary(max_size=2000))
def test_arbitrary_bytes_are_refused_by_name_or_expanded_within_the_limit(data):
    with contextlib.suppress(NotDeflate, TooLong):
        assert len(expand(data, bytes_max=5000)) <= 5000


def test_a_stream_with_a_final_block_is_refused():
    """It could not be embedded: whatever follows a final block is outside the stream (RFC 1951, 3.2.3)."""
    with pytest.raises(NotDeflate):
        expand(zlib.compress(b"body", wbits=-15), bytes_max=100)


def test_real_pages_keep_a_quarter_of_their_size(shared):
    page = max((shared / "web" / "html").glob("*.html.gz"), key=lambda path: path.stat().st_size)
    body = gzip.decompress(page.read_bytes())
    squeezed = squeeze(body)
    assert expand(squeezed.data, bytes_max=len(body)) == body
    assert len(squeezed.data) < len(body) / 2


@given(st.binary(max_size=5000), st.integers(1, 6000))
def test_the_start_of_a_body_can_be_read_alone(body, bytes_max):
    assert expand_start(squeeze(body).data, bytes_max=bytes_max) == body[:bytes_max]


def test_the_start_of_a_damaged_body_is_a_named_error():
    with pytest.raises(NotDeflate):
        expand_start(b"\xff\xff\xff\xff", bytes_max=100)
