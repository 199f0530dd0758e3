"""Decodes records of a table that has one row of each key: what each does to that row."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.change_events import with_faults
from binwright.consumer.decode.masking import part_of, taken
from binwright.consumer.decode.one_by_one import Decoded
from binwright.tables.columns import KAFKA, Columns, folded, parse_path, type_at
from binwright.tables.envelopes import DELETED, OF_ROW, OP
from binwright.tables.ports import ValueDecoder
from binwright.tables.settings import TableSettings

_TEXT = pa.string()
_BINARY = pa.binary()


class KeyedDecoder:
    """A `ValueDecoder` of changes of rows that a key tells apart.

    A record is bad if it names no row, or not its place among changes: a column of these is NULL,
    or it changes none, or many.

    Attributes:
        columns: Of the rows; the last, or that of the envelope, has what is done to one.
    """

    def __init__(self, decoder: ValueDecoder, table: TableSettings) -> None:
        """Take what another decoder makes of records for changes, as a table's settings want.

        Raises:
            ValueError: They name a column that is not there, or whose type does not fit: they are
                those of a subject.
        """
        self._decoder, self.settings = decoder, ""
        self._has_op = table.envelope is not None
        known = decoder.columns
        self.columns: Columns = known if self._has_op or not known else (*known, OP)
        self._needed = {parse_path(path): "sequence_by" for path in table.sequence_by}
        self._needed |= {parse_path(path): "primary_key" for path in table.primary_key}
        self._deletes = []
        if not known:  # all are bad
            return
        if not self._has_op and type_at(known, (OP.name,)) is not None:
            raise ValueError(f"there is a column {OP.name}, which is that of the change")
        table.check_keys(known)
        for text, comparison in zip(table.delete_where, table.deletions, strict=True):
            try:
                self._deletes.append((comparison, *comparison.values(known)))
            except ValueError as exc:
                raise ValueError(f"delete_where: {text!r}: {exc}") from exc

    @property
    def proposed(self) -> Columns:
        """Return columns for new fields of values."""
        return self._decoder.proposed

    def memory(self, values: Any, keys: Any = None) -> int:
        """Return what these records take; see `ValueDecoder.memory`."""
        return self._decoder.memory(values, keys)

    def decode(self, values: "pa.Array[Any]", headers: Any = None, keys: Any = None) -> Decoded:
        """Return the rows of these records, and the bad ones; see `ValueDecoder.decode`.

        Of a record that deletes, only the key and the place in the source count.
        """
        rows, bad = self._decoder.decode(values, headers, keys)
        if not self.columns:
            return rows, bad
        names = [column.name for column in self.columns]
        columns = rows.flatten()
        at = names.index(OP.name)
        if not self._has_op:
            columns.append(pa.repeat(pa.scalar("u", _TEXT), len(values)))
        deletes = pc.is_null(values)
        if self._deletes:
            deletes = pc.or_(deletes, taken(rows, self._deletes))
        columns[at] = pc.if_else(deletes, pa.scalar(DELETED, _TEXT), columns[at])
        reasons = self._faults(rows, columns[at], pa.nulls(len(values)) if keys is None else keys)
        is_bad = pc.and_(rows.is_valid(), pc.is_valid(reasons))
        dropped = pc.or_(rows.is_null(), is_bad)
        changes = pa.StructArray.from_arrays(
            columns, fields=[*row_type(self.columns)], mask=dropped
        )
        return changes, with_faults(bad, values, is_bad, reasons)

    def _faults(self, rows: Any, op: Any, keys: Any) -> Any:
        """Return why records are changes of no row; NULL: they are of one."""
        is_of_row = pc.is_in(op, pa.array(sorted(OF_ROW)))
        op_text = pc.binary_join_element_wise(
            pa.scalar("changes more than one row, or none: its op is "), op, pa.scalar("")
        )
        reasons = pc.if_else(is_of_row, pa.scalar(None, _TEXT), op_text)
        for path, setting in self._needed.items():
            if folded(path[0]) != KAFKA:
                part = part_of(rows, path)
            elif folded(path[-1]) == "key":
                part = keys.cast(_BINARY)
            else:
                continue  # what each record has
            name = ".".join(path)
            fault = pa.scalar(f"{name}, of its {setting}, is NULL", _TEXT)
            lacking = pc.if_else(part.is_null(), fault, pa.scalar(None, _TEXT))
            reasons = pc.coalesce(reasons, lacking)
        return reasons
