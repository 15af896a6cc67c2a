"""The process that parses: reads jobs on standard input, writes results on standard output, one for one, in order.

Started by `parser_pool`. It imports what reading a page needs and nothing else, holds no state, and may be killed
at any time.
"""

import contextlib
import gc
import resource
import sys
from typing import BinaryIO, Final

import msgspec

from agents.clients.framing import FRAME, framed
from agents.reading import language
from agents.reading.page import Reading, read
from agents.reading.rules import RuleError, SiteRules
from topology.deflate import expand_start
from topology.records import Wire

_MEMORY_BYTES_MAX: Final = 2 << 30  # of address space
_COLLECT_AFTER: Final = 50_000


class Job(Wire, frozen=True):
    """One body to read. `body` is a raw deflate stream without its final block, as in `Page`."""

    url: str
    status: int
    content_type: str | None
    body: bytes
    bytes_max: int


class Result(Wire, frozen=True):
    """What was read, or why it could not be."""

    reading: Reading | None = None
    error: str | None = None


def work(source: BinaryIO, sink: BinaryIO, rules: SiteRules | None) -> None:
    """Answer jobs until the source ends."""
    decode, encode = msgspec.msgpack.Decoder(Job).decode, msgspec.msgpack.Encoder().encode
    _write(sink, encode(Result()))  # ready
    while len(head := source.read(FRAME)) == FRAME:
        job = decode(source.read(int.from_bytes(head, "big")))
        # Each answer goes out at once: what is not answered when this process dies is blamed for it.
        _write(sink, encode(answer_to(job, rules)))


def _write(sink: BinaryIO, message: bytes) -> None:
    sink.write(framed(message))
    sink.flush()


def answer_to(job: Job, rules: SiteRules | None) -> Result:
    """Read one body; whatever goes wrong is a value."""
    try:
        body = expand_start(job.body, bytes_max=job.bytes_max)
        return Result(read(body, url=job.url, content_type=job.content_type, status=job.status, rules=rules))
    except Exception as error:  # noqa: BLE001 - a page that breaks the parser is an outcome, not our end
        return Result(error=f"{type(error).__name__}: {error}"[:500])


def main() -> None:
    """Work on standard input and output. The first message is the site rules, as JSON."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # a stray print must not break the protocol
    _bound_memory()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)  # a page leaves hardly any cycles
    raw = source.read(int.from_bytes(source.read(FRAME), "big"))
    try:
        config = msgspec.json.decode(raw, type=dict[str, dict[str, dict[str, str]]])
        rules = SiteRules(config) if config else None
    except (RuleError, msgspec.DecodeError) as error:
        _write(sink, msgspec.msgpack.encode(Result(error=f"the site rules cannot be used: {error}")))
        return
    language.load()  # most of a second: before this process is ready, not before some page
    work(source, sink, rules)


def _bound_memory() -> None:
    """Have the page that asks for too much memory fail, not the machine."""
    with contextlib.suppress(ValueError, OSError):  # not every system has this limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))


if __name__ == "__main__":
    main()
