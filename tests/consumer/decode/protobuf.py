"""Protobuf values of the tests, as producers write them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from google.protobuf import json_format, message_factory

from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema


def proto(*fields: str, head: str = "", message: str = "Order", rest: str = "") -> str:
    """Return a schema of proto3 whose first message has these fields, numbered from 1."""
    numbered = " ".join(f"{field} = {n};" for n, field in enumerate(fields, 1))
    return f'syntax = "proto3"; package shop; {head} message {message} {{ {numbered} }} {rest}'


def parsed(text: str, **imports: str) -> ProtobufSchema:
    """Return a schema as the product reads it; `a_proto` is the file `a.proto`."""
    return _parsed(text, tuple((name.replace("_", "."), each) for name, each in imports.items()))


@lru_cache
def _parsed(text: str, imports: tuple[tuple[str, str], ...]) -> ProtobufSchema:
    return ProtobufSchema(compiled(text, dict(imports)))


def body(schema: ProtobufSchema, value: Mapping[str, Any], message: str = "") -> bytes:
    """Return the bytes of a message, given as JSON is: without any header."""
    made: Any = message_factory.GetMessageClass(schema.message(message))
    return bytes(json_format.ParseDict(value, made()).SerializePartialToString())


def written(
    schema: ProtobufSchema,
    value: Mapping[str, Any],
    number: int = 7,
    message: str = "",
    indexes: bytes = b"\0",
) -> bytes:
    """Return a value as a serializer of Confluent's writes it: with id, and indexes as given."""
    return b"\0" + number.to_bytes(4, "big") + indexes + body(schema, value, message)
