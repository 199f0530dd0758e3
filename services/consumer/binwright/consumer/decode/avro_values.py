"""Decodes Avro values into columns, each by the schema that it was written with."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.avro_memory import AvroMemory
from binwright.consumer.decode.avro_records import record_reader
from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.one_by_one import Bad, Decoded, Fields, decode_each
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.registry_schemas import (
    has_header,
    nothing_behind,
    refused,
    schema_id,
    without_header,
)
from binwright.consumer.decode.value_memory import content, row_bytes
from binwright.tables.columns import Columns
from binwright.tables.schemas import SchemaRefused

Schemas = Mapping[int, AvroSchema | Bad]
"""Schemas by id; why values are bad that name one which cannot be used."""

record_reader_of = lru_cache(maxsize=1_000)(record_reader)
_memory_of = lru_cache(maxsize=1_000)(AvroMemory)


@dataclass(frozen=True, slots=True)
class AvroReading:
    """How a table of Avro reads schemas."""

    most_bytes: int = MOST_BYTES  # of memory, for a value

    def of(self, schema: object) -> AvroSchema:
        """Return the schema; raise `SchemaRefused` if it is none of Avro."""
        if not isinstance(schema, AvroSchema):
            raise SchemaRefused("is not of Avro, as the table is")
        return schema

    def decoder(self, columns: Columns, schemas: Schemas) -> "AvroDecoder":
        """Return the decoder of a table."""
        return AvroDecoder(columns, schemas, self.most_bytes)

    def misfit(self, schema: AvroSchema, columns: Columns) -> str:
        """Return why no value of a schema can be read into these columns, "" if some may be."""
        try:
            record_reader_of(schema, columns)
        except SchemaRefused as exc:
            return str(exc)
        return ""

    def header_fault(self, rest: bytes) -> str:
        """Return what is wrong with a record's header; see `SchemaReading`."""
        return nothing_behind(rest)


class AvroDecoder:
    """A `ValueDecoder` of Avro with headers.

    Attributes:
        columns: Of the rows.
    """

    proposed: Columns = ()

    def __init__(self, columns: Columns, schemas: Schemas, most_bytes: int = MOST_BYTES) -> None:
        """Read values that name one of these schemas."""
        self.columns, self._schemas, self._most_bytes = columns, schemas, most_bytes
        self.settings = ""

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        memories = [
            _memory_of(each, self.columns)
            for each in self._schemas.values()
            if isinstance(each, AvroSchema)
        ]
        row = max((each.row for each in memories), default=row_bytes(self.columns))
        byte = max((each.byte for each in memories), default=0)
        return row * len(values) + byte * len(content(values))

    def decode(self, values: "pa.Array[Any]", *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        readers = {number: self._reader(number, each) for number, each in self._schemas.items()}

        def read(value: bytes | None) -> Fields | Bad:
            if value is None:
                return {}
            if not has_header(value):
                return without_header(value)
            reader = readers[schema_id(value)]
            return reader if isinstance(reader, Bad) else reader(value)

        return decode_each(values, read, row_type(self.columns))

    def _reader(self, number: int, schema: AvroSchema | Bad) -> Any:
        if isinstance(schema, Bad):
            return schema
        try:
            return record_reader_of(schema, self.columns, self._most_bytes)
        except SchemaRefused as exc:
            return refused(number, str(exc))
