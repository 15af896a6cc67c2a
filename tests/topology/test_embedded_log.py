"""The embedded log: against a model that is a list per partition, against other processes, against `kill -9`."""

import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from rocksdict import Options, Rdict

from topology.embedded_log import Log, LogReader, Partition, partition_of
from topology.errors import Refusal

ROOT = Path(__file__).resolve().parents[2]
WHERE = Partition("t", 0)
TOPICS = {"t": 2, "u": 1}
PLACES = [Partition(topic, number) for topic, count in TOPICS.items() for number in range(count)]


def opened(path, *, memory_bytes_max=1 << 20, kept_records_max=1000):
    log = Log(path, memory_bytes_max=memory_bytes_max, kept_records_max=kept_records_max)
    for topic, partitions in TOPICS.items():
        log.create_topic(topic, partitions)
    return log


def append(log, *values, where=WHERE):
    offsets = [log.append(where, b"k", value, 1.0) for value in values]
    log.flush()
    return offsets


def taken(log, where=WHERE):
    found = []
    while (record := log.take(where)) is not None:
        found.append(record)
    return found


def ran(code, *arguments):
    """Run a program of ours in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def log(tmp_path) -> Iterator[Log]:
    log = opened(tmp_path)
    yield log
    log.close()


# -- the model


class LogModel(RuleBasedStateMachine):
    """Whatever is appended, spilled, taken, committed and reopened: the log says what two lists and a number say."""

    def __init__(self):
        super().__init__()
        self.written = {where: [] for where in PLACES}  # every value ever flushed, by offset
        self.pending = {where: [] for where in PLACES}
        self.committed = dict.fromkeys(PLACES, 0)
        self.position = dict.fromkeys(PLACES, 0)
        self.notes = {}
        self.pending_notes = {}
        self.log = None

    @initialize(memory_bytes_max=st.sampled_from([0, 400, 1 << 20]))
    def open(self, memory_bytes_max):
        import tempfile  # noqa: PLC0415 - every example has a directory of its own

        self.folder = tempfile.TemporaryDirectory()
        self.memory_bytes_max = memory_bytes_max
        self._open()

    def _open(self):
        self.log = opened(Path(self.folder.name), memory_bytes_max=self.memory_bytes_max)
        for where in PLACES:
            self.log.follow(where, self.committed[where])
            self.position[where] = self.committed[where]

    @rule(where=st.sampled_from(PLACES), key=st.none() | st.binary(max_size=3), values=st.lists(st.binary(max_size=40)))
    def append(self, where, key, values):
        for value in values:
            expected = len(self.written[where]) + len(self.pending[where])
            assert self.log.append(where, key, value, 2.5) == expected
            self.pending[where].append((key, value))

    @rule(name=st.sampled_from("ab"), value=st.none() | st.binary(max_size=3))
    def note(self, name, value):
        self.log.note(name, value)
        self.pending_notes[name] = value

    @rule()
    def flush(self):
        grown = self.log.flush()
        assert set(grown) == {where for where in PLACES if self.pending[where]}
        for where in PLACES:
            self.written[where] += self.pending[where]
            self.pending[where] = []
        self.notes |= self.pending_notes
        self.pending_notes = {}

    @rule(where=st.sampled_from(PLACES), count=st.integers(1, 30))
    def take(self, where, count):
        for _ in range(count):
            record = self.log.take(where)
            at = self.position[where]
            if at == len(self.written[where]):
                assert record is None
                return
            assert (record.offset, record.key, record.value) == (at, *self.written[where][at])
            assert record.timestamp == 2.5
            self.position[where] += 1
            assert self.log.position(where) == self.position[where]

    @rule(where=st.sampled_from(PLACES), share=st.floats(0, 1))
    def commit(self, where, share):
        first, last = self.committed[where], self.position[where]
        offset = first + round((last - first) * share)
        self.log.commit({where: offset})
        self.committed[where] = offset

    @rule(where=st.sampled_from(PLACES))
    def seek_to_what_is_committed(self, where):
        self.log.follow(where, self.committed[where])
        self.position[where] = self.committed[where]

    @rule()
    def reopen(self):
        self.log.close()  # flushes
        for where in PLACES:
            self.written[where] += self.pending[where]
            self.pending[where] = []
        self.notes |= self.pending_notes
        self.pending_notes = {}
        self._open()

    @invariant()
    def the_log_says_what_the_lists_say(self):
        if self.log is None:
            return
        for where in PLACES:
            assert self.log.begin(where) == self.committed[where]
            assert self.log.end(where) == len(self.written[where]) + len(self.pending[where])
            assert (self.log.committed(where) or 0) == self.committed[where]
            kept = self.log.read(where, 0, records_max=10_000, bytes_max=1 << 30)
            assert [(r.key, r.value) for r in kept] == self.written[where][self.committed[where] :]
            assert [r.offset for r in kept] == list(range(self.committed[where], len(self.written[where])))
        for name in "ab":
            assert self.log.noted(name) == self.notes.get(name)
        assert self.log._tail_bytes == sum(r.size_bytes for t in self.log._tails.values() for r in t.records)

    def teardown(self):
        if self.log is not None:
            self.log.close()
            self.folder.cleanup()


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


# -- memory


def test_what_does_not_fit_in_memory_is_read_back_in_order_once(tmp_path):
    log = opened(tmp_path, memory_bytes_max=2000)
    log.follow(WHERE, 0)
    values = [b"%d" % number for number in range(1000)]
    append(log, *values[:600])
    assert log._tail_bytes < 2000 + 200
    found = [log.take(WHERE).value for _ in range(300)]
    append(log, *values[600:])
    found += [record.value for record in taken(log)]
    assert found == values
    assert log._tail_bytes == 0
    log.close()


def test_a_reader_that_has_fallen_behind_and_caught_up_reads_from_memory_again(tmp_path):
    log = opened(tmp_path, memory_bytes_max=400)
    log.follow(WHERE, 0)
    append(log, *[b"x"] * 50)
    assert len(taken(log)) == 50
    append(log, b"y")
    assert [record.value for record in log._tails[WHERE].records] == [b"y"]
    log.close()


def test_what_nobody_follows_costs_no_memory(log):
    assert append(log, b"x" * 1000) == [0]
    assert log._tail_bytes == 0
    assert log.position(WHERE) is None


def test_nobody_sees_a_record_before_it_is_written(log):
    log.follow(WHERE, 0)
    log.append(WHERE, None, b"x", 1.0)
    assert log.take(WHERE) is None
    assert log.read(WHERE, 0, records_max=10, bytes_max=100) == []
    assert set(log.flush()) == {WHERE}
    assert log.take(WHERE).value == b"x"
    assert not log.flush()


def test_one_record_is_read_however_large_it_is(log):
    append(log, b"x" * 10_000, b"y")
    assert len(log.read(WHERE, 0, records_max=10, bytes_max=1)) == 1


# -- topics that users read


def test_a_topic_without_an_agent_is_kept_up_to_a_bound(tmp_path):
    log = opened(tmp_path, kept_records_max=100)
    for start in range(0, 3000, 500):
        append(log, *[b"x"] * 500)
        assert log.end(WHERE) - log.begin(WHERE) <= 100 + 1000
        assert start + 500 == log.end(WHERE)
    begin = log.begin(WHERE)
    assert begin > 1000
    assert log.read(WHERE, 0, records_max=1, bytes_max=1)[0].offset == begin
    log.close()
    log = opened(tmp_path)
    assert (log.begin(WHERE), log.end(WHERE)) == (begin, 3000)
    log.close()


def test_offsets_go_on_where_everything_was_committed(tmp_path):
    log = opened(tmp_path)
    append(log, *[b"x"] * 5)
    log.commit({WHERE: 5})
    log.close()
    log = opened(tmp_path)
    assert (log.begin(WHERE), log.end(WHERE)) == (5, 5)
    assert append(log, b"y") == [5]
    log.close()


def test_topics_do_not_mix(log):
    for number, where in enumerate(PLACES):
        append(log, b"%d" % number, where=where)
    for number, where in enumerate(PLACES):
        assert [r.value for r in log.read(where, 0, records_max=9, bytes_max=99)] == [b"%d" % number]
    assert log.read(Partition("nobody", 0), 0, records_max=9, bytes_max=99) == []


# -- refusals


def test_a_second_process_is_refused_and_told_what_to_do(tmp_path, log):
    code = f"""
        from pathlib import Path
        from topology.embedded_log import Log
        from topology.errors import Refusal
        try:
            Log(Path({str(tmp_path)!r}), memory_bytes_max=1, kept_records_max=1)
        except Refusal as refusal:
            print(refusal)
    """
    said = ran(code)
    assert "another process is using the data directory" in said.stdout, said
    assert "--data" in said.stdout
    assert append(log, b"x") == [0]  # and the first goes on


def test_another_number_of_partitions_is_refused(log):
    with pytest.raises(Refusal, match=r"has 2 partitions for topic 't', the settings say 3: set partitions to 2"):
        log.create_topic("t", 3)


def test_another_format_is_refused_and_the_directory_let_go(tmp_path):
    opened(tmp_path).close()
    for raw, message in ((msgspec.msgpack.encode({"format": 9, "topics": {}}), "has format 9"), (b"\xc1", "is no log")):
        with_raw(tmp_path, raw)
        with pytest.raises(Refusal, match=message):
            opened(tmp_path)
    with_raw(tmp_path, msgspec.msgpack.encode({"format": 1, "topics": {}}))
    opened(tmp_path).close()


def with_raw(path, meta):
    options = Options(raw_mode=True)
    db = Rdict(str(path), options)
    db[b"!meta"] = meta
    db.close()


# -- other processes


def test_a_reader_sees_what_another_process_writes_while_it_writes(tmp_path):
    code = f"""
        import sys
        from pathlib import Path
        from topology.embedded_log import Log, Partition
        log = Log(Path({str(tmp_path / "log")!r}), memory_bytes_max=1, kept_records_max=10**6)
        where = Partition("t", 0)
        log.create_topic("t", 2)
        for count in map(int, sys.stdin):
            for _ in range(count):
                log.append(where, None, b"%d" % log.end(where), 1.0)
            log.flush()
            print(log.end(where), flush=True)
        log.commit({{where: 7}})
        print("committed", flush=True)
        sys.stdin.close()
        import os, time
        time.sleep(60)
    """
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        reader, seen = None, []
        for count in (3, 5, 400):
            writer.stdin.write(f"{count}\n")
            writer.stdin.flush()
            end = int(writer.stdout.readline())
            reader = reader or LogReader(tmp_path / "log", tmp_path / "scratch")
            reader.refresh()
            assert reader.end(WHERE) == end
            while found := reader.read(WHERE, len(seen), records_max=100, bytes_max=1 << 20):
                seen += found
            assert [record.value for record in seen] == [b"%d" % number for number in range(end)]
        writer.stdin.close()
        assert writer.stdout.readline() == "committed\n"
        reader.refresh()
        assert reader.begin(WHERE) == 7
        reader.close()
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()


def test_a_reader_of_nothing_says_so(tmp_path):
    with pytest.raises(Refusal, match="there is no log in"):
        LogReader(tmp_path, tmp_path / "scratch")


WRITER = """
    import os, signal, sys, time
    from pathlib import Path
    from topology.embedded_log import Log, Partition
    path, kill_after_s = Path(sys.argv[1]), float(sys.argv[2])
    log = Log(path, memory_bytes_max=1000, kept_records_max=10**6)
    log.create_topic("t", 2)
    where = Partition("t", 0)
    log.follow(where, log.committed(where) or 0)
    signal.setitimer(signal.ITIMER_REAL, kill_after_s)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    while True:
        for _ in range(5):
            offset = log.append(where, b"k", b"v%d" % log.end(where) + b"." * 3000, 1.0)
        log.note("fed", b"%d" % offset)
        log.flush()
        os.write(1, b"written %d\\n" % offset)
        for _ in range(3):
            record = log.take(where)
        log.commit({where: record.offset + 1})
        os.write(1, b"committed %d\\n" % (record.offset + 1))
