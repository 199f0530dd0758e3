"""Which topic of a name it is, as brokers write it."""

import struct
from io import BytesIO
from uuid import UUID

import pytest

from binwright.kafka.topic_id import TopicId, Uuid, topic_id

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
PARTITIONS = bytes(1000)


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
    topic = b"\x02" + struct.pack(">h", 0) + b"\x07orders" + ID.bytes + b"\0" + PARTITIONS
    assert topic_id(answered(13, HEAD_10 + topic)) == str(ID)


def test_a_broker_without_topic_ids_gives_none() -> None:
    topic = struct.pack(">ihh", 1, 0, 6) + b"orders" + b"\0" + PARTITIONS
    assert topic_id(answered(9, HEAD_4 + topic)) is None


def test_a_topic_older_than_ids_has_none() -> None:
    topic = b"\x02" + struct.pack(">h", 0) + b"\x07orders" + bytes(16) + PARTITIONS
    assert topic_id(answered(10, HEAD_10 + topic)) is None


def test_an_answer_that_was_cut_is_reported() -> None:
    with pytest.raises(ValueError, match="16 bytes, got 3"):
        Uuid().decode(BytesIO(b"abc"))
