"""Which of all topics that ever had a name the present one is: Metadata, version 10.

The id stands before the partitions in an answer about one topic, so these are not even read.
"""

from io import BytesIO
from typing import Any
from uuid import UUID

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    String,
    TaggedFields,
    UnsignedVarInt32,
)

API = 3
_ID_BYTES = 16
_NO_ID = bytes(_ID_BYTES)
_TAGS = ("tags", TaggedFields)


class Uuid:
    """Sixteen bytes."""

    def encode(self, value: bytes) -> bytes:
        """Return them."""
        return value

    def decode(self, data: BytesIO) -> bytes:
        """Read them; raise `ValueError` where there are not so many."""
        found = data.read(_ID_BYTES)
        if len(found) != _ID_BYTES:
            raise ValueError(f"expected an id of {_ID_BYTES} bytes, got {len(found)}")
        return found


class Rest:
    """Whatever follows."""

    def decode(self, data: BytesIO) -> int:
        """Pass over it; return how many bytes it was."""
        return len(data.read())


def _answer(*, compact: bool) -> Schema:
    many, text = (CompactArray, CompactString("utf-8")) if compact else (Array, String("utf-8"))
    tags = (_TAGS,) if compact else ()
    return Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            many(("node_id", Int32), ("host", text), ("port", Int32), ("rack", text), *tags),
        ),
        ("cluster_id", text),
        ("controller_id", Int32),
        ("count", UnsignedVarInt32 if compact else Int32),
        ("error_code", Int16),
        ("topic", text),
        *((("topic_id", Uuid()),) if compact else ()),
        ("rest", Rest()),
    )


class _Answer4(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, SCHEMA = API, 4, _answer(compact=False)


class _Answer10(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, SCHEMA = API, 10, _answer(compact=True)


class _Question4(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = API, 4, _Answer4
    SCHEMA = Schema(("topics", Array(String("utf-8"))), ("create", Boolean))


class _Question10(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE, FLEXIBLE_VERSION = API, 10, _Answer10, True
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid()), ("topic", CompactString("utf-8")), _TAGS)),
        ("create", Boolean),
        ("cluster_operations", Boolean),
        ("topic_operations", Boolean),
        _TAGS,
    )


class TopicId(Request[_Question4 | _Question10]):  # type: ignore[misc]
    """Ask any broker about one topic, by name. Nothing is created by asking."""

    API_KEY = API

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: Any) -> Any:
        """Say it; brokers before 2.8 are asked in a version that has no ids."""
        if request_struct_class is _Question10:
            return _Question10(
                topics=[(_NO_ID, self._topic, {})],
                create=False,
                cluster_operations=False,
                topic_operations=False,
                tags={},
            )
        return _Question4(topics=[self._topic], create=False)


def topic_id(answer: Any) -> str | None:
    """Return what the answer says; None where its version, or an old cluster, has no ids."""
    found: bytes = getattr(answer, "topic_id", _NO_ID)
    return None if found == _NO_ID else str(UUID(bytes=found))
