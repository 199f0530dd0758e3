"""The id of a topic, unique also among topics of the same name: Metadata, version 10.

In a response about one topic the id comes before the partitions, so these are not decoded.
"""

from io import BytesIO
from typing import Any
from uuid import UUID

from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    String,
    TaggedFields,
    UnsignedVarInt32,
)

from binwright.kafka.versions import Field, VersionedRequest, version

API = 3
_ID_BYTES = 16
_NO_ID = bytes(_ID_BYTES)
_TAGS = ("tags", TaggedFields)


class Uuid:
    """Sixteen bytes."""

    def encode(self, value: bytes) -> bytes:
        """Return the bytes as they are."""
        return value

    def decode(self, data: BytesIO) -> bytes:
        """Read 16 bytes; raise `ValueError` if there are fewer."""
        found = data.read(_ID_BYTES)
        if len(found) != _ID_BYTES:
            raise ValueError(f"expected an id of {_ID_BYTES} bytes, got {len(found)}")
        return found


class Rest:
    """The remaining bytes."""

    def decode(self, data: BytesIO) -> int:
        """Skip them; return how many they are."""
        return len(data.read())


def _response(*, compact: bool) -> list[Field]:
    many, text = (CompactArray, CompactString("utf-8")) if compact else (Array, String("utf-8"))
    tags = (_TAGS,) if compact else ()
    return [
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
    ]


_TOPIC = ("topic_id", Uuid()), ("topic", CompactString("utf-8")), _TAGS
_VERSION_4 = version(
    API, 4, [("topics", Array(String("utf-8"))), ("create", Boolean)], _response(compact=False)
)
_VERSION_10 = version(
    API,
    10,
    [
        ("topics", CompactArray(*_TOPIC)),
        ("create", Boolean),
        ("cluster_operations", Boolean),
        ("topic_operations", Boolean),
        _TAGS,
    ],
    _response(compact=True),
    is_flexible=True,
)


class TopicId(VersionedRequest):
    """Request the metadata of one topic, by name, of any broker; creates no topic."""

    VERSIONS = (_VERSION_4, _VERSION_10)

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; for brokers before 2.8 in a version without ids."""
        if request_struct_class is _VERSION_10:
            return _VERSION_10(
                topics=[(_NO_ID, self._topic, {})],
                create=False,
                cluster_operations=False,
                topic_operations=False,
                tags={},
            )
        return _VERSION_4(topics=[self._topic], create=False)


def topic_id(response: Any) -> str | None:
    """Return the id in the response; None if its version, or an old cluster, has no ids."""
    found: bytes = getattr(response, "topic_id", _NO_ID)
    return None if found == _NO_ID else str(UUID(bytes=found))
