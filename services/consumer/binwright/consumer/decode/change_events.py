"""Takes change events apart: the row that is meant, what was done, and where in the source."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.masking import part_of
from binwright.consumer.decode.new_fields import CountedFields
from binwright.consumer.decode.one_by_one import Decoded, Fields
from binwright.tables.columns import KAFKA, KAFKA_KEY, Columns, folded, parse_path
from binwright.tables.envelopes import (
    AFTER,
    BEFORE,
    DELETED,
    EVENT_OP,
    EVENT_SOURCE,
    PAYLOAD,
    landed_columns,
)
from binwright.tables.ports import ValueDecoder

_TEXT = pa.string()
_NO_OP = "has no `op`, `before` and `after`, as change events of Debezium have"


class CountedRowFields:
    """A `Beyond` that leaves new fields of an event's row out, and counts them.

    What else events have beyond these columns is of no row, and is not counted.
    """

    def __init__(self, columns: Columns, counts: Counter[str]) -> None:
        """Count in `counts` what rows have beyond these columns."""
        self.columns: Columns = ()
        self.proposed: Columns = ()
        self._of_row = CountedFields(columns, counts)

    def fields(self, value: bytes, document: Any) -> Fields:
        """Return none."""
        event = document.get(PAYLOAD) or document
        row = event.get(AFTER) or event.get(BEFORE)
        return {} if row is None else self._of_row.fields(value, row)


class ChangeEventDecoder:
    """A `ValueDecoder` of change events: rows are what they were changed to, or were before it.

    Attributes:
        columns: Of the rows, then those of the change.
    """

    def __init__(self, events: ValueDecoder, primary_key: Sequence[str] = ()) -> None:
        """Take apart what another decoder makes of events.

        Args:
            events: The other one.
            primary_key: Columns by which rows are told apart: an event that changes one is bad, as
                the row of before would stay.

        Raises:
            ValueError: Its columns are none of change events.
        """
        paths = [parse_path(path) for path in primary_key]
        self._key = [path for path in paths if folded(path[0]) not in {KAFKA, KAFKA_KEY}]
        self._events, self.settings = events, ""
        self.columns = landed_columns(events.columns) if events.columns else ()
        self._names = {column.named: column.name for column in events.columns}

    @property
    def proposed(self) -> Columns:
        """Return none: new fields of rows are counted."""
        return ()

    def memory(self, values: Any, keys: Any = None) -> int:
        """Return what these events take; see `ValueDecoder.memory`."""
        return 2 * self._events.memory(values, keys)  # parts are copied, once, as they are taken

    def decode(self, values: "pa.Array[Any]", headers: Any = None, keys: Any = None) -> Decoded:
        """Return the rows of these events, and the bad ones; see `ValueDecoder.decode`.

        A truncation, or whatever else has no row, is a row of NULLs with its `op`.
        """
        events, bad = self._events.decode(values, headers, keys)
        if not self.columns:
            return events, bad
        parts = {name: self._part(events, name) for name in (BEFORE, AFTER, EVENT_OP)}
        op, after = parts[EVENT_OP], parts[AFTER]
        is_event = pc.and_(pc.is_valid(values), pc.is_null(bad))
        lacks_row = pc.and_(pc.is_in(op, pa.array(["c", "u", "r"])), pc.is_null(after))
        reasons = pc.if_else(lacks_row, "has no `after`", pa.scalar(None, _TEXT))
        reasons = pc.if_else(pc.is_null(op), _NO_OP, reasons)
        for path in self._key:
            was, now = (part_of(parts[name], path) for name in (BEFORE, AFTER))
            moved = pc.and_(pc.equal(op, pa.scalar("u", _TEXT)), pc.not_equal(was, now))
            fault = f"changes {'.'.join(path)}, of its primary_key"
            reasons = pc.if_else(pc.coalesce(moved, pa.scalar(value=False)), fault, reasons)
        is_bad = pc.and_(is_event, pc.is_valid(reasons))
        is_deleted = pc.equal(op, pa.scalar(DELETED, _TEXT))
        is_before = pc.coalesce(is_deleted, pa.scalar(value=False))
        row = pc.if_else(is_before, parts[BEFORE], after)
        columns = [*row.flatten(), op]
        if len(self.columns) > len(columns):
            columns.append(self._part(events, EVENT_SOURCE))
        dropped = pc.or_(events.is_null(), is_bad)
        fields = [*row_type(self.columns)]
        rows = pa.StructArray.from_arrays(columns, fields=fields, mask=dropped)
        return rows, with_faults(bad, values, is_bad, reasons)

    def _part(self, events: Any, name: str) -> Any:
        """Return a part of events, of which each may be beside its schema."""
        part = pc.struct_field(events, self._names[name])
        if PAYLOAD not in self._names:
            return part
        payload = pc.struct_field(events, self._names[PAYLOAD])
        return pc.coalesce(pc.struct_field(payload, name), part)


def with_faults(bad: Any, values: Any, is_bad: Any, reasons: Any) -> Any:
    """Return bad records, and those of a mask as `incompatible`, for these reasons."""
    parts = [
        pc.if_else(is_bad, values, pc.struct_field(bad, "value")),
        pc.if_else(is_bad, pa.scalar("incompatible", _TEXT), pc.struct_field(bad, "kind")),
        pc.if_else(is_bad, reasons, pc.struct_field(bad, "reason")),
    ]
    mask = pc.and_(bad.is_null(), pc.invert(is_bad))
    return pa.StructArray.from_arrays(parts, fields=[*BAD], mask=mask)
