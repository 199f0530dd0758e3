"""Reading control topics: records to messages, and what is none never stops a loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeVar

import structlog

from binwright.core import wire
from binwright.core.errors import BrokerUnavailable, MalformedMessage, UnknownKind
from binwright.core.messages import Command, Inbound, Measurement
from binwright.core.ports import Reader, Record

log = structlog.get_logger()

INBOX = 0
"""The controllers' own partition of the metadata topic."""

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

T = TypeVar("T")


def readable(
    records: Iterable[Record], decode: Callable[[bytes | None], T], told: set[str]
) -> Iterator[tuple[Record, T]]:
    """Yield what can be read of `records`, in order; say what cannot, and pass over it.

    Args:
        records: Of one partition.
        decode: One of `wire`'s.
        told: The kinds that are unknown to us and have been told of: once is enough. It grows.
    """
    for record in records:
        try:
            message = decode(record.value)
        except UnknownKind as exc:
            if exc.reason not in told:
                log.warning("message.unknown", offset=record.offset, reason=exc.reason)
            told.add(exc.reason)
        except MalformedMessage as exc:
            log.warning("message.malformed", offset=record.offset, reason=exc.reason)
        else:
            yield record, message


async def _decoded(
    reader: Reader, decode: Callable[[bytes | None], T]
) -> AsyncIterator[tuple[Record, T]]:
    told: set[str] = set()
    while True:
        try:
            records = await reader.read(timeout_s=5.0)
        except BrokerUnavailable as exc:
            log.warning("mailbox.unreachable", reason=str(exc))
            await asyncio.sleep(1.0)
            continue
        for said in readable(records, decode, told):
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
