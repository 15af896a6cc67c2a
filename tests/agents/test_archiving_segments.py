"""Laws of segments: where a member is said to be, it is; a killed or failing writer loses no whole member."""

import errno
import gzip
import io
import os
import subprocess
import sys

import pytest
from warcio.archiveiterator import ArchiveIterator

from agents.archiving.segments import SegmentWriter
from agents.archiving.spool import OPEN, Spool, read_spooled, segment_name, whole_members_bytes
from agents.clients.errors import StoreUnavailable

NOON_S = 1_795_262_400.25
MEMBERS = [gzip.compress(bytes([n]) * (n * 50), mtime=0) for n in range(1, 6)]


@pytest.fixture
def spool(tmp_path):
    spool = Spool.open(tmp_path / "spool")
    yield spool
    spool.close()


def writer(spool, **changed):
    given = {"writer": "w", "bytes_max": 100_000, "age_s_max": 60.0, "info": {}, "sealed": lambda _name: None}
    return SegmentWriter(spool, **given | changed)


def files(spool):
    return sorted(path.name for path in spool.folder.iterdir() if path.name != "lock")


def test_a_member_is_where_append_says(spool):
    segments = writer(spool)
    for member in MEMBERS:
        segment, offset = segments.append(member, NOON_S)
        assert read_spooled(spool.folder, segment, offset, len(member)) == member
    segments.seal()
    assert read_spooled(spool.folder, segment, offset, len(member)) == member
    assert read_spooled(spool.folder, segment, offset, len(member) + 1) is None
    assert read_spooled(spool.folder, "3f/other.warc.gz", 0, 1) is None


def test_a_segment_begins_with_warcinfo_and_is_named_by_time_writer_and_serial(spool):
    segments = writer(spool, info={"software": "x"})
    segment, offset = segments.append(MEMBERS[0], NOON_S)
    assert files(spool) == ["20261121T120000250-w-00001.warc.gz.open"]
    assert segment == segment_name("20261121T120000250-w-00001.warc.gz")
    begin = read_spooled(spool.folder, segment, 0, offset)
    record = next(ArchiveIterator(io.BytesIO(begin)))
    assert record.rec_headers.get_header("WARC-Filename") == segment
    assert b"software: x\r\n" in record.raw_stream.read()


def test_segment_names_share_no_hot_prefix():
    names = {segment_name(f"20261121T120000250-w-{serial:05d}.warc.gz")[:2] for serial in range(200)}
    assert len(names) > 100


def test_a_full_segment_is_sealed_and_the_next_begins(spool):
    sealed = []
    segments = writer(spool, bytes_max=1000, sealed=sealed.append)
    places = [segments.append(bytes(600), NOON_S) for _ in range(4)]
    assert len({segment for segment, _ in places}) == 2
    assert sealed == ["20261121T120000250-w-00001.warc.gz"] == spool.sealed()


def test_an_old_segment_is_sealed_though_nothing_comes(spool):
    segments = writer(spool, age_s_max=60.0)
    segments.append(MEMBERS[0], NOON_S)
    segments.roll(NOON_S + 59.9)
    assert spool.sealed() == []
    segments.roll(NOON_S + 60.0)
    assert len(spool.sealed()) == 1
    segments.roll(NOON_S + 200.0)
    assert files(spool) == spool.sealed()


def test_a_writer_that_is_no_name_is_refused(spool):
    for name in ("", "a/b", "..", "a b"):
        with pytest.raises(ValueError, match="not the name of a writer"):
            writer(spool, writer=name)


def test_a_write_that_fails_half_way_is_covered_by_the_next(spool, monkeypatch):
    """A full disk: the bytes written before the error must not move what comes after."""
    segments, real, left = writer(spool), os.pwrite, [20]

    def pwrite(file, data, offset):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real(file, data[: left[0]], offset)
        left[0] -= written
        return written

    first = segments.append(MEMBERS[0], NOON_S)
    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(StoreUnavailable, match="No space left"):
        segments.append(MEMBERS[4], NOON_S)
    left[0] = 1_000_000
    second = segments.append(MEMBERS[1], NOON_S)
    segments.seal()
    assert read_spooled(spool.folder, *first, len(MEMBERS[0])) == MEMBERS[0]
    assert read_spooled(spool.folder, *second, len(MEMBERS[1])) == MEMBERS[1]
    [path] = [spool.path(name) for name in spool.sealed()]
    assert whole_members_bytes(path) == path.stat().st_size == second[1] + len(MEMBERS[1])


# --- a killed writer


def test_a_segment_torn_at_any_byte_of_its_last_member_keeps_all_whole_ones(tmp_path):
    whole = b"".join(MEMBERS[:-1])
    for cut in range(len(MEMBERS[-1]) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / ("a.warc.gz" + OPEN)).write_bytes(whole + MEMBERS[-1][:cut])
        spool = Spool.open(folder)
        expected = whole if cut < len(MEMBERS[-1]) else whole + MEMBERS[-1]
        assert files(spool) == ["a.warc.gz"]
        assert spool.path("a.warc.gz").read_bytes() == expected
        spool.close()


def test_a_member_with_a_damaged_checksum_is_not_whole(tmp_path):
    damaged = bytearray(MEMBERS[1])
    damaged[-8] ^= 1
    (tmp_path / "x").write_bytes(MEMBERS[0] + bytes(damaged) + MEMBERS[2])
    assert whole_members_bytes(tmp_path / "x") == len(MEMBERS[0])


def test_members_longer_than_a_read_and_highly_compressed_ones_are_measured(tmp_path):
    large = [gzip.compress(os.urandom(200_000)), gzip.compress(bytes(20_000_000)), gzip.compress(b"")]
    (tmp_path / "x").write_bytes(b"".join(large) + b"\x1f\x8b")
    assert whole_members_bytes(tmp_path / "x") == sum(map(len, large))


def test_a_segment_with_nothing_whole_is_removed(tmp_path):
    for name, data in [("a", b""), ("b", b"\x1f\x8b torn"), ("c", MEMBERS[0][:-1])]:
        (tmp_path / f"{name}.warc.gz{OPEN}").write_bytes(data)
    spool = Spool.open(tmp_path)
    assert files(spool) == []
    spool.close()


def test_a_spool_has_one_owner(spool):
    with pytest.raises(StoreUnavailable, match="another process owns it"):
        Spool.open(spool.folder)


def test_the_lock_of_a_killed_owner_is_free(tmp_path):
    program = (
        "import pathlib, sys, os; from agents.archiving.spool import Spool\n"
        "Spool.open(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "s")], check=False)
    assert (tmp_path / "s" / "lock").exists()
    Spool.open(tmp_path / "s").close()


def test_a_spool_that_cannot_be_made_is_unavailable(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailable, match="spool"):
        Spool.open(tmp_path / "file" / "spool")
