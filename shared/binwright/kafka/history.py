"""Reads metadata partition 0 from its beginning without superseded reports.

A consumer reports each second, and Kafka compacts late. Of consecutive reports of one slot only the
last one counts; the others are not even decoded. A report in parts is passed on complete.
"""

from collections.abc import Sequence

from binwright.protocol.parts import is_part, message_key
from binwright.protocol.ports.kafka import Reader, Record

_REPORT = b"report"


class HistoryReader:
    """A `Reader` that skips superseded reports before `end`.

    Records of one slot keep their order; a report may come after later records of other slots.
    Nothing depends on that before a controller's own claim, and `end` is not behind it.
    """

    def __init__(self, reader: Reader, end: int) -> None:
        """Read by `reader` from the beginning; records from `end` on are all passed on."""
        self._reader, self._end = reader, end
        self._last_reports: dict[bytes, Record] = {}  # slot -> its last report

    @property
    def position(self) -> int:
        """See `Reader.position`."""
        return self._reader.position

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """See `Reader.read`; an empty result may still be followed by records before `end`."""
        records = await self._reader.read(timeout_s)
        if records and records[0].offset >= self._end and not self._last_reports:
            return records
        passed: list[Record] = []
        for record in records:
            if record.offset >= self._end:
                passed += self._released()
            passed += self._take(record)
        if not records or self._reader.position >= self._end:
            passed += self._released()
        return passed

    async def close(self) -> None:
        """See `Reader.close`."""
        await self._reader.close()

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
