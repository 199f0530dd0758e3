"""Coordinators and offsets of many groups, as brokers of several versions write them."""

import struct
from typing import Any

import pytest
from aiokafka.errors import IncompatibleBrokerVersion

from binwright.kafka.group_requests import (
    Coordinator,
    FetchGroupOffsets,
    FindCoordinators,
    OffsetEntry,
    coordinators,
    group_offsets,
)

NEW, OLD = {9: (1, 9), 10: (0, 6)}, {9: (0, 7), 10: (0, 3)}


def test_all_groups_are_asked_for_by_one_request() -> None:
    assert FindCoordinators(["a", "bc"]).prepare(NEW).encode() == b"\0" + b"\x03\x02a\x03bc" + b"\0"
    assert FetchGroupOffsets(["a", "bc"]).prepare(NEW).encode() == (
        b"\x03" + b"\x02a\0\0" + b"\x03bc\0\0" + b"\0" + b"\0"
    )


def test_an_old_broker_is_asked_for_one_group() -> None:
    assert FindCoordinators(["a"]).prepare(OLD).encode() == struct.pack(">h", 1) + b"a" + b"\0"
    assert FetchGroupOffsets(["a"]).prepare(OLD).encode() == (
        struct.pack(">h", 1) + b"a" + struct.pack(">i", -1)
    )


@pytest.mark.parametrize("request_type", [FindCoordinators, FetchGroupOffsets])
def test_an_old_broker_cannot_be_asked_for_several(request_type: Any) -> None:
    with pytest.raises(IncompatibleBrokerVersion):
        request_type(["a", "b"]).prepare(OLD)


def decoded(request: Any, versions: dict[int, tuple[int, int]], content: bytes) -> Any:
    return request.prepare(versions).RESPONSE_TYPE.decode(content)


def test_coordinators_are_read_with_their_errors() -> None:
    head = struct.pack(">i", 0) + b"\x03"
    one = b"\x02a" + struct.pack(">i", 4) + b"\x05host" + struct.pack(">ih", 9092, 0) + b"\x01\0"
    other = b"\x02b" + struct.pack(">i", -1) + b"\x01" + struct.pack(">ih", -1, 15) + b"\0\0"
    request = FindCoordinators(["a", "b"])

    assert list(coordinators(["a", "b"], decoded(request, NEW, head + one + other + b"\0"))) == [
        Coordinator("a", 4, 0),
        Coordinator("b", -1, 15),
    ]


def test_an_old_coordinator_is_that_of_the_group_asked_for() -> None:
    content = struct.pack(">ihh", 0, 0, -1) + struct.pack(">ih4si", 4, 4, b"host", 9092)
    found = decoded(FindCoordinators(["a"]), OLD, content)

    assert list(coordinators(["a"], found)) == [Coordinator("a", 4, 0)]


def test_offsets_are_read_group_by_group_without_partitions_that_have_none() -> None:
    def row(partition: int, offset: int) -> bytes:
        return struct.pack(">iqi", partition, offset, 7) + b"\x03me" + struct.pack(">h", 0) + b"\0"

    topic = b"\x02t" + b"\x03" + row(0, 50) + row(1, -1) + b"\0"
    one = b"\x02a" + b"\x02" + topic + struct.pack(">h", 0) + b"\0"
    other = b"\x02b" + b"\x01" + struct.pack(">h", 30) + b"\0"
    content = struct.pack(">i", 0) + b"\x03" + one + other + b"\0"
    found = decoded(FetchGroupOffsets(["a", "b"]), NEW, content)

    assert list(group_offsets(["a", "b"], found)) == [
        ("a", 0, [OffsetEntry("t", 0, 50)]),
        ("b", 30, []),
    ]


def test_old_offsets_are_those_of_the_group_asked_for() -> None:
    row = struct.pack(">iqhh", 3, 50, -1, 0)
    topics = struct.pack(">ih1si", 1, 1, b"t", 1) + row
    found = decoded(FetchGroupOffsets(["a"]), OLD, struct.pack(">i", 0) + topics + b"\0\0")

    assert list(group_offsets(["a"], found)) == [("a", 0, [OffsetEntry("t", 3, 50)])]
