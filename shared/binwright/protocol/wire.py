"""Messages as records: JSON that is validated when it is read, keys, and parts of large messages.

A part is a record with a slice of the JSON of a message that is too large for one record. The part
that arrives last completes the message, and its offset is the message's. A part's key is
`part/KEY/NUMBER`, so that compaction retains the parts of the newest message of each key.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from sys import getsizeof
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol, Self, TypeVar, runtime_checkable

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import ErrorDetails

from binwright.protocol.errors import MalformedMessage, UnknownKind
from binwright.protocol.model import TopicPartition

T = TypeVar("T")

RECORD_BYTES = 900_000
"""The largest value that is published; brokers accept 1 MiB by default, with key and framing."""

PENDING_BYTES = 64 << 20
"""The bound on what a reader keeps of incomplete messages; the oldest are dropped first."""

REASON_LENGTH = 200
"""Characters of what is wrong with a record, which whoever wrote it may have chosen."""

_PREFIX = b"part/"
_OVERHEAD = 200  # bytes of a part besides its slice, at most
_ENTRY = 500  # bytes of a pending part besides its text and key

_Name = tuple[bytes, str, int]

NONE_RETIRED: Mapping[str, str] = MappingProxyType({})


class AnyMessage(Protocol):
    """A frozen dataclass with a versioned kind; `KEY`, a class's, formats its record key.

    Increase the version when a field changes its meaning. Readers skip unknown kinds.
    """

    @property
    def kind(self) -> str:
        """Return the message's name and version."""


@runtime_checkable
class _Plain(Protocol):
    """A message that makes its JSON itself."""

    def plain(self) -> dict[str, object]: ...


def decoder(union: Any, retired: Mapping[str, str] = NONE_RETIRED) -> "Decode[Any]":
    """Return what reads the records of a topic that has these kinds, two at least.

    Args:
        union: The kinds.
        retired: Those of older versions -> what a person has to do about them.
    """
    return partial(_decode, TypeAdapter(Annotated[union, Field(discriminator="kind")]), retired)


def sole_decoder(kind: type[T]) -> "Decode[T]":
    """Return what reads the records of a topic that has this kind alone."""
    return partial(_decode, TypeAdapter(kind), NONE_RETIRED)


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


def encode(message: AnyMessage) -> bytes:
    """Return JSON, fields as declared, mappings sorted: equal messages are equal bytes."""
    return orjson.dumps(message.plain() if isinstance(message, _Plain) else _plain(message))


def key(message: AnyMessage) -> bytes:
    """Return the record key, by which compaction keeps the newest: its `KEY`, or its kind."""
    template: str = getattr(message, "KEY", message.kind.partition("/")[0])
    return template.format(message).encode()


def is_message(record_key: bytes | None, value: bytes | None) -> bool:
    """Whether a record is one of binwright's, of whatever version: its key follows from its value.

    Of a tombstone that is not known: it counts as none.
    """
    try:
        name, document = (record_key or b"").decode(), orjson.loads(value or b"null")
    except ValueError:
        return False
    match document:
        case {"kind": str(kind), **others}:
            kind_name, _, version = kind.partition("/")
            of_kind = name == kind_name or name.startswith(f"{kind_name}/")
            own = of_kind or name in others.values() or is_part(record_key)  # a table, a group
            return own and version.isdigit()
        case _:
            return False


def _decode(adapter: TypeAdapter[Any], retired: Mapping[str, str], payload: bytes | None) -> Any:
    payload = payload or b""
    try:
        return adapter.validate_json(payload)
    except ValidationError as exc:
        faults = exc.errors(include_url=False, include_context=False)
        # A message of an unknown kind may have any other fields, so faults of the kind come first.
        unknown = [fault for fault in faults if _is_unknown_kind(fault)]
        first = (unknown or faults)[0]
        where = ".".join(map(str, first["loc"])) or "message"
        error = UnknownKind if unknown else MalformedMessage
        reported = f"{where}: {first['msg']}"[:REASON_LENGTH]  # it may have parts of the message
        kind = first["input"].get("kind") if isinstance(first["input"], dict) else None
        raise error(retired.get(str(kind), reported), payload) from exc


