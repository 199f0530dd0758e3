"""A batch's header tells its bytes and its offsets."""

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from binwright.monitor.batches import bytes_per_offset


def batch(count: int, size: int, compression: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, 0, 1 << 20)
    for offset in range(count):
        builder.append(offset, 1, None, bytes(size), [])
    return bytes(builder.build())


@pytest.mark.parametrize(("count", "size"), [(1, 10), (7, 1000)])
def test_a_batch_weighs_what_it_takes_on_disk(count: int, size: int) -> None:
    whole = batch(count, size)
    assert bytes_per_offset(whole) == len(whole) / count
    assert bytes_per_offset(whole + batch(3, 3)) == len(whole) / count


def test_the_header_is_enough() -> None:
    whole = batch(7, 1000)
    assert bytes_per_offset(whole[:61]) == len(whole) / 7


@pytest.mark.parametrize("cut", [0, 20])
def test_less_than_a_header_tells_nothing(cut: int) -> None:
    assert bytes_per_offset(batch(1, 1)[:cut]) is None


def test_an_older_format_tells_nothing() -> None:
    assert bytes_per_offset(struct.pack(">qi4xb6xi", 0, 100, 1, 0) + bytes(40)) is None
