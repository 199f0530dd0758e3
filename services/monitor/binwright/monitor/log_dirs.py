"""DescribeLogDirs, versions 1 to 4: how many bytes a broker keeps of each partition.

aiokafka has no such request; it has the parts to say it with. Version 1 is understood by every
broker since 2.0, version 3 tells a missing right from an empty disk.
"""

import struct
from collections.abc import Collection, Mapping
from io import BytesIO
from typing import Any

from aiokafka.errors import ClusterAuthorizationFailedError, NoError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
    UnsignedVarInt32,
)

from binwright.shell.frames import Rows, unpacked

API = 35
TELLS_ERRORS = 3
"""Since this version a refusal is told as an error; before, as a broker without directories."""

_TAGS = ("tags", TaggedFields)
_SIZE = ("partition", Int32), ("size", Int64), ("offset_lag", Int64), ("is_future", Boolean)


class Numbers:
    """Partition numbers in a question, written at once."""

    def __init__(self, *, compact: bool) -> None:
        self._compact = compact

    def encode(self, numbers: Collection[int]) -> bytes:
        """Return the array as bytes."""
        count = len(numbers)
        head = UnsignedVarInt32.encode(count + 1) if self._compact else struct.pack(">i", count)
        return bytes(head) + struct.pack(f">{count}i", *numbers)


class CompactSizes:
    """A topic's copies as later versions write them: at once, unless there are tags among them."""

    _row = struct.Struct(">iqq?B")  # partition, size, offset lag, is future, number of tags
    _slow = CompactArray(*_SIZE, _TAGS)

    def decode(self, data: BytesIO) -> list[tuple[Any, ...]]:
        """Read the array."""
        begin = data.tell()
        count = UnsignedVarInt32.decode(data) - 1
        try:
            rows = unpacked(self._row, data, count)
        except ValueError:
            rows = []
        if rows and not any(row[-1] for row in rows):
            return rows
        data.seek(begin)
        found: list[tuple[Any, ...]] = self._slow.decode(data)
        return found


def _answer(version: int) -> Schema:
    compact = version >= 2  # noqa: PLR2004
    many, text = (CompactArray, CompactString("utf-8")) if compact else (Array, String("utf-8"))
    tags = (_TAGS,) if compact else ()
    sizes = CompactSizes() if compact else Rows("iqq?")
    topic = ("topic", text), ("partitions", sizes), *tags
    disk = (("total", Int64), ("usable", Int64)) if version >= 4 else ()  # noqa: PLR2004
    directory = ("error_code", Int16), ("log_dir", text), ("topics", many(*topic)), *disk, *tags
    error = (("error_code", Int16),) if version >= TELLS_ERRORS else ()
    return Schema(("throttle_time_ms", Int32), *error, ("log_dirs", many(*directory)), *tags)


class _Answer1(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, SCHEMA = API, 1, _answer(1)


class _Answer2(_Answer1):
    API_VERSION, SCHEMA = 2, _answer(2)


class _Answer3(_Answer1):
    API_VERSION, SCHEMA = 3, _answer(3)


class _Answer4(_Answer1):
    API_VERSION, SCHEMA = 4, _answer(4)


class _Question1(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = API, 1, _Answer1
    SCHEMA = Schema(
        ("topics", Array(("topic", String("utf-8")), ("partitions", Numbers(compact=False))))
    )


class _Question2(_Question1):
    API_VERSION, RESPONSE_TYPE, FLEXIBLE_VERSION = 2, _Answer2, True
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")), ("partitions", Numbers(compact=True)), _TAGS
            ),
        ),
        _TAGS,
    )


class _Question3(_Question2):
    API_VERSION, RESPONSE_TYPE = 3, _Answer3


class _Question4(_Question2):
    API_VERSION, RESPONSE_TYPE = 4, _Answer4


class DescribeLogDirs(Request[_Question1 | _Question2 | _Question3 | _Question4]):  # type: ignore[misc]
    """Ask one broker about its copies of some partitions, in the newest version both know."""

    API_KEY = API

    def __init__(self, partitions: Mapping[str, Collection[int]], newest: int = 4) -> None:
        """Ask about `partitions` of each topic, in version `newest` at most."""
        self._partitions, self._newest = partitions, newest

    def build(self, request_struct_class: Any) -> Any:
        """Say it in the version that aiokafka agreed on with the broker."""
        agreed = self._CLASSES.index(request_struct_class)
        question: Any = self._CLASSES[min(agreed, self._newest - 1)]
        topics = [(topic, list(numbers)) for topic, numbers in self._partitions.items()]
        if question.FLEXIBLE_VERSION:
            return question([(*topic, {}) for topic in topics], {})
        return question(topics)


def is_refused(answer: Any) -> bool:
    """Tell whether the broker kept its sizes to itself because we may not know them."""
    if answer.API_VERSION >= TELLS_ERRORS:
        return bool(answer.error_code == ClusterAuthorizationFailedError.errno)
    return not answer.log_dirs


def sizes(answer: Any) -> dict[tuple[str, int], int]:
    """Return the bytes of each partition that the broker told: (topic, partition) -> size.

    A copy that is only on its way to another directory does not count.
    """
    return {
        (topic, partition): size
        for code, _directory, topics, *_ in answer.log_dirs
        if code == NoError.errno
        for topic, partitions, *_ in topics
        for partition, size, _lag, is_future, *_ in partitions
        if not is_future
    }