def _is_unknown_kind(fault: ErrorDetails) -> bool:
    """Whether pydantic rejects the message's kind."""
    return fault["type"] == "union_tag_invalid" or (
        fault["type"] == "literal_error" and fault["loc"][-1:] == ("kind",)
    )


Decode = Callable[[bytes | None], T]
"""Reads a record; raises `MalformedMessage`, or `UnknownKind` for a kind of a later version."""


# --- parts ----------------------------------------------------------------------------------------


class MessagePart(BaseModel):
    """A slice of a message that is too large for one record."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    kind: Literal["part/1"] = "part/1"
    of: str = Field(max_length=64)  # digest: the same message sent again has the same parts
    number: int = Field(ge=0)  # of this part, from 0
    count: int = Field(ge=2, le=1 << 20)  # of the parts
    text: str  # the slice of the message's JSON

    @model_validator(mode="after")
    def _number_below_count(self) -> Self:
        if self.number >= self.count:
            raise ValueError(f"number {self.number} is not below count {self.count}")
        return self


def split_message(key: bytes, value: bytes, limit: int = RECORD_BYTES) -> list[tuple[bytes, bytes]]:
    """Return the records, as (key, value), that make up this message.

    Args:
        key: The message's.
        value: The message's, UTF-8; split if it is longer than `limit`.
        limit: Bytes that a record's value may have.
    """
    if len(value) <= limit:
        return [(key, value)]
    of = hashlib.blake2b(value, digest_size=12).hexdigest()
    slices = _slices(value.decode(), limit - _OVERHEAD)
    return [
        (
            b"%s%s/%d" % (_PREFIX, key, number),
            orjson.dumps(
                {"kind": "part/1", "of": of, "number": number, "count": len(slices), "text": text}
            ),
        )
        for number, text in enumerate(slices)
    ]


def _slices(text: str, limit: int) -> list[str]:
    """Split so that each slice has at most `limit` bytes as a JSON string."""
    if len(orjson.dumps(text)) <= limit:
        return [text]
    half = len(text) // 2
    return _slices(text[:half], limit) + _slices(text[half:], limit)


def message_key(key: bytes | None) -> bytes | None:
    """Return the key of the message that a record with this key belongs to."""
    if key is None or not is_part(key):
        return key
    return key.removeprefix(_PREFIX).rpartition(b"/")[0]


def is_part(key: bytes | None) -> bool:
    """Whether a record with this key is a part of a message."""
    return key is not None and key.startswith(_PREFIX)


class PartialMessages:
    """The parts of incomplete messages that a reader of one partition has read."""

    def __init__(self) -> None:
        self._pending: OrderedDict[_Name, dict[int, str]] = OrderedDict()
        self._size = 0

    def __bool__(self) -> bool:
        """Return whether a message is incomplete."""
        return bool(self._pending)

    def join(self, key: bytes, value: bytes | None) -> bytes | None:
        """Add a part; return the message if this completes it.

        Raises:
            MalformedMessage: The record is not a part.
        """
        try:
            part = MessagePart.model_validate_json(value or b"")
        except ValidationError as exc:
            raise MalformedMessage(f"a part: {exc.errors()[0]['msg']}", value or b"") from exc
        name = message_key(key) or b"", part.of, part.count
        slices = self._pending.setdefault(name, {})
        if part.number not in slices:
            slices[part.number] = part.text
            self._size += _memory(name, part.text)
        if len(slices) < part.count:
            self._shrink()
            return None
        self._forget(name)
        return "".join(text for _, text in sorted(slices.items())).encode()

    def _shrink(self) -> None:
        while self._size > PENDING_BYTES:
            self._forget(next(iter(self._pending)))

    def _forget(self, name: tuple[bytes, str, int]) -> None:
        self._size -= sum(_memory(name, text) for text in self._pending.pop(name).values())


def _memory(name: _Name, text: str) -> int:
    """Return about how many bytes a part takes; without text it takes some, too."""
    return _ENTRY + len(name[0]) + getsizeof(text)
