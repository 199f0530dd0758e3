"""Requests and responses in bytes, compared with aiokafka's own codec and with Kafka's protocol."""

import struct
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from aiokafka.protocol.offset import OffsetRequest_v2, OffsetResponse_v2
from hypothesis import given
from hypothesis import strategies as some

from binwright.kafka.frames import (
    CompactPartitionMetadata,
    FixedSizeRows,
    ListOffsets,
    Metadata,
    MetadataWithIds,
    PartitionMetadata,
    TopicId,
    Uuid,
    replicas_in,
    take_ids,
    topic_id,
)

NUMBERS = some.integers(-(2**31), 2**31 - 1)
LISTS = some.lists(NUMBERS, max_size=4)
PARTITIONS = some.lists(some.tuples(some.integers(0, 99), NUMBERS, NUMBERS, LISTS, LISTS))


def written(partitions: list[tuple[int, int, int, list[int], list[int]]]) -> bytes:
    return bytes(PartitionMetadata._slow.encode(partitions))


@given(PARTITIONS, some.binary(max_size=40))
def test_leaders_and_replicas_are_those_that_were_written_and_no_byte_more_is_read(
    partitions: list[tuple[int, int, int, list[int], list[int]]], rest: bytes
) -> None:
    data = BytesIO(written(partitions) + rest)
    rows = PartitionMetadata().decode(data)
    assert [row[:3] for row in rows] == [row[:3] for row in partitions]
    assert [list(replicas_in(row)) for row in rows] == [row[3] for row in partitions]
    assert data.read() == rest


@pytest.mark.parametrize("odd", [0, 500, 999])
def test_one_row_of_another_size_is_noticed(odd: int) -> None:
    partitions = [(0, n, 1, [1, 2, 3], [1, 2, 3]) for n in range(1000)]
    partitions[odd] = (5, odd, -1, [1, 2, 3], [2])
    data = BytesIO(written(partitions) + b"rest")
    rows = PartitionMetadata().decode(data)
    assert [row[:3] for row in rows] == [row[:3] for row in partitions]
    assert [list(replicas_in(row)) for row in rows] == [row[3] for row in partitions]
    assert data.read() == b"rest"


def test_sizes_that_no_response_can_have_are_not_believed() -> None:
    huge = struct.pack(">ihiii", 2**31 - 1, 0, 0, 0, 2**31 - 1)
    with pytest.raises(ValueError, match="unpack"):
        PartitionMetadata().decode(BytesIO(huge + bytes(100)))


def test_questions_are_written_as_aiokafka_writes_them() -> None:
    topics = [("orders", [(0, -1), (1, -2)]), ("clicks", [(7, 5)])]
    for stable in (False, True):
        ours = ListOffsets(topics, stable=stable).prepare({2: (1, 11)})
        assert ours.encode() == OffsetRequest_v2(-1, int(stable), topics).encode()
    everything = Metadata(None).prepare({3: (0, 13)}).encode()
    assert everything == b"\xff\xff\xff\xff\0"


def test_offsets_are_read_as_aiokafka_reads_them() -> None:
    topics = [("orders", [(0, 0, -1, 2**40), (1, 6, -1, -1)])]
    answer = OffsetResponse_v2(0, topics).encode()
    read = ListOffsets([]).prepare({2: (1, 2)}).RESPONSE_TYPE.decode(answer)
    assert read.topics == topics


def test_an_answer_that_was_cut_is_reported() -> None:
    whole = FixedSizeRows("iq").encode([(1, 2), (3, 4)])
    assert FixedSizeRows("iq").decode(BytesIO(whole)) == [(1, 2), (3, 4)]
    with pytest.raises(ValueError, match="expected 2 rows"):
        FixedSizeRows("iq").decode(BytesIO(whole[:-1]))


# --- the id of a topic -------------------------------------------------------------------------

ID = UUID("01234567-89ab-cdef-0123-456789abcdef")
HEAD_10 = (
    struct.pack(">i", 0)
    + b"\x02" + struct.pack(">i", 1) + b"\x05host" + struct.pack(">i", 9092) + b"\0\0"
    + b"\x02c" + struct.pack(">i", 1)
)  # fmt: skip
HEAD_4 = (
    struct.pack(">ii", 0, 1)
    + struct.pack(">ih4sih", 1, 4, b"host", 9092, -1)
    + struct.pack(">h1si", 1, b"c", 1)
)
PARTITION_BYTES = bytes(1000)


def answered(newest: int, content: bytes) -> object:
    return TopicId("orders").prepare({3: (0, newest)}).RESPONSE_TYPE.decode(content)


def test_the_question_names_one_topic_and_creates_none() -> None:
    assert TopicId("orders").prepare({3: (0, 13)}).encode() == (
        b"\x02" + bytes(16) + b"\x07orders\0" + b"\0\0\0" + b"\0"
    )
    assert TopicId("orders").prepare({3: (0, 9)}).encode() == (
        struct.pack(">ih", 1, 6) + b"orders" + b"\0"
    )


def test_the_id_is_read_and_the_partitions_are_passed_over() -> None:
    topic = b"\x02" + struct.pack(">h", 0) + b"\x07orders" + ID.bytes + b"\0" + PARTITION_BYTES
    assert topic_id(answered(13, HEAD_10 + topic)) == str(ID)


def test_a_broker_without_topic_ids_gives_none() -> None:
    topic = struct.pack(">ihh", 1, 0, 6) + b"orders" + b"\0" + PARTITION_BYTES
    assert topic_id(answered(9, HEAD_4 + topic)) is None


def test_a_topic_older_than_ids_has_none() -> None:
    topic = b"\x02" + struct.pack(">h", 0) + b"\x07orders" + bytes(16) + PARTITION_BYTES
    assert topic_id(answered(10, HEAD_10 + topic)) is None


def test_an_id_that_was_cut_is_reported() -> None:
    with pytest.raises(ValueError, match="16 bytes, got 3"):
        Uuid().decode(BytesIO(b"abc"))


COMPACT = some.lists(
    some.tuples(some.integers(0, 99), NUMBERS, NUMBERS, NUMBERS, LISTS, LISTS, LISTS, some.just({}))
)


@given(COMPACT, some.binary(max_size=40))
def test_rows_of_a_flexible_version_are_those_that_were_written(
    partitions: list[tuple[int, int, int, int, list[int], list[int], list[int], dict[int, bytes]]],
    rest: bytes,
) -> None:
    of_one_size: list[Any] = [(*row[:4], [1, 2, 3], [1, 2], [], {}) for row in partitions]
    for written in (partitions, of_one_size):
        data = BytesIO(bytes(CompactPartitionMetadata._slow.encode(written)) + rest)
        rows = CompactPartitionMetadata().decode(data)
        assert [row[:3] for row in rows] == [row[:3] for row in written]
        assert [list(replicas_in(row)) for row in rows] == [row[4] for row in written]
        assert data.read() == rest


def test_ids_are_taken_out_of_metadata_which_then_are_as_of_the_version_without() -> None:
    response = MetadataWithIds.VERSIONS[1].RESPONSE_TYPE
    found = response.__new__(response)
    first = UUID(int=7)
    found.brokers = [(1, "host", 9092, None, {})]
    found.topics = [
        (0, "orders", first.bytes, False, [(0, 0, 1, 1, 1)], 0, {}),
        (3, "nosuch", bytes(16), False, [], 0, {}),
    ]

    assert take_ids(found) == {"orders": str(first)}
    assert found.brokers == [(1, "host", 9092, None)]
    assert found.topics == [(0, "orders", False, [(0, 0, 1, 1, 1)]), (3, "nosuch", False, [])]
