"""Committing in order what is acknowledged out of order.

Faust 0.15.3's own `_new_offset` commits past a message that is still being worked on when that message is the very
first after the committed offset (it tests `min(acked) - committed > 1` where `committed` is the *next* offset), or
when nothing has been committed yet. Killed then, the message would be lost. `tests/regressions/test_commit_order.py`
keeps the case. Both our consumers, embedded and Kafka, mix this in.
"""

from collections.abc import MutableMapping

from faust.types import TP, Message


class InOrderCommits:
    """A consumer that commits an offset only when everything before it is acknowledged."""

    _acked: MutableMapping[TP, list[int]]
    _acked_index: MutableMapping[TP, set[int]]
    _committed_offset: MutableMapping[TP, int | None]

    def _start_of(self, tp: TP) -> int:
        """Where reading of this partition began, for as long as nothing has been committed."""
        raise NotImplementedError

    def ack(self, message: Message) -> bool:
        """Remember that a message is done; called when its last reader has acknowledged it."""
        if message.acked:
            return False
        message.acked = True
        tp, offset = message.tp, message.offset
        index = self._acked_index[tp]
        committed = self._committed_offset[tp]
        if offset in index or (committed is not None and offset < committed):
            return False
        index.add(offset)
        self._acked[tp].append(offset)
        return True

    def _new_offset(self, tp: TP) -> int | None:
        """Return the offset after the last message of the acknowledged run, None if there is no such run."""
        acked = self._acked[tp]
        if not acked:
            return None
        committed = self._committed_offset[tp]
        start = self._start_of(tp) if committed is None else committed
        acked.sort()
        run = 0
        while run < len(acked) and acked[run] <= start:
            start = max(start, acked[run] + 1)
            run += 1
        if run == 0:
            return None
        self._acked_index[tp].difference_update(acked[:run])
        del acked[:run]
        return start

    def done_until(self, tp: TP) -> int:
        """Return the offset before which everything has been committed."""
        committed = self._committed_offset[tp]
        return self._start_of(tp) if committed is None else committed

    def done_beyond(self, tp: TP) -> int:
        """Count messages after that which are acknowledged."""
        return len(self._acked[tp])
