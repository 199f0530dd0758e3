"""Metadata partition 0 from its beginning, without the reports that a later one makes old.

A consumer reports each second, and Kafka compacts late. Of reports of one slot with nothing else of
that slot between them only the last says anything; the others need not even be decoded. A report in
parts is passed on whole.
"""

from collections.abc import Sequence

from binwright.core.parts import is_part, whole_key
from binwright.core.ports import Reader, Record

_REPORT = b"report"


class History:
    """A `Reader` that passes over what is old of the records before `end`.

    Of one slot, order is kept; of several, a report may come after later records of others. Nothing
    depends on that before a controller's own claim, and `end` lies there.
    """

    def __init__(self, reader: Reader, end: int) -> None:
        """Read by `reader` from the beginning; what stands from `end` on is passed on whole."""
        self._reader, self._end = reader, end
        self._held: dict[bytes, Record] = {}  # slot -> its last report

    @property
    def position(self) -> int:
        """Fit `Reader.position`."""
        return self._reader.position

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Fit `Reader.read`; nothing does not mean that there is nothing yet."""
        records = await self._reader.read(timeout_s)
        if records and records[0].offset >= self._end and not self._held:
            return records  # as ever after
        passed: list[Record] = []
        for record in records:
            if record.offset >= self._end:
                passed += self._released()
            passed += self._take(record)
        if not records or self._reader.position >= self._end:
            passed += self._released()
        return passed

    async def close(self) -> None:
        """Fit `Reader.close`."""
        await self._reader.close()

    def _take(self, record: Record) -> list[Record]:
        name, _, slot = (whole_key(record.key) or b"").partition(b"/")
        if record.offset < self._end and name == _REPORT and not is_part(record.key):
            self._held[slot] = record
            return []
        held = self._held.pop(slot, None)
        return [record] if held is None else [held, record]

    def _released(self) -> list[Record]:
        held = sorted(self._held.values(), key=lambda record: record.offset)
        self._held = {}
        return held
