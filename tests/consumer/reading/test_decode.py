"""Batches that aiokafka cannot decode: every record that can be decoded is returned."""

import struct
from collections.abc import Iterator

import pytest
from aiokafka import ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import CorruptRecordException
from tests.consumer.reading.batches import stored, torn

from binwright.consumer.reading.decode import Batches, PartitionRecords, unwatch, watch

P = KafkaPartition("orders", 0)


def read(*parts: bytes, at: int = 0) -> list[ConsumerRecord]:
    records = PartitionRecords(P, Batches(b"".join(parts)), None, at, None, None, True, 1)  # noqa: FBT003
    return list(records)


@pytest.fixture(autouse=True)
def _unwatched() -> Iterator[None]:
    yield
    unwatch(P)


@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_intact_batches_are_decoded_as_by_aiokafka(compression: int) -> None:
    found = read(stored(5, 3, compression=compression), stored(8, 2, compression=compression), at=6)

    assert [(r.offset, r.value) for r in found] == [(6, b"v1"), (7, b"v2"), (8, b"v0"), (9, b"v1")]
    assert found[0].headers == (("key1", b"x"),)


def test_a_header_key_that_is_not_utf8_is_escaped_and_nothing_is_lost() -> None:
    issues = watch(P)
    found = read(stored(5, 3, header=b"\xff\xfea1"))

    assert [(r.offset, r.timestamp, r.key, r.value) for r in found] == [
        (5 + i, 1_000 + i, b"k", b"v%d" % i) for i in range(3)
    ]
    assert [r.headers for r in found] == [
        (("key0", b"x"),),
        (("\\xff\\xfea1", b"x"),),
        (("key2", b"x"),),
    ]
    assert (issues.escaped, issues.fault) == ([6], None)


def test_a_corrupt_batch_is_reported_and_records_before_it_are_returned() -> None:
    issues = watch(P)
    found = read(stored(5, 3), torn(stored(8, 4)), stored(12, 1))

    assert [r.offset for r in found] == [5, 6, 7]
    assert issues.fault is not None
    assert (issues.fault.offset, issues.fault.next) == (8, 12)
    assert "Invalid CRC" in issues.fault.reason


def test_a_batch_with_a_wrong_end_offset_costs_one_offset() -> None:
    issues = watch(P)
    wrong_end = bytearray(stored(5, 3))
    struct.pack_into(">i", wrong_end, 23, 1 << 30)
    read(bytes(wrong_end), at=5)

    assert issues.fault is not None
    assert (issues.fault.offset, issues.fault.next) == (5, 6)


def test_in_an_unwatched_partition_a_corrupt_batch_is_an_error() -> None:
    with pytest.raises(CorruptRecordException):
        read(torn(stored(5, 3)))
