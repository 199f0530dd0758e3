"""Bytes per offset from the header of a batch."""

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from binwright.monitor.sampling import bytes_per_offset


def batch(count: int, size: int, compression: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, 0, 1 << 20)
    for offset in range(count):
        builder.append(offset, 1, None, bytes(size), [])
    return bytes(builder.build())


@pytest.mark.parametrize(("count", "size"), [(1, 10), (7, 1000)])
def test_bytes_per_offset_are_those_on_disk(count: int, size: int) -> None:
    content = batch(count, size)
    assert bytes_per_offset(content) == len(content) / count
    assert bytes_per_offset(content + batch(3, 3)) == len(content) / count


def test_the_header_is_enough() -> None:
    content = batch(7, 1000)
    assert bytes_per_offset(content[:61]) == len(content) / 7


@pytest.mark.parametrize("cut", [0, 20])
def test_less_than_a_header_gives_none(cut: int) -> None:
    assert bytes_per_offset(batch(1, 1)[:cut]) is None


def test_an_older_format_gives_none() -> None:
    assert bytes_per_offset(struct.pack(">qi4xb6xi", 0, 100, 1, 0) + bytes(40)) is None
