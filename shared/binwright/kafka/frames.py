"""Requests that aiokafka lacks or decodes slowly: their fields, and how they are read.

aiokafka decodes a response value by value; for 100,000 partitions that is a second of CPU for one
response. Here `struct` decodes rows of fixed size at once. aiokafka negotiates which version of a
request a broker gets.
"""

import struct
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, ClassVar
from uuid import UUID

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    String,
    TaggedFields,
    UnsignedVarInt32,
)

METADATA, LIST_OFFSETS = 3, 2  # keys of requests
_COUNT = struct.Struct(">i")
_TEXT = String("utf-8")
_TAGS = ("tags", TaggedFields)
_ID_BYTES = 16
_NO_ID = bytes(_ID_BYTES)

Field = tuple[str, Any]
"""A name, and one of aiokafka's types or what has its `encode` and `decode`."""


def version(
    api: int,
    number: int,
    request: Sequence[Field],
    response: Sequence[Field],
    *,
    is_flexible: bool = False,
) -> type[Any]:
    """Return the struct of one version of a request, which knows that of its response.

    Args:
        api: The key of the request.
        number: Of the version.
        request: Its fields, in order.
        response: Those of the response.
        is_flexible: Whether the headers of this version have tags.
    """
    shared = {"API_KEY": api, "API_VERSION": number}
    answer = type(f"Response{api}V{number}", (Response,), {**shared, "SCHEMA": Schema(*response)})
    own = {"SCHEMA": Schema(*request), "RESPONSE_TYPE": answer, "FLEXIBLE_VERSION": is_flexible}
    return type(f"Request{api}V{number}", (RequestStruct,), {**shared, **own})


