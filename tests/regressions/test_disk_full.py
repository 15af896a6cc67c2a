"""A disk that takes nothing more: what was sent is held, and nothing is lost, skipped or acknowledged by it."""

import asyncio

import pytest

from topology.embedded_log import Log, Partition

WHERE = Partition("t", 0)


class Full:
    """A RocksDB that refuses to write."""

    def __init__(self, db):
        self.db = db

    def __getattr__(self, name):
        return getattr(self.db, name)

    def write(self, _):
        raise Exception("IO error: No space left on device")  # noqa: TRY002 - as rocksdict raises it


def test_what_cannot_be_written_is_written_when_it_can_with_its_note(tmp_path):
    """A batch used to be forgotten when its write failed: records lost, offsets skipped, notes gone."""
    log = Log(tmp_path, memory_bytes_max=1000, kept_records_max=10)
    log.create_topic("t", 1)
    log.follow(WHERE, 0)
    log.append(WHERE, None, b"a", 1.0)
    log.note("fed", b"1")
    db, log._db = log._db, Full(log._db)
    for _ in range(2):
        with pytest.raises(Exception, match="No space left"):
            log.flush()
    assert log.take(WHERE) is None
    assert log.append(WHERE, None, b"b", 1.0) == 1
    log._db = db
    assert set(log.flush()) == {WHERE}
    assert [log.take(WHERE).value for _ in range(2)] == [b"a", b"b"]
    assert log.noted("fed") == b"1"
    log.close()


def test_a_commit_that_cannot_be_written_deletes_nothing(tmp_path):
    log = Log(tmp_path, memory_bytes_max=1000, kept_records_max=10)
    log.create_topic("t", 1)
    for _ in range(3):
        log.append(WHERE, None, b"a", 1.0)
    log.flush()
    db, log._db = log._db, Full(log._db)
    with pytest.raises(Exception, match="No space left"):
        log.commit({WHERE: 2})
    log._db = db
    assert log.begin(WHERE) == 0
    log.commit({WHERE: 2})
    assert [record.offset for record in log.read(WHERE, 0, records_max=9, bytes_max=9)] == [2]
    log.close()


def test_a_send_waits_for_the_disk_and_is_done_when_it_is_written(tmp_path, monkeypatch):
    """It used to be neither: its future was never done, and its stage waited for ever."""
    monkeypatch.setattr("topology.embedded._HOLD_S", 0.02)

    async def story():
        import faust  # noqa: PLC0415 - not for the tests above
        from faust.transport.drivers import TRANSPORTS  # noqa: PLC0415

        TRANSPORTS.aliases.setdefault("embedded", "topology.embedded:Transport")
        app = faust.App("t", broker=f"embedded://{tmp_path}", autodiscover=False, datadir=str(tmp_path / "state"))
        log = app.transport.log
        log.create_topic("t", 1)
        await app.producer.start()
        db, log._db = log._db, Full(log._db)
        sent = [await app.producer.send("t", None, b"a", 0, 1.0, None) for _ in range(3)]
        await asyncio.sleep(0.1)
        assert not any(done.done() for done in sent)
        assert not await app.consumer._commit({("t", 0): 0})  # said again later; the worker goes on
        log._db = db
        assert [(await asyncio.wait_for(done, 1)).offset for done in sent] == [0, 1, 2]
        await app.producer.stop()
        app.transport.close()

    asyncio.run(story())


def test_reading_from_the_beginning_includes_what_is_not_written_yet(tmp_path):
    """The beginning of a topic with nothing on disk used to lie after the sends of this turn: they were never seen."""
    log = Log(tmp_path, memory_bytes_max=1000, kept_records_max=10)
    log.create_topic("t", 1)
    log.append(WHERE, None, b"a", 1.0)
    log.follow(WHERE, max(0, log.begin(WHERE)))
    log.flush()
    assert log.take(WHERE).value == b"a"
    log.close()
