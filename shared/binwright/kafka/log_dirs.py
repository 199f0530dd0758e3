"""The Kafka request DescribeLogDirs, versions 1 to 4: the bytes of each partition on a broker.

aiokafka lacks this request, but has the parts to build it. Brokers since 2.0 support version 1;
version 3 distinguishes a missing permission from an empty disk.
"""

import struct
from collections.abc import Collection, Mapping
from io import BytesIO
from typing import Any

from aiokafka.errors import ClusterAuthorizationFailedError, NoError
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    String,
    TaggedFields,
    UnsignedVarInt32,
)

from binwright.kafka.frames import Field, FixedSizeRows, VersionedRequest, read_rows, version

API = 35
COMPACT_SINCE = 2
"""Since this version arrays and strings are compact, and headers have tags."""

ERROR_CODE_SINCE = 3
"""Since this version a refusal has an error code; before, it shows as no directories."""

DISK_BYTES_SINCE = 4
"""Since this version a directory has the size of its disk."""

_TAGS = ("tags", TaggedFields)
_SIZE = ("partition", Int32), ("size", Int64), ("offset_lag", Int64), ("is_future", Boolean)


class PartitionNumbers:
    """The partition numbers of a topic in a request, encoded in one step."""

    def __init__(self, *, compact: bool) -> None:
        self._compact = compact

    def encode(self, numbers: Collection[int]) -> bytes:
        """Return the array as bytes."""
        count = len(numbers)
        head = UnsignedVarInt32.encode(count + 1) if self._compact else struct.pack(">i", count)
        return bytes(head) + struct.pack(f">{count}i", *numbers)


class CompactSizes:
    """A topic's replicas in versions 2 to 4, decoded in one step unless some have tags."""

    _row = struct.Struct(">iqq?B")  # partition, size, offset lag, is future, number of tags
    _slow = CompactArray(*_SIZE, _TAGS)

    def decode(self, data: BytesIO) -> list[tuple[Any, ...]]:
        """Return the rows of the array."""
        begin = data.tell()
        count = UnsignedVarInt32.decode(data) - 1
        try:
            rows = read_rows(self._row, data, count)
        except ValueError:
            rows = []
        if rows and not any(row[-1] for row in rows):
            return rows
        data.seek(begin)
        replicas: list[tuple[Any, ...]] = self._slow.decode(data)
        return replicas


def _response(number: int) -> list[Field]:
    compact = number >= COMPACT_SINCE
    many, text = (CompactArray, CompactString("utf-8")) if compact else (Array, String("utf-8"))
    tags = (_TAGS,) if compact else ()
    sizes = CompactSizes() if compact else FixedSizeRows("iqq?")
    topic = ("topic", text), ("partitions", sizes), *tags
    disk = (("total", Int64), ("usable", Int64)) if number >= DISK_BYTES_SINCE else ()
    directory = ("error_code", Int16), ("log_dir", text), ("topics", many(*topic)), *disk, *tags
    error = (("error_code", Int16),) if number >= ERROR_CODE_SINCE else ()
    return [("throttle_time_ms", Int32), *error, ("log_dirs", many(*directory)), *tags]


def _request(number: int) -> list[Field]:
    if number < COMPACT_SINCE:
        topic = ("topic", String("utf-8")), ("partitions", PartitionNumbers(compact=False))
        return [("topics", Array(*topic))]
    topic = ("topic", CompactString("utf-8")), ("partitions", PartitionNumbers(compact=True))
    return [("topics", CompactArray(*topic, _TAGS)), _TAGS]


class DescribeLogDirs(VersionedRequest):
    """Queries one broker for its replicas of some partitions, in the newest common version."""

    VERSIONS = tuple(
        version(
            API, number, _request(number), _response(number), is_flexible=number >= COMPACT_SINCE
        )
        for number in (1, 2, 3, 4)
    )

    def __init__(self, partitions: Mapping[str, Collection[int]], newest: int = 4) -> None:
        """Query `partitions` of each topic, in version `newest` at most."""
        self._partitions, self._newest = partitions, newest

    def build(self, request_struct_class: Any) -> Any:
        """Build the request in the version that aiokafka agreed on with the broker."""
        agreed = self.VERSIONS.index(request_struct_class)
        request = self.VERSIONS[min(agreed, self._newest - 1)]
        topics = [(topic, list(numbers)) for topic, numbers in self._partitions.items()]
        if request.FLEXIBLE_VERSION:
            return request([(*topic, {}) for topic in topics], {})
        return request(topics)


def is_refused(response: Any) -> bool:
    """Return whether the broker refused to report sizes to this user."""
    if response.API_VERSION >= ERROR_CODE_SINCE:
        return bool(response.error_code == ClusterAuthorizationFailedError.errno)
    return not response.log_dirs


def sizes(response: Any) -> dict[tuple[str, int], int]:
    """Return the bytes of each partition in the response: (topic, partition) -> size.

    A replica that is being moved to another directory does not count.
    """
    return {
        (topic, partition): size
        for code, _directory, topics, *_ in response.log_dirs or ()
        if code == NoError.errno
        for topic, partitions, *_ in topics or ()
        for partition, size, _lag, is_future, *_ in partitions or ()
        if not is_future
    }


def dead_directories(response: Any) -> tuple[str, ...]:
    """Return the directories that the broker cannot read any more, in order."""
    directories = response.log_dirs or ()
    return tuple(sorted(path for code, path, *_ in directories if code != NoError.errno))


def disk_bytes(response: Any) -> tuple[int | None, int | None]:
    """Return (total, usable) bytes of a broker's disks; None where it does not return them.

    Directories on one disk each return the whole disk: equal totals count once.
    """
    disks = {
        (directory[-3], directory[-2])
        for directory in response.log_dirs or ()
        if response.API_VERSION >= DISK_BYTES_SINCE
        and directory[0] == NoError.errno
        and directory[-3] >= 0
    }
    if not disks:
        return None, None
    return sum(total for total, _ in disks), sum(usable for _, usable in disks)
