"""Decodes Avro values into columns, each by the schema that it was written with.

A value has a header: a byte 0, and four of the schema's id, most significant first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decoding.arrow_types import row_type
from binwright.consumer.decoding.avro_records import HEADER, record_reader
from binwright.consumer.decoding.avro_schemas import AvroSchema, SchemaRefused
from binwright.consumer.decoding.one_by_one import (
    REASON_LENGTH,
    Bad,
    Decoded,
    Fields,
    decode_each,
    described,
)
from binwright.protocol.columns import Columns
from binwright.protocol.ports.kafka import Records

Schemas = Mapping[int, AvroSchema | Bad]
"""Schemas by id; why values are bad that name one which cannot be used."""

record_reader_of = lru_cache(maxsize=1_000)(record_reader)


def schema_ids(records: Iterable[Sequence[Records]]) -> Counter[int]:
    """Return the ids of schemas that values name, and how many do."""
    found: Counter[int] = Counter()
    for parts in records:
        for part in parts:
            values: Any = pa.array(part.values, pa.binary())
            for entry in pc.value_counts(pc.binary_slice(values, 0, HEADER)).to_pylist():
                if _has_header(header := entry["values"] or b""):
                    found[_schema_id(header)] += entry["counts"]
    return found


def _has_header(value: bytes) -> bool:
    return len(value) >= HEADER and value[0] == 0


def _schema_id(value: bytes) -> int:
    return int.from_bytes(value[1:HEADER], "big")


class AvroDecoder:
    """A `ValueDecoder` of Avro with headers.

    Attributes:
        columns: Of the rows.
    """

    def __init__(self, columns: Columns, schemas: Schemas) -> None:
        """Read values that name one of these schemas."""
        self.columns, self._schemas = columns, schemas
        self.settings = ""

    def decode(self, values: "pa.Array[Any]") -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        readers = {number: self._reader(number, each) for number, each in self._schemas.items()}

        def read(value: bytes | None) -> Fields | Bad:
            if value is None:
                return {}
            if not _has_header(value):
                start = described(value[:HEADER].hex(" "))
                return Bad("malformed", f"needs 0 and a schema's id in front, has {start}")
            reader = readers[_schema_id(value)]
            return reader if isinstance(reader, Bad) else reader(value)

        return decode_each(values, read, row_type(self.columns))

    def _reader(self, number: int, schema: AvroSchema | Bad) -> Any:
        if isinstance(schema, Bad):
            return schema
        try:
            return record_reader_of(schema, self.columns)
        except SchemaRefused as exc:
            return refused(number, str(exc))


def refused(number: int, why: str) -> Bad:
    """Return why values of this schema are bad."""
    return Bad("incompatible", f"schema {number}: {why}"[:REASON_LENGTH])