"""


def test_what_was_said_to_be_written_survives_kill_9_at_any_moment(tmp_path):
    """Twenty kills of one directory's writer: nothing that was promised is lost, no offset is given twice."""
    moments, written, committed = random.Random(7), -1, 0
    for _ in range(20):
        writer = ran(WRITER, str(tmp_path), str(moments.uniform(0.001, 0.06)))
        assert writer.returncode == -signal.SIGKILL, writer.stderr
        promised = [line.split() for line in writer.stdout.splitlines()]
        written = max([written, *(int(number) for what, number in promised if what == "written")])
        committed = max([committed, *(int(number) for what, number in promised if what == "committed")])
        log = opened(tmp_path)
        assert log.end(WHERE) > written
        assert log.committed(WHERE) or committed == 0
        assert (log.committed(WHERE) or 0) >= committed
        kept = log.read(WHERE, 0, records_max=1_000_000, bytes_max=1 << 40)
        assert [r.offset for r in kept] == list(range(log.committed(WHERE) or 0, log.end(WHERE)))
        assert all(r.value.startswith(b"v%d." % r.offset) for r in kept)
        # The note stands exactly when its records do.
        assert int(log.noted("fed") or -1) == log.end(WHERE) - 1
        log.close()
    assert written > 100


# -- keys


# From Kafka's own UtilsTest.testMurmur2.
@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_where_kafkas_own_hash_sends_it(key, hashed):
    for partitions in (1, 3, 4, 100):
        assert partition_of(key, partitions) == (hashed & 0x7FFFFFFF) % partitions


@given(st.binary(max_size=60), st.integers(1, 64))
def test_a_key_goes_where_aiokafka_sends_it(key, partitions):
    every = list(range(partitions))
    assert partition_of(key, partitions) == DefaultPartitioner()(key, every, every)


def test_no_key_has_no_partition_of_its_own():
    assert partition_of(None, 4) is None