class VersionedRequest(Request[RequestStruct]):  # type: ignore[misc]  # aiokafka has no types
    """A request in the newest of `VERSIONS` that the broker has; they are in ascending order."""

    API_KEY = -1  # of the subclass
    VERSIONS: ClassVar[Sequence[type[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._CLASSES = cls.VERSIONS
        cls.API_KEY = cls.VERSIONS[0].API_KEY


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
        left = len(data.getbuffer()) - begin - _COUNT.size
        if 0 < count <= left and 0 <= replicas <= left:  # whatever a broken broker claims
            row = struct.Struct(f">hiii{replicas}ii{replicas}i")
            data.seek(begin + _COUNT.size)
            content = data.read(row.size * count)
            if len(content) == row.size * count:
                rows = list(row.iter_unpack(content))
                # A row of another size shows as a wrong number of replicas.
                if all(r[3] == replicas == r[4 + replicas] for r in rows):
                    return rows
            data.seek(begin)
        partitions: list[tuple[Any, ...]] = self._slow.decode(data)
        return partitions


class CompactPartitionMetadata:
    """A topic's partitions in a flexible version; rows as of `PartitionMetadata`."""

    _slow = CompactArray(
        ("error_code", Int16),
        ("partition", Int32),
        ("leader", Int32),
        ("leader_epoch", Int32),
        ("replicas", CompactArray(Int32)),
        ("isr", CompactArray(Int32)),
        ("offline", CompactArray(Int32)),
        _TAGS,
    )
    _fixed = struct.Struct(">hiii")

    def decode(self, data: BytesIO) -> list[tuple[Any, ...]]:
        """Read them at once if all rows are of one size, else one by one."""
        begin = data.tell()
        count = UnsignedVarInt32.decode(data) - 1
        if count > 0 and (rows := self._rows(data, count)) is not None:
            return rows
        data.seek(begin)
        return [
            (error, partition, leader, replicas or [], isr or [])
            for error, partition, leader, _, replicas, isr, *_ in self._slow.decode(data) or ()
        ]

    def _rows(self, data: BytesIO, count: int) -> list[tuple[Any, ...]] | None:
        """Return rows of the size of the first one; None: they are not all of that size."""
        begin, content = data.tell(), data.getbuffer()
        sizes, at = list[int](), begin + self._fixed.size
        for _ in range(3):
            if at >= len(content) or not 1 <= content[at] <= 0x7F:  # noqa: PLR2004 - of one byte
                return None
            sizes.append(content[at] - 1)
            at += 1 + 4 * sizes[-1]
        replicas, isr, offline = sizes
        row = struct.Struct(f">hiiiB{replicas}iB{isr}iB{offline}iB")
        if row.size * count > len(content) - begin:
            return None
        rows = list(row.iter_unpack(content[begin : begin + row.size * count]))
        # A row of another size shows as a wrong number of replicas, or as tags.
        second = 5 + replicas
        third = second + 1 + isr
        expected = replicas + 1, isr + 1, offline + 1, 0
        if any((r[4], r[second], r[third], r[-1]) != expected for r in rows):
            return None
        data.seek(begin + row.size * count)
        return [(*r[:3], replicas, *r[5:second]) for r in rows]


def replicas_in(row: Sequence[Any]) -> Sequence[int]:
    """Return the brokers in a row of `PartitionMetadata`, the preferred leader first.

    Rows are flat where all are of one size: a number, then the replicas.
    """
    count: Any = row[3]
    replicas: Sequence[int] = row[4 : 4 + count] if isinstance(count, int) else count
    return replicas


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
            METADATA,
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


class Uuid:
    """Sixteen bytes."""

    def encode(self, value: bytes) -> bytes:
        """Return the bytes as they are."""
        return value

    def decode(self, data: BytesIO) -> bytes:
        """Read 16 bytes; raise `ValueError` if there are fewer."""
        content = data.read(_ID_BYTES)
        if len(content) != _ID_BYTES:
            raise ValueError(f"expected an id of {_ID_BYTES} bytes, got {len(content)}")
        return content


class Rest:
    """The remaining bytes."""

    def decode(self, data: BytesIO) -> int:
        """Skip them; return how many they are."""
        return len(data.read())


def _topic_response(*, compact: bool) -> list[Field]:
    many, text = (CompactArray, CompactString("utf-8")) if compact else (Array, _TEXT)
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


_NAMED_TOPIC = ("topic_id", Uuid()), ("topic", CompactString("utf-8")), _TAGS
_REQUEST_10 = [
    ("topics", CompactArray(*_NAMED_TOPIC)),
    ("create", Boolean),
    ("cluster_operations", Boolean),
    ("topic_operations", Boolean),
    _TAGS,
]
_VERSION_4 = version(
    METADATA, 4, [("topics", Array(_TEXT)), ("create", Boolean)], _topic_response(compact=False)
)
_VERSION_10 = version(
    METADATA,
    10,
    _REQUEST_10,
    _topic_response(compact=True),
    is_flexible=True,
)


class TopicId(VersionedRequest):
    """Request the id of one topic, by name, of any broker; creates no topic.

    An id is unique also among topics of the same name. In a response about one topic it comes
    before the partitions, so these are not decoded.
    """

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
    return _id_text(getattr(response, "topic_id", _NO_ID))


def _id_text(content: bytes) -> str | None:
    return None if content == _NO_ID else str(UUID(bytes=content))


class MetadataWithIds(VersionedRequest):
    """Request what `Metadata` does, and the ids of the topics; creates no topic."""

    VERSIONS = (
        Metadata.VERSIONS[0],
        version(
            METADATA,
            10,
            _REQUEST_10,
            [
                ("throttle_time_ms", Int32),
                (
                    "brokers",
                    CompactArray(
                        ("node_id", Int32),
                        ("host", CompactString("utf-8")),
                        ("port", Int32),
                        ("rack", CompactString("utf-8")),
                        _TAGS,
                    ),
                ),
                ("cluster_id", CompactString("utf-8")),
                ("controller_id", Int32),
                (
                    "topics",
                    CompactArray(
                        ("error_code", Int16),
                        ("topic", CompactString("utf-8")),
                        ("topic_id", Uuid()),
                        ("is_internal", Boolean),
                        ("partitions", CompactPartitionMetadata()),
                        ("operations", Int32),
                        _TAGS,
                    ),
                ),
                ("operations", Int32),
                _TAGS,
            ],
            is_flexible=True,
        ),
    )

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; for brokers before 2.8 in a version without ids."""
        if request_struct_class is self.VERSIONS[0]:
            return request_struct_class(topics=self._topics, allow_auto_topic_creation=False)
        return request_struct_class(
            topics=[(_NO_ID, topic, {}) for topic in self._topics],
            create=False,
            cluster_operations=False,
            topic_operations=False,
            tags={},
        )


def take_ids(response: Any) -> dict[str, str]:
    """Make the response one to `Metadata`, and return the ids of topics that it had."""
    if response.API_VERSION == Metadata.VERSIONS[0].API_VERSION:
        return {}
    topics = response.topics or ()
    response.brokers = [broker[:4] for broker in response.brokers or ()]
    response.topics = [(code, name, *rest[1:3]) for code, name, *rest in topics]
    ids = {name: _id_text(rest[0]) for _, name, *rest in topics}
    return {name: one for name, one in ids.items() if one is not None}


# Rows are (partition, timestamp), and then (partition, error, timestamp, offset).
_ASKED = ("topic", _TEXT), ("partitions", FixedSizeRows("iq"))
_FOUND = ("topic", _TEXT), ("partitions", FixedSizeRows("ihqq"))


class ListOffsets(VersionedRequest):
    """Request offsets of a leader: (topic, [(partition, timestamp or `LATEST` or `EARLIEST`)])."""

    VERSIONS = (
        version(
            LIST_OFFSETS,
            2,
            [("replica_id", Int32), ("isolation_level", Int8), ("topics", Array(*_ASKED))],
            [("throttle_time_ms", Int32), ("topics", Array(*_FOUND))],
        ),
    )

    def __init__(
        self, topics: Sequence[tuple[str, Sequence[tuple[int, int]]]], *, stable: bool = False
    ) -> None:
        """Ask about topics.

        Args:
            topics: As of the class.
            stable: Whether the latest offset is where the first open transaction begins, as for
                readers of committed records.
        """
        self._topics, self._stable = topics, stable

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; replica -1 is a client."""
        return request_struct_class(-1, int(self._stable), self._topics)
