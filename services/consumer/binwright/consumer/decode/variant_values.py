"""Takes JSON values of any shape as they are, for one column whose type is VARIANT."""

from typing import Any

import orjson
import pyarrow as pa

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.json_records import BOM, too_deep
from binwright.consumer.decode.one_by_one import (
    REASON_LENGTH,
    Bad,
    Decoded,
    Fields,
    decode_each,
)
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.value_memory import JsonMemory
from binwright.consumer.decode.variant_limits import unfit_for_variant, with_signs
from binwright.tables.columns import Columns


class VariantDecoder:
    """A `ValueDecoder` of JSON: objects, arrays, or single values.

    Attributes:
        columns: Of the rows: one, a variant.
    """

    proposed: Columns = ()

    def __init__(self, columns: Columns, most_bytes: int = MOST_BYTES) -> None:
        self.columns, self.settings = columns, ""
        self._name = columns[0].name
        self._memory, self._most_bytes = JsonMemory(columns, exact=False), most_bytes

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        return self._memory.of(values)

    def decode(self, values: "pa.Array[Any]", *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        return decode_each(values, self.read, row_type(self.columns))

    def read(self, value: bytes | None) -> Fields | Bad:
        """Return the value's text, checked; a tombstone (None) has none."""
        if value is None:
            return {}
        if fault := self._memory.fault(value, self._most_bytes):
            return fault
        value = value.removeprefix(BOM)
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError as exc:
            return Bad("malformed", str(exc)[:REASON_LENGTH])
        if fault := too_deep(value, document):
            return fault
        if wanted := unfit_for_variant(value, document):
            return Bad("incompatible", f"{self._name} needs {wanted}")
        return {self._name: with_signs(value).decode()}
