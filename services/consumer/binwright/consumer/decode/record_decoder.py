"""Decodes whole records: their values, their keys, and those that have no value."""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.one_by_one import REASON_LENGTH, Decoded
from binwright.tables.columns import Columns
from binwright.tables.ports import ValueDecoder
from binwright.tables.settings import ONE_COLUMN, key_column

OF_KEY = "key_"
"""In front of the kind of a bad record whose key could not be decoded: `key_malformed`."""
_TOMBSTONE = {"skip": (None, None), "bad": ("tombstone", "has no value")}
"""Kind and reason of a record without a value."""
_BINARY, _TEXT = pa.binary(), pa.string()


class RecordDecoder:
    """A `ValueDecoder` of values, of the keys beside them if wanted, and of tombstones.

    A record is bad if its key is, or its value: then its reason is the value's.

    Attributes:
        columns: Of the rows, that of the keys first.
    """

    def __init__(
        self,
        values: ValueDecoder,
        keys: ValueDecoder | None,
        key_format: str | None,
        tombstones: Literal["row", "skip", "bad"],
    ) -> None:
        """Decode by others.

        Args:
            values: Decodes the values.
            keys: Decodes the keys, as if they were values; None: they are not.
            key_format: What the keys are, in the settings' words.
            tombstones: What becomes of a record without a value.
        """
        self._values, self._keys, self._tombstones = values, keys, tombstones
        self._is_one = key_format in ONE_COLUMN
        column = (key_column(keys.columns, key_format or ""),) if keys and keys.columns else ()
        self.columns, self.settings = (*column, *values.columns), ""

    @property
    def proposed(self) -> Columns:
        """Return columns for new fields of values."""
        return self._values.proposed

    def memory(self, values: "pa.Array[Any]", keys: Any = None) -> int:
        """Return what these records take; see `ValueDecoder.memory`."""
        need = self._values.memory(values)
        return need if self._keys is None or keys is None else need + self._keys.memory(keys)

    def decode(self, values: "pa.Array[Any]", headers: Any = None, keys: Any = None) -> Decoded:
        """Return the rows of these records, and the bad ones; see `ValueDecoder.decode`."""
        rows, bad = self._values.decode(values, headers)
        columns, faults = rows.flatten(), _Faults.of(bad)
        if self._keys is not None:
            keys = pa.nulls(len(values), _BINARY) if keys is None else keys
            key_rows, key_bad = self._keys.decode(keys, headers)
            faults = faults.or_of_key(_Faults.of(key_bad))
            if self._keys.columns:
                columns = [self._column(key_rows, keys), *columns]
        dropped = pc.is_valid(faults.kinds)
        if self._tombstones != "row":
            is_tombstone = pc.is_null(values)
            dropped = pc.or_(dropped, is_tombstone)
            faults = faults.but(is_tombstone, *_TOMBSTONE[self._tombstones])
        parts: list[Any] = [values, faults.kinds, faults.reasons]
        is_good = pc.is_null(faults.kinds)
        return self._rows(columns, dropped), pa.StructArray.from_arrays(
            parts, fields=[*BAD], mask=is_good
        )

    def _rows(self, columns: list[Any], dropped: Any) -> Any:
        if not columns:  # Arrow would make none of no columns
            return pa.array([None if each else {} for each in dropped.to_pylist()], pa.struct([]))
        return pa.StructArray.from_arrays(columns, fields=[*row_type(self.columns)], mask=dropped)

    def _column(self, rows: Any, keys: Any) -> Any:
        """Return the column of decoded keys; a key that is NULL is NULL, whatever its fields."""
        if self._is_one:
            return rows.flatten()[0]
        mask = pc.or_(pc.is_null(rows), pc.is_null(keys))
        return pa.StructArray.from_arrays(rows.flatten(), fields=[*rows.type], mask=mask)


@dataclass(frozen=True, slots=True)
class _Faults:
    """What is wrong with each record, as Arrow arrays of text; NULL: nothing."""

    kinds: Any
    reasons: Any

    @classmethod
    def of(cls, bad: Any) -> "_Faults":
        return cls(pc.struct_field(bad, "kind"), pc.struct_field(bad, "reason"))

    def or_of_key(self, key: "_Faults") -> "_Faults":
        """Return these, and where there is none, that of the key."""
        reasons = pc.utf8_slice_codeunits(_behind("the key: ", key.reasons), 0, REASON_LENGTH)
        return _Faults(
            pc.coalesce(self.kinds, _behind(OF_KEY, key.kinds)), pc.coalesce(self.reasons, reasons)
        )

    def but(self, where: Any, kind: str | None, reason: str | None) -> "_Faults":
        """Return these, and where a mask is set, one fault, or none."""
        return _Faults(
            pc.if_else(where, pa.scalar(kind, _TEXT), self.kinds),
            pc.if_else(where, pa.scalar(reason, _TEXT), self.reasons),
        )


def _behind(first: str, texts: Any) -> Any:
    return pc.binary_join_element_wise(pa.scalar(first), texts, pa.scalar(""))
