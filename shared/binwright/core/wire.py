"""Messages as bytes: JSON out, parsed once at the edge, and their record keys."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from binwright.core.errors import MalformedMessage, UnknownKind
from binwright.core.messages import (
    Command,
    Dead,
    Fenced,
    Goodbye,
    Hello,
    Inbound,
    Landed,
    Measurement,
    Message,
    Report,
    Started,
    Stopped,
)
from binwright.core.model import TopicPartition


def _adapter(union: Any) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[union, Field(discriminator="kind")])


_INBOUND, _COMMAND, _MEASUREMENT = _adapter(Inbound), _adapter(Command), TypeAdapter(Measurement)

_UNKNOWN = {"union_tag_invalid", "literal_error"}  # pydantic's words; only kinds are literals


def _plain(value: object) -> object:
    match value:
        case TopicPartition():
            return str(value)
        case Mapping():
            return {_plain(key): _plain(item) for key, item in sorted(value.items())}
        case tuple() | list():
            return [_plain(item) for item in value]
        case int() | float() | str() | bool() | None:
            return value
        case _:
            return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}  # type: ignore[arg-type]


def encode(message: Message) -> bytes:
    """Return JSON, fields as declared, mappings sorted: equal messages are equal bytes."""
    if isinstance(message, Measurement):  # long, often, and without mappings
        return orjson.dumps(
            {**_shallow(message), "partitions": list(map(tuple, message.partitions))}
        )
    return orjson.dumps(_plain(message))


def _shallow(message: Message) -> dict[str, Any]:
    return {f.name: getattr(message, f.name) for f in fields(message)}


def key(message: Message) -> bytes:
    """Return the record key: kind and slot (or topic), so that compaction keeps the last word."""
    name = message.kind.partition("/")[0]
    match message:
        case Measurement():
            return message.topic.encode()
        case Fenced():
            return f"{name}/{message.slot}/{message.topic}".encode()
        case Hello() | Report() | Stopped() | Landed() | Started() | Goodbye() | Dead():
            return f"{name}/{message.slot}".encode()
        case _:
            return name.encode()


def _decode(adapter: TypeAdapter[Any], payload: bytes | None) -> Any:
    payload = payload or b""
    try:
        return adapter.validate_json(payload)
    except ValidationError as exc:
        faults = exc.errors(include_url=False, include_context=False)
        # Of an unknown kind nothing else needs to fit: `kind` is the last field to be looked at.
        unknown = [fault for fault in faults if fault["type"] in _UNKNOWN]
        first = (unknown or faults)[0]
        where = ".".join(map(str, first["loc"])) or "message"
        error = UnknownKind if unknown else MalformedMessage
        raise error(f"{where}: {first['msg']}", payload) from exc


def decode_inbound(payload: bytes | None) -> Inbound:
    """Read a record of metadata partition 0; raise `MalformedMessage` or `UnknownKind`."""
    message: Inbound = _decode(_INBOUND, payload)
    return message


def decode_command(payload: bytes | None) -> Command:
    """Read a record of a slot's own partition; raise `MalformedMessage` or `UnknownKind`."""
    message: Command = _decode(_COMMAND, payload)
    return message


def decode_measurement(payload: bytes | None) -> Measurement:
    """Read a record of the metrics topic; raise `MalformedMessage` or `UnknownKind`."""
    message: Measurement = _decode(_MEASUREMENT, payload)
    return message
