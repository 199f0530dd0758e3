"""Protobuf schemas: their messages, and what these are as columns."""

from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from binwright.consumer.decode.protobuf_compiler import Compiled
from binwright.tables.columns import (
    DEEPEST,
    Array,
    Column,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
    Struct,
    in_table,
)
from binwright.tables.schemas import IS_PRESENT, SchemaRefused

Message = Any
"""The descriptor of a message's type, as `google.protobuf` has it."""

MOST_FIELDS = 10_000  # of a message, with those of the messages in it
KINDS = {
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_SINT64: "int64",
    FieldDescriptor.TYPE_SFIXED64: "int64",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FIXED64: "uint64",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_SINT32: "int32",
    FieldDescriptor.TYPE_SFIXED32: "int32",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_FIXED32: "uint32",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_ENUM: "enum",
}
"""What a value without parts is, by the type of its field."""

JSON_TEXT = Simple("string")
"""The type of a column of JSON, as text."""
_COLUMN_TYPES: dict[str, ColumnType] = {
    "double": Simple("double"),
    "float": Simple("float"),
    "int64": Simple("bigint"),
    "uint64": Decimal(20, 0),
    "int32": Simple("int"),
    "uint32": Simple("bigint"),
    "bool": Simple("boolean"),
    "string": Simple("string"),
    "bytes": Simple("binary"),
    "enum": Simple("string"),
}
_WELL_KNOWN = {
    "google/protobuf/timestamp.proto": "timestamp",
    "google/protobuf/wrappers.proto": "wrapper",
    "google/protobuf/struct.proto": "json",
}


class ProtobufSchema:
    """One schema: of the records that name its id."""

    def __init__(self, compiled: Compiled) -> None:
        """Load what protoc made of a schema.

        Raises:
            SchemaRefused: It has no message.
        """
        pool = descriptor_pool.DescriptorPool()
        try:
            for each in FileDescriptorSet.FromString(compiled.files).file:
                pool.AddSerializedFile(each.SerializeToString())
            self._file: Any = pool.FindFileByName(compiled.root)
        except (DecodeError, TypeError, KeyError) as exc:
            raise SchemaRefused(f"is no Protobuf schema: {exc}"[:150]) from exc
        self._pool = pool  # whose descriptors live no longer than it
        self._top: list[Message] = [*self._file.message_types_by_name.values()]
        if not self._top:
            raise SchemaRefused("has no message")
        self._columns: dict[str, tuple[Columns, tuple[str, ...]]] = {}

    def message(self, name: str) -> Message:
        """Return a message by its full name, "": the first; raise `SchemaRefused`."""
        if not name:
            return self._top[0]
        try:
            message = self._pool.FindMessageTypeByName(name)
        except KeyError:
            message = None
        if message is None or message.file.name != self._file.name:
            raise SchemaRefused(f"has no message {name}")
        return message

    def messages(self) -> Sequence[Message]:
        """Return all messages of its file, those within others too."""
        messages, left = list[Message](), [*self._top]
        while left:
            messages.append(left.pop())
            left += messages[-1].nested_types
        return messages

    def message_at(self, indexes: Sequence[int]) -> Message:
        """Return a message by its place: the index in its file, or in the message around it.

        Raises:
            SchemaRefused: There is none.
        """
        message, inside = None, self._top
        for index in indexes:
            if not 0 <= index < len(inside):
                raise SchemaRefused(f"has no message at {[*indexes]}")
            message = inside[index]
            inside = message.nested_types
        if message is None or is_entry(message):
            raise SchemaRefused(f"has no message at {[*indexes]}")
        return message

    def columns(self, name: str) -> Columns:
        """Return the columns of all that a message has; raise `SchemaRefused`."""
        return self._made(name)[0]

    def notes(self, name: str) -> tuple[str, ...]:
        """Return which fields of a message have no column, or one of JSON, and why."""
        return self._made(name)[1]

    def _made(self, name: str) -> tuple[Columns, tuple[str, ...]]:
        message = self.message(name)
        if name not in self._columns:
            made = _Columns()
            self._columns[name] = in_table(made.of(message, (), 0)), tuple(made.notes)
        return self._columns[name]


class _OnlyAsJson(Exception):
    """A field has no type of a column; says why."""


class _Columns:
    """Makes the columns of one message.

    Attributes:
        notes: Which fields have no column, or one of JSON, and why.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._left = MOST_FIELDS

    def of(self, message: Message, inside: tuple[str, ...], depth: int) -> Columns:
        """Return the columns of a message within others of these names, so deep in types."""
        columns = []
        for field in message.fields:
            self._left -= 1
            if self._left < 0:
                raise SchemaRefused(f"has more than {MOST_FIELDS} fields")
            try:
                kind = self._field(field, (*inside, message.full_name), depth)
            except _OnlyAsJson as exc:
                kind = JSON_TEXT
                self.notes.append(f"{field.name} is JSON as text: it {exc}")
            columns.append(Column(field.name, kind))
        return tuple(columns)

    def _field(self, field: Any, inside: tuple[str, ...], depth: int) -> ColumnType:
        if is_map(field):
            key, value = field.message_type.fields
            if kind_of(key) == "string":
                return Map(self._stored(value, inside, depth + 1))
            kind = self._stored(value, inside, depth + 2)
            return Array(
                Struct((Column("key", _COLUMN_TYPES[kind_of(key)]), Column("value", kind)))
            )
        if field.is_repeated:
            return Array(self._stored(field, inside, depth + 1))
        return self._value(field, inside, depth)

    def _stored(self, field: Any, inside: tuple[str, ...], depth: int) -> ColumnType:
        if depth > DEEPEST:
            raise _OnlyAsJson(f"is nested more than {DEEPEST} deep")
        return self._value(field, inside, depth)

    def _value(self, field: Any, inside: tuple[str, ...], depth: int) -> ColumnType:
        """Return the type of one value of a field."""
        match kind := kind_of(field):
            case "message":
                message = field.message_type
                if message.full_name in inside:
                    raise _OnlyAsJson(f"has the type {message.full_name} within itself")
                if depth >= DEEPEST:
                    raise _OnlyAsJson(f"is nested more than {DEEPEST} deep")
                return Struct(self.of(message, inside, depth + 1) or (IS_PRESENT,))
            case "wrapper":
                return self._value(field.message_type.fields_by_name["value"], inside, depth)
            case "timestamp":
                return Simple("timestamp")
            case "json":
                return Simple("string")
            case _:
                return _COLUMN_TYPES[kind]


def kind_of(field: Any) -> str:
    """Return what each value of a field is: as in `KINDS`, or message, timestamp, wrapper, json."""
    if field.message_type is None:
        return KINDS[field.type]
    return _WELL_KNOWN.get(field.message_type.file.name, "message")


def messages_in(message: Message) -> dict[str, Message]:
    """Return a message and all that may be within it, however deep, by their full names."""
    messages = {message.full_name: message}
    left = [message]
    while left:
        for field in left.pop().fields:
            each = field.message_type
            if each is not None and each.full_name not in messages:
                messages[each.full_name] = each
                left.append(each)
    return messages


def is_map(field: Any) -> bool:
    """Return whether a field is a map: a list of entries, as it is stored."""
    return field.message_type is not None and is_entry(field.message_type)


def is_entry(message: Message) -> bool:
    """Return whether a message is an entry of a map."""
    return bool(message.GetOptions().map_entry)
