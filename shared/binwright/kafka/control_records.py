"""Messages of the control topics as Kafka records; unreadable records are logged and skipped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar
from zlib import crc32

from binwright.protocol.errors import BrokerUnavailable, MalformedMessage, UnknownKind
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import Reader, Record
from binwright.protocol.wire import PartialMessages, is_part, message_key
from binwright.runtime.logs import log

MESSAGE_UNKNOWN = LogEvent.warning(
    "message.unknown", "A message has a kind that this version does not know and was skipped."
)
MESSAGE_MALFORMED = LogEvent.warning(
    "message.malformed", "A record on a control topic is not a message and was skipped."
)
CONTROL_TOPIC_UNREACHABLE = LogEvent.warning(
    "control_topic.unreachable",
    "A control topic cannot be read, or its partitions counted; it is tried again.",
)

CONTROLLER_PARTITION = 0
"""The partition of the metadata topic: the group's state; see docs/design/protocol.md."""

ORDERS_PARTITION = 0
"""The partition of the orders topic: one for all, so that the last order is the newest."""

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

COMMANDS_CONFIG = METADATA_CONFIG
"""Configuration of a group's commands topic: of each slot the last command of each kind is kept."""

ORDERS_CONFIG = {"cleanup.policy": "compact"}
"""Configuration of a group's orders topic: the newest order about each thing is kept for ever."""

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


READ_S, RETRY_S = 5.0, 1.0
MOST_REASONS = 100  # unknown kinds that are logged, each once

_REPORT = b"report"  # the kind of a report, in the record's key

T = TypeVar("T")


def landing_partition(table: str) -> int:
    """Return the partition of the landing topic that is about a table."""
    return crc32(table.encode()) % LANDING_PARTITIONS


class HistoryFilter:
    """Drops the superseded reports before an offset of metadata partition 0.

    A consumer reports each second, and Kafka compacts late. Of consecutive reports of one slot only
    the last one counts; the others need not even be decoded. A report in parts is passed on
    complete. Records of one slot keep their order; a report may come after later records of other
    slots. Nothing depends on that before a controller's own claim, and `end` is not behind it.
    """

    def __init__(self, end: int) -> None:
        """Pass on all records from `end` on."""
        self._end = end
        self._last_reports: dict[bytes, Record] = {}  # slot -> its last report

    def passed(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return what counts of the next records; with none to come for a while, the last reports.

        An empty result may still be followed by records before `end`.
        """
        if not self._last_reports and records and records[0].offset >= self._end:
            return records
        passed: list[Record] = []
        for record in records:
            if record.offset >= self._end:
                passed += self._released()
            passed += self._take(record)
        if not records or records[-1].offset + 1 >= self._end:
            passed += self._released()
        return passed

    def _take(self, record: Record) -> list[Record]:
        name, _, slot = (message_key(record.key) or b"").partition(b"/")
        if record.offset < self._end and name == _REPORT and not is_part(record.key):
            self._last_reports[slot] = record
            return []
        last = self._last_reports.pop(slot, None)
        return [record] if last is None else [last, record]

    def _released(self) -> list[Record]:
        last = sorted(self._last_reports.values(), key=lambda record: record.offset)
        self._last_reports = {}
        return last


class Decoder(Generic[T]):
    """Decodes the records of one partition for one reader."""

    def __init__(self, decode: Callable[[bytes | None], T], *, history_end: int = 0) -> None:
        """Decode values by `decode`, of the topic's module in `protocol`.

        Before `history_end`, reports that others supersede are left out; see `HistoryFilter`.
        """
        self._decode = decode
        self._history = HistoryFilter(history_end) if history_end else None
        self._parts = PartialMessages()
        self._logged: set[str] = set()  # unknown kinds that were logged

    @property
    def has_parts(self) -> bool:
        """Whether parts of a message were read, and others not yet."""
        return bool(self._parts)

    def decode(self, records: Iterable[Record]) -> Iterator[tuple[Record, T]]:
        """Yield the messages of `records`, in order; log and skip unreadable records.

        A message in parts is yielded with the record of its last part.
        """
        for record in self._history.passed(list(records)) if self._history else records:
            try:
                value = record.value
                if is_part(record.key):
                    value = self._parts.join(record.key or b"", value)
                    if value is None:
                        continue
                message = self._decode(value)
            except UnknownKind as exc:
                if exc.reason not in self._logged and len(self._logged) < MOST_REASONS:
                    log(MESSAGE_UNKNOWN, offset=record.offset, reason=exc.reason)
                    self._logged.add(exc.reason)
            except MalformedMessage as exc:
                log(MESSAGE_MALFORMED, offset=record.offset, reason=exc.reason)
            else:
                yield record, message


async def read_or_log(reader: Reader, event: LogEvent, **fields: str) -> Sequence[Record] | None:
    """Return the next records, or none after `READ_S`.

    During an outage it logs `event` with `fields`, waits `RETRY_S`, and returns None.
    """
    try:
        return await reader.read(READ_S)
    except BrokerUnavailable as exc:
        log(event, **fields, reason=str(exc))
        await asyncio.sleep(RETRY_S)
        return None


async def messages(
    reader: Reader,
    decode: Callable[[bytes | None], T],
    history_end: int = 0,
    beat: Callable[[], None] = lambda: None,
) -> AsyncIterator[tuple[Record, T]]:
    """Yield the messages of a control topic's partition, in order, without end; see `Decoder`.

    `beat` is called after each read, whether or not it has brought records.
    """
    decoder = Decoder(decode, history_end=history_end)
    while True:
        for message in decoder.decode(await read_or_log(reader, CONTROL_TOPIC_UNREACHABLE) or ()):
            yield message
        beat()
