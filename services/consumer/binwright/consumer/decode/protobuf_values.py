"""Decodes Protobuf values into columns, each by the schema that it was written with.

Behind the header that names the schema stands which of its messages a value is: how many numbers
follow, then these, the index of a message in its file, that of one within it, and so on. All are
zigzag varints; a single 0 is short for the first message of the file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.one_by_one import Bad, Decoded, Fields, decode_each
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.protobuf_memory import MemoryOf
from binwright.consumer.decode.protobuf_records import record_reader
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.decode.registry_schemas import (
    HEADER,
    has_header,
    nothing_behind,
    refused,
    schema_id,
    without_header,
)
from binwright.consumer.decode.value_memory import content, row_bytes
from binwright.tables.columns import DEEPEST, Columns
from binwright.tables.schemas import SchemaRefused

Reader = Callable[[bytes], Fields | Bad]
MOST_IN_VARINT = 5  # bytes: an index has 32 bits

record_reader_of = lru_cache(maxsize=1_000)(record_reader)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A schema as a table reads it."""

    schema: ProtobufSchema
    message: str | None  # the full name of the table's message, "": the first; None: any

    @property
    def columns(self) -> Columns:
        """Return the columns of the table's message; raise `SchemaRefused`."""
        return self.schema.columns(self.message or "")

    @property
    def notes(self) -> tuple[str, ...]:
        """Return which fields have no column, or one of JSON; raise `SchemaRefused`."""
        return self.schema.notes(self.message or "")


Schemas = Mapping[int, TableSchema | Bad]
"""Schemas by id; why values are bad that name one which cannot be used."""


@dataclass(frozen=True, slots=True)
class ProtobufReading:
    """How a table of Protobuf reads schemas."""

    message: str | None  # see `TableSchema.message`
    most_bytes: int = MOST_BYTES  # of memory, for a value

    def of(self, schema: object) -> TableSchema:
        """Return the schema; raise `SchemaRefused` if it lacks the table's message."""
        if not isinstance(schema, ProtobufSchema):
            raise SchemaRefused("is not of Protobuf, as the table is")
        schema.message(self.message or "")
        return TableSchema(schema, self.message)

    def decoder(self, columns: Columns, schemas: Schemas) -> "ProtobufDecoder":
        """Return the decoder of a table."""
        return ProtobufDecoder(columns, schemas, self.most_bytes)

    def misfit(self, schema: TableSchema, columns: Columns) -> str:
        """Return why no value of a schema can be read into these columns, "" if some may be.

        Where a table takes any message, each value names its own.
        """
        if schema.message is None:
            return ""
        try:
            record_reader_of(schema.schema.message(schema.message), columns)
        except SchemaRefused as exc:
            return str(exc)
        return ""

    def header_fault(self, rest: bytes) -> str:
        """Return what is wrong with a record's header; see `SchemaReading`."""
        try:
            _, end = message_indexes(bytes(HEADER) + rest)
        except ValueError as exc:
            return f"needs the indexes of a message behind the schema: {exc}"
        return nothing_behind(rest[end - HEADER :])


def message_indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return which message of its schema a value is, and where in the value it begins.

    Raises:
        ValueError: The value does not say; says why.
    """
    count, at = _varint(value, HEADER)
    if count == 0:
        return (0,), at
    if not 0 < count <= DEEPEST:
        raise ValueError(f"names {count} indexes of messages")
    indexes = []
    for _ in range(count):
        index, at = _varint(value, at)
        indexes.append(index)
    return tuple(indexes), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint, and where it ends."""
    bits = 0
    for n, byte in enumerate(value[at : at + MOST_IN_VARINT]):
        bits |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return (bits >> 1) ^ -(bits & 1), at + n + 1
    raise ValueError("ends within them" if len(value) < at + MOST_IN_VARINT else "has a long one")


class ProtobufDecoder:
    """A `ValueDecoder` of Protobuf with headers.

    Attributes:
        columns: Of the rows.
    """

    proposed: Columns = ()

    def __init__(self, columns: Columns, schemas: Schemas, most_bytes: int = MOST_BYTES) -> None:
        """Read values that name one of these schemas."""
        self.columns, self._schemas, self._most_bytes = columns, schemas, most_bytes
        self._names = {number: number for number in schemas}  # their texts may be GUIDs
        self.settings = ""

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        tables = [each for each in self._schemas.values() if isinstance(each, TableSchema)]
        weights = [_most_of(table, self.columns) for table in tables]
        row = max((row for row, _ in weights), default=row_bytes(self.columns))
        byte = max((byte for _, byte in weights), default=0)
        return row * len(values) + byte * len(content(values))

    def decode(self, values: "pa.Array[Any]", *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        schemas = self._schemas
        readers: dict[tuple[int, tuple[int, ...]], Reader | Bad] = {}

        def read(value: bytes | None) -> Fields | Bad:
            if value is None:
                return {}
            if not has_header(value):
                return without_header(value)
            number = schema_id(value)
            if isinstance(table := schemas[number], Bad):
                return table
            try:
                indexes, begin = message_indexes(value)
            except ValueError as exc:
                return Bad("malformed", f"needs the indexes of a message behind its header: {exc}")
            if (reader := readers.get((number, indexes))) is None:
                reader = readers[number, indexes] = self._reader(number, table, indexes)
            return reader if isinstance(reader, Bad) else reader(value[begin:])

        return decode_each(values, read, row_type(self.columns))

    def _reader(self, number: int, table: TableSchema, indexes: tuple[int, ...]) -> Reader | Bad:
        name = self._names[number]
        try:
            message = table.schema.message_at(indexes)
        except SchemaRefused as exc:
            return Bad("malformed", f"schema {name}: {exc}")
        try:
            return record_reader_of(_of_table(table, message), self.columns, self._most_bytes)
        except SchemaRefused as exc:
            return refused(name, str(exc))


@lru_cache(maxsize=1_000)
def _most_of(table: TableSchema, columns: Columns) -> tuple[int, int]:
    """Return the most that a message of the table's takes, and that a byte of it takes."""
    any_message = table.message is None
    messages = (
        table.schema.messages() if any_message else [table.schema.message(table.message or "")]
    )
    weights = [MemoryOf(message, columns) for message in messages]
    return max(each.row for each in weights), max(each.byte for each in weights)


def _of_table(table: TableSchema, message: Any) -> Any:
    """Return the message; raise `SchemaRefused` if it is none of the table's."""
    if table.message is None:
        return message
    wanted = table.schema.message(table.message).full_name
    if message.full_name != wanted:
        why = "" if table.message else "; `message` of the table's entry can name it"
        raise SchemaRefused(f"the value is a {message.full_name}, not a {wanted}{why}")
    return message
