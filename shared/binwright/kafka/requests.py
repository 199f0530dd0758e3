"""Metadata and ListOffsets, the two requests of a monitor's pass, encoded by whole arrays.

aiokafka decodes a response value by value; for 100,000 partitions that is a second of CPU for one
response. Here `struct` decodes rows of fixed size at once. Metadata rows hold two lists; where
all are of one length, as they are unless replicas are missing, they are of fixed size too.
"""

import struct
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

from aiokafka.protocol.types import Array, Boolean, Int16, Int32, String

from binwright.kafka.versions import VersionedRequest, version

_COUNT = struct.Struct(">i")
_TEXT = String("utf-8")


class FixedSizeRows:
    """An array of rows of fixed size: a type for aiokafka's schemas."""

    def __init__(self, layout: str) -> None:
        """Use a row in `struct`'s notation, without the byte order."""
        self._row = struct.Struct(f">{layout}")

    def encode(self, rows: Sequence[Iterable[int]]) -> bytes:
        """Return the array as bytes."""
        pack = self._row.pack
        return _COUNT.pack(len(rows)) + b"".join([pack(*row) for row in rows])

    def decode(self, data: BytesIO) -> list[tuple[Any, ...]]:
        """Read the array; raise `ValueError` if it is incomplete."""
        (count,) = _COUNT.unpack(data.read(_COUNT.size))
        return read_rows(self._row, data, count)


def read_rows(row: struct.Struct, data: BytesIO, count: int) -> list[tuple[Any, ...]]:
    """Read `count` rows; raise `ValueError` if there are fewer."""
    content = data.read(row.size * max(count, 0))
    if len(content) != row.size * max(count, 0):
        raise ValueError(f"expected {count} rows of {row.size} bytes, got {len(content)} bytes")
    return list(row.iter_unpack(content))


class PartitionMetadata:
    """A topic's partitions in a metadata response: (error, partition, leader, ...) each."""

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
                # A row of another size shows as a wrong number of replicas.
                if all(r[3] == replicas == r[4 + replicas] for r in rows):
                    return rows
            data.seek(begin)
        found: list[tuple[Any, ...]] = self._slow.decode(data)
        return found


_BROKER = ("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT)
_TOPIC = (
    ("error_code", Int16),
    ("topic", _TEXT),
    ("is_internal", Boolean),
    ("partitions", PartitionMetadata()),
)


class Metadata(VersionedRequest):
    """Request the leaders of partitions, of topics by name or of all (None); creates no topic."""

    VERSIONS = (
        version(
            3,
            4,
            [("topics", Array(_TEXT)), ("allow_auto_topic_creation", Boolean)],
            [
                ("throttle_time_ms", Int32),
                ("brokers", Array(*_BROKER)),
                ("cluster_id", _TEXT),
                ("controller_id", Int32),
                ("topics", Array(*_TOPIC)),
            ],
        ),
    )

    def __init__(self, topics: Sequence[str] | None) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        return request_struct_class(topics=self._topics, allow_auto_topic_creation=False)


# Rows are (partition, timestamp), and then (partition, error, timestamp, offset).
_ASKED = ("topic", _TEXT), ("partitions", FixedSizeRows("iq"))
_FOUND = ("topic", _TEXT), ("partitions", FixedSizeRows("ihqq"))


class ListOffsets(VersionedRequest):
    """Request offsets of a leader: (topic, [(partition, timestamp or `LATEST` or `EARLIEST`)])."""

    VERSIONS = (
        version(
            2,
            1,
            [("replica_id", Int32), ("topics", Array(*_ASKED))],
            [("topics", Array(*_FOUND))],
        ),
    )

    def __init__(self, topics: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; replica -1 is a client."""
        return request_struct_class(-1, self._topics)
