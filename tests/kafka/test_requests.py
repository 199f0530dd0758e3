"""Answers read in whole arrays say what aiokafka's own reading says."""

from io import BytesIO

import pytest
from aiokafka.protocol.offset import OffsetRequest_v1, OffsetResponse_v1
from hypothesis import given
from hypothesis import strategies as some

from binwright.kafka.requests import FixedSizeRows, ListOffsets, Metadata, PartitionMetadata

NUMBERS = some.integers(-(2**31), 2**31 - 1)
LISTS = some.lists(NUMBERS, max_size=4)
PARTITIONS = some.lists(some.tuples(some.integers(0, 99), NUMBERS, NUMBERS, LISTS, LISTS))


def written(partitions: list[tuple[int, int, int, list[int], list[int]]]) -> bytes:
    return bytes(PartitionMetadata._slow.encode(partitions))


@given(PARTITIONS, some.binary(max_size=40))
def test_leaders_are_those_that_were_written_and_no_byte_more_is_read(
    partitions: list[tuple[int, int, int, list[int], list[int]]], rest: bytes
) -> None:
    data = BytesIO(written(partitions) + rest)
    assert [row[:3] for row in PartitionMetadata().decode(data)] == [row[:3] for row in partitions]
    assert data.read() == rest


@pytest.mark.parametrize("odd", [0, 500, 999])
def test_one_row_of_another_size_is_noticed(odd: int) -> None:
    partitions = [(0, n, 1, [1, 2, 3], [1, 2, 3]) for n in range(1000)]
    partitions[odd] = (5, odd, -1, [1, 2, 3], [2])
    data = BytesIO(written(partitions) + b"rest")
    assert [row[:3] for row in PartitionMetadata().decode(data)] == [row[:3] for row in partitions]
    assert data.read() == b"rest"


def test_questions_are_written_as_aiokafka_writes_them() -> None:
    topics = [("orders", [(0, -1), (1, -2)]), ("clicks", [(7, 5)])]
    ours = ListOffsets(topics).prepare({2: (1, 11)})
    assert ours.encode() == OffsetRequest_v1(-1, topics).encode()
    everything = Metadata(None).prepare({3: (0, 13)}).encode()
    assert everything == b"\xff\xff\xff\xff\0"


def test_offsets_are_read_as_aiokafka_reads_them() -> None:
    topics = [("orders", [(0, 0, -1, 2**40), (1, 6, -1, -1)])]
    answer = OffsetResponse_v1(topics).encode()
    read = ListOffsets([]).prepare({2: (1, 1)}).RESPONSE_TYPE.decode(answer)
    assert read.topics == topics


def test_an_answer_that_was_cut_is_reported() -> None:
    whole = FixedSizeRows("iq").encode([(1, 2), (3, 4)])
    assert FixedSizeRows("iq").decode(BytesIO(whole)) == [(1, 2), (3, 4)]
    with pytest.raises(ValueError, match="expected 2 rows"):
        FixedSizeRows("iq").decode(BytesIO(whole[:-1]))
