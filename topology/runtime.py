"""Where our Faust app differs from a stock one, and why: each class is one difference.

Nothing here changes what agents, tables or streams mean.
"""

from typing import Any

import faust
from faust.sensors import Monitor
from faust.tables.manager import TableManager
from faust.transport.conductor import Conductor
from faust.types import TP, Message
from faust.types.transports import ConsumerCallback


class PromptTableManager(TableManager):
    """Starts at once: Faust waits a second for tables that autodiscovery may still find; ours are declared."""

    async def on_start(self) -> None:
        """Open the tables and begin recovery."""
        await self._update_channels()
        await self.recovery.start()


class LeanConductor(Conductor):
    """Hands messages to the channels that read them, bytes as they are.

    Faust's own takes a lock, waits for two events and decodes with a coroutine, for every message. Our topics carry
    bytes, the lock guards a map that changes only with the assignment, and a full channel holds its own partition.
    """

    def _compile_message_handler(self) -> ConsumerCallback:
        handlers = self._tp_to_callback

        async def on_message(message: Message) -> None:
            await handlers[message.tp](message)

        return on_message

    def _build_handler(self, tp: TP, channels: Any) -> ConsumerCallback:
        app, consumer = self.app, self.app.consumer

        def on_pressure_high() -> None:
            consumer.on_buffer_full(tp)

        def on_pressure_drop() -> None:
            consumer.on_buffer_drop(tp)

        async def on_message(message: Message) -> None:
            await app.flow_control.acquire()
            readers = tuple(channels)
            message.incref(len(readers))
            event = faust.Event(app, message.key, message.value, None, message)
            for channel in readers:
                if channel.queue.full():
                    await channel.put(event)
                else:
                    channel.queue.put_nowait_enhanced(
                        event, on_pressure_high=on_pressure_high, on_pressure_drop=on_pressure_drop
                    )

        return on_message


class QuietMonitor(Monitor):
    """Counts nothing per message: Faust's own monitor takes 10 % of a worker. Ours counts in `events`."""

    def _nothing(self, *_: Any, **__: Any) -> None: ...

    on_message_in = on_message_out = _nothing
    on_stream_event_in = on_stream_event_out = _nothing
    on_table_get = on_table_set = on_table_del = _nothing
    on_send_initiated = on_send_completed = _nothing


class UnloggedTable(faust.Table[bytes, bytes]):
    """A table of local mode. Its RocksDB is the durable state of the one process there is.

    A changelog would write every entry twice, to be read by nobody. In a cluster tables are stock
    `faust.Table`s with changelog topics and standbys.
    """

    def _send_changelog(self, event: Any, key: Any, value: Any, *_: Any, **__: Any) -> None: ...

    def send_changelog(self, *_: Any, **__: Any) -> Any:
        """Write no changelog."""
