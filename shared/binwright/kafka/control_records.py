"""Messages of the control topics as Kafka records; unreadable records are logged and skipped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import structlog

from binwright.protocol import wire
from binwright.protocol.commands import Command
from binwright.protocol.errors import (
    BrokerUnavailable,
    MalformedMessage,
    RecordTooLarge,
    UnknownKind,
)
from binwright.protocol.measurements import Measurement
from binwright.protocol.messages import AnyMessage, Inbound
from binwright.protocol.parts import RECORD_BYTES, PartialMessages, is_part, split_message
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record

log = structlog.get_logger()

CONTROLLER_PARTITION = 0
"""The partition of the metadata topic that controllers read; see docs/design/protocol.md."""

METRICS_PARTITION = 0
"""The partition of the metrics topic: all measurements, in order."""

NEEDS_PARTITION = 0
"""The partition of the needs topic."""

LANDING_PARTITIONS = 8
"""Partitions of a group's landing topic; each table's announcements are in one of them."""

METADATA_CONFIG = {
    # Deletion by age would remove a long-lived consumer's Hello.
    "cleanup.policy": "compact",
    # A consumer reports each second, and a new controller reads the whole partition. A consumer
    # or controller that lags by more than this has been declared dead, or has stepped down.
    "min.compaction.lag.ms": str(10 * 60 * 1000),
    "segment.ms": str(10 * 60 * 1000),  # the active segment is not compacted
    "min.cleanable.dirty.ratio": "0.1",
}
"""Configuration of a group's metadata topic."""

LANDING_CONFIG = {"cleanup.policy": "delete", "retention.ms": str(4 * 24 * 3600 * 1000)}
"""Configuration of a group's landing topic: kept as long as staged files are."""

METRICS_CONFIG = {"retention.ms": str(7 * 24 * 3600 * 1000)}
"""Configuration of the metrics topic: a week can be recorded later."""

NEEDS_CONFIG = {
    "cleanup.policy": "compact,delete",  # a day after a group is gone, its record is deleted
    "retention.ms": str(24 * 3600 * 1000),
    "segment.ms": str(3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}
"""Configuration of the needs topic: one record for each group."""

SMALLEST_RECORD_BYTES = 10_000
"""A topic that refuses records of this size is misconfigured (max.message.bytes)."""

READ_S, RETRY_S = 5.0, 1.0

T = TypeVar("T")


class Decoder(Generic[T]):
    """Decodes the records of one partition for one reader."""

    def __init__(self, decode: Callable[[bytes | None], T]) -> None:
        """Decode values by `decode`, a function of `wire`."""
        self._decode = decode
        self._parts = PartialMessages()
        self._logged: set[str] = set()  # unknown kinds that were logged

    def decode(self, records: Iterable[Record]) -> Iterator[tuple[Record, T]]:
        """Yield the messages of `records`, in order; log and skip unreadable records.

        A message in parts is yielded with the record of its last part.
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
                if exc.reason not in self._logged:
                    log.warning("message.unknown", offset=record.offset, reason=exc.reason)
                self._logged.add(exc.reason)
            except MalformedMessage as exc:
                log.warning("message.malformed", offset=record.offset, reason=exc.reason)
            else:
                yield record, message


async def publish_message(
    bus: ControlTopics, topic: str, partition: int, message: AnyMessage
) -> int:
    """Append a message durably, in parts if necessary; return the offset of its last record.

    Raises:
        BrokerUnavailable: Not confirmed in time; all, some or none of its records may have been
            appended. Publishing it again is safe: a repeated message has no effect.
        TopicMissing: The topic or partition does not exist.
        RecordTooLarge: The topic refuses even records of `SMALLEST_RECORD_BYTES`.
    """
    key, value = wire.key(message), wire.encode(message)
    limit = RECORD_BYTES
    while True:
        try:
            for part in split_message(key, value, limit):
                offset = await bus.publish(topic, partition, *part)
        except RecordTooLarge as exc:
            limit = min(limit, len(value)) // 2
            if limit < SMALLEST_RECORD_BYTES:
                raise
            log.warning(
                "message.split", topic=topic, reason=str(exc), then=f"parts of {limit} bytes"
            )
        else:
            return offset


async def read_or_log(reader: Reader, event: str, **fields: str) -> Sequence[Record] | None:
    """Return the next records, or none after `READ_S`.

    During an outage it logs `event` with `fields`, waits `RETRY_S`, and returns None.
    """
    try:
        return await reader.read(READ_S)
    except BrokerUnavailable as exc:
        log.warning(event, **fields, reason=str(exc))
        await asyncio.sleep(RETRY_S)
        return None


async def _decoded(
    reader: Reader, decode: Callable[[bytes | None], T]
) -> AsyncIterator[tuple[Record, T]]:
    decoder = Decoder(decode)
    while True:
        for message in decoder.decode(await read_or_log(reader, "control_topic.unreachable") or ()):
            yield message


def inbound(reader: Reader) -> AsyncIterator[tuple[Record, Inbound]]:
    """Yield the messages of metadata partition 0, in order, without end."""
    return _decoded(reader, wire.decode_inbound)


def commands(reader: Reader) -> AsyncIterator[tuple[Record, Command]]:
    """Yield the commands of a slot's partition, in order, without end."""
    return _decoded(reader, wire.decode_command)


def measurements(reader: Reader) -> AsyncIterator[tuple[Record, Measurement]]:
    """Yield measurements, in order, without end."""
    return _decoded(reader, wire.decode_measurement)
