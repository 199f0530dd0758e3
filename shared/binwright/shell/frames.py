"""The two questions every pass of a monitor asks, said and read in whole arrays.

aiokafka reads an answer number by number; of 100,000 partitions that is a second of CPU for one
answer. Rows of fixed size are read by `struct` at once here. Metadata rows hold two lists; where
all are of one length, as they are unless replicas are missing, they are of fixed size too.
"""

import struct
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v4, MetadataResponse_v4
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

_COUNT = struct.Struct(">i")
_TEXT = String("utf-8")


class Rows:
    """An array of rows of fixed size: a type for aiokafka's schemas."""

    def __init__(self, layout: str) -> None:
        """Take the row as `struct` writes it, without the byte order."""
        self._row = struct.Struct(f">{layout}")

    def encode(self, rows: Sequence[Iterable[int]]) -> bytes:
        """Return the array as bytes."""
        pack = self._row.pack
        return _COUNT.pack(len(rows)) + b"".join([pack(*row) for row in rows])

    def decode(self, data: BytesIO) -> list[tuple[Any, ...]]:
        """Read the array; raise `ValueError` where it ends too early."""
        (count,) = _COUNT.unpack(data.read(_COUNT.size))
        return unpacked(self._row, data, count)


def unpacked(row: struct.Struct, data: BytesIO, count: int) -> list[tuple[Any, ...]]:
    """Read `count` rows; raise `ValueError` where there are not so many."""
    content = data.read(row.size * max(count, 0))
    if len(content) != row.size * max(count, 0):
        raise ValueError(f"expected {count} rows of {row.size} bytes, got {len(content)} bytes")
    return list(row.iter_unpack(content))


class Leaders:
    """A topic's partitions in a metadata answer: (error, partition, leader, ...) each."""

    _head = struct.Struct(">hiii")
    _slow = Array(
        ("error_code", Int16),
        ("partition", Int32),
        ("leader", Int32),
        ("replicas", Array(Int32)),
        ("isr", Array(Int32)),
    )

    def decode(self, data: BytesIO) -> list[tuple[Any, ...]]:
        """Read them at once if all rows are of one size, else one by one."""
        begin = data.tell()
        count, *_, replicas = struct.unpack(">ihiii", data.read(18).ljust(18, b"\0"))
        data.seek(begin)
        if count > 0 and replicas >= 0:
            row = struct.Struct(f">hiii{replicas}ii{replicas}i")
            data.seek(begin + _COUNT.size)
            content = data.read(row.size * count)
            if len(content) == row.size * count:
                rows = list(row.iter_unpack(content))
                # The first row of another size puts a wrong number in one of these places.
                if all(r[3] == replicas == r[4 + replicas] for r in rows):
                    return rows
            data.seek(begin)
        found: list[tuple[Any, ...]] = self._slow.decode(data)
        return found


class _MetadataAnswer(MetadataResponse_v4):  # type: ignore[misc]  # aiokafka has no types
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            Array(("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT)),
        ),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", _TEXT),
                ("is_internal", Boolean),
                ("partitions", Leaders()),
            ),
        ),
    )


class _MetadataQuestion(MetadataRequest_v4):  # type: ignore[misc]  # aiokafka has no types
    RESPONSE_TYPE = _MetadataAnswer


class Metadata(Request[_MetadataQuestion]):  # type: ignore[misc]  # aiokafka has no types
    """Ask who leads what: of topics by name, or of all (None). Nothing is created by asking."""

    API_KEY = 3

    def __init__(self, topics: Sequence[str] | None) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        """Say it."""
        return request_struct_class(topics=self._topics, allow_auto_topic_creation=False)


class _OffsetsAnswer(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 2, 1
    # partition, error, timestamp, offset
    SCHEMA = Schema(("topics", Array(("topic", _TEXT), ("partitions", Rows("ihqq")))))


class _OffsetsQuestion(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 2, 1, _OffsetsAnswer
    SCHEMA = Schema(
        ("replica_id", Int32), ("topics", Array(("topic", _TEXT), ("partitions", Rows("iq"))))
    )


class ListOffsets(Request[_OffsetsQuestion]):  # type: ignore[misc]  # aiokafka has no types
    """Ask a leader for offsets: (topic, [(partition, timestamp or `LATEST` or `EARLIEST`)])."""

    API_KEY = 2

    def __init__(self, topics: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        """Say it, as one that is no replica."""
        return request_struct_class(-1, self._topics)
