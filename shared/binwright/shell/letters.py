"""Messages on control topics: to records and back, and what is none never stops a loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import structlog

from binwright.core import wire
from binwright.core.errors import BrokerUnavailable, MalformedMessage, RecordTooLarge, UnknownKind
from binwright.core.messages import Command, Inbound, Measurement, Message
from binwright.core.parts import RECORD_BYTES, Parts, cut, is_part
from binwright.core.ports import Bus, Reader, Record

log = structlog.get_logger()

INBOX = 0
"""The controllers' own partition of the metadata topic."""

METRICS_PARTITION = 0
"""Of the metrics topic: all that is measured, in order."""

NEEDS_PARTITION = 0
"""Of the needs topic: what each group's controller wants measured."""

LANDING_PARTITIONS = 8
"""Of a group's landing topic; a table's announcements are all in one of them."""

METADATA_CONFIG = {
    # Deletion by age would remove a long-lived consumer's Hello.
    "cleanup.policy": "compact",
    # A consumer reports each second, and a new controller reads all that is there. A reader that
    # lags for longer than this was declared dead, or deposed, long ago.
    "min.compaction.lag.ms": str(10 * 60 * 1000),
    "segment.ms": str(10 * 60 * 1000),  # what is being written is not compacted
    "min.cleanable.dirty.ratio": "0.1",
}
"""Of a group's hand-over topic."""

LANDING_CONFIG = {"cleanup.policy": "delete", "retention.ms": str(4 * 24 * 3600 * 1000)}
"""Of a group's landing topic: as long as staged files are kept. All of it can be made again."""

METRICS_CONFIG = {"retention.ms": str(7 * 24 * 3600 * 1000)}
"""Of the metrics topic: a week of it is the recorded stream that replay reads."""

NEEDS_CONFIG = {
    "cleanup.policy": "compact,delete",  # of groups that are no more nothing is left after a day
    "retention.ms": str(24 * 3600 * 1000),
    "segment.ms": str(3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}
"""Of the topic in which controllers ask for measurements: a record for each group."""

SMALLEST_RECORD_BYTES = 10_000
"""A topic that takes not even these is set up wrongly: its max.message.bytes."""

READ_S, RETRY_S = 5.0, 1.0

T = TypeVar("T")


class Decoder(Generic[T]):
    """What one reader of one partition understands of what stands there."""

    def __init__(self, decode: Callable[[bytes | None], T]) -> None:
        """Read by `decode`, one of `wire`'s."""
        self._decode = decode
        self._parts = Parts()
        self._told: set[str] = set()  # unknown kinds that have been told of: once is enough

    def readable(self, records: Iterable[Record]) -> Iterator[tuple[Record, T]]:
        """Yield what can be read of `records`, in order; say what cannot, and pass over it.

        A message in parts comes with its last part.
        """
        for record in records:
            try:
                value = record.value
                if is_part(record.key):
                    value = self._parts.join(record.key or b"", value)
                    if value is None:
                        continue
                message = self._decode(value)
            except UnknownKind as exc:
                if exc.reason not in self._told:
                    log.warning("message.unknown", offset=record.offset, reason=exc.reason)
                self._told.add(exc.reason)
            except MalformedMessage as exc:
                log.warning("message.malformed", offset=record.offset, reason=exc.reason)
            else:
                yield record, message


async def post(bus: Bus, topic: str, partition: int, message: Message) -> int:
    """Append a message durably, in parts if need be; return its offset, that of its last record.

    Raises:
        BrokerUnavailable: Not confirmed in time; all, parts or nothing may be there. A message
            that stands there twice changes nothing.
        TopicMissing: The topic or partition does not exist.
        RecordTooLarge: The topic takes not even small records.
    """
    key, value = wire.key(message), wire.encode(message)
    limit = RECORD_BYTES
    while True:
        try:
            for part in cut(key, value, limit):
                offset = await bus.publish(topic, partition, *part)
        except RecordTooLarge as exc:
            limit = min(limit, len(value)) // 2
            if limit < SMALLEST_RECORD_BYTES:
                raise
            log.warning("message.cut", topic=topic, reason=str(exc), then=f"parts of {limit} bytes")
        else:
            return offset


async def read_on(reader: Reader, failing: str, **told: str) -> Sequence[Record] | None:
    """Return what has come since the last read, or nothing after some seconds.

    None after an outage: it is logged as `failing` with what is `told`, and a second has passed.
    """
    try:
        return await reader.read(READ_S)
    except BrokerUnavailable as exc:
        log.warning(failing, **told, reason=str(exc))
        await asyncio.sleep(RETRY_S)
        return None


async def _decoded(
    reader: Reader, decode: Callable[[bytes | None], T]
) -> AsyncIterator[tuple[Record, T]]:
    decoder = Decoder(decode)
    while True:
        for said in decoder.readable(await read_on(reader, "mailbox.unreachable") or ()):
            yield said


def inbound(reader: Reader) -> AsyncIterator[tuple[Record, Inbound]]:
    """Yield what stands in metadata partition 0, in order, for ever."""
    return _decoded(reader, wire.decode_inbound)


def commands(reader: Reader) -> AsyncIterator[tuple[Record, Command]]:
    """Yield what a slot is told, in order, for ever."""
    return _decoded(reader, wire.decode_command)


def measurements(reader: Reader) -> AsyncIterator[tuple[Record, Measurement]]:
    """Yield what the monitor says, in order, for ever."""
    return _decoded(reader, wire.decode_measurement)
