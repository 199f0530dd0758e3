"""Clients that keep to their own topics; batches that aiokafka cannot decode.

Of a batch every record that can be decoded is returned.
"""

import struct
from collections.abc import Iterator
from typing import Any

import aiokafka.client
import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import CorruptRecordException, NodeNotReadyError
from aiokafka.protocol.metadata import MetadataRequest, MetadataResponse_v4
from tests.kafka.batches import stored, torn

import binwright.consumer.reading.aiokafka_consumer  # noqa: F401 - it once replaced the request for all
from binwright.kafka.aiokafka_patches import (
    Batches,
    PartitionRecords,
    inner_client,
    keep_to_own_topics,
    unwatch,
    watch,
)

BROKERS = [(0, "a", 9092, None), (1, "b", 9092, None)]
VERSIONS = {3: (0, 9)}


class Answers:
    """What brokers answer to metadata requests, and what they were asked."""

    def __init__(self, *late: int) -> None:
        self.late = late
        self.requests: list[bytes] = []

    async def send(self, broker: int, request: Any) -> MetadataResponse_v4:
        if broker in self.late:
            raise NodeNotReadyError
        self.requests.append(request.prepare(VERSIONS).encode())
        return MetadataResponse_v4(0, BROKERS, "cluster", 0, [(0, "orders", False, [])])


def kept(answers: Answers) -> Any:
    """Return a client that knows two brokers, kept to its own topics."""
    consumer = AIOKafkaConsumer(bootstrap_servers="a:9092")
    keep_to_own_topics(consumer)
    client = inner_client(consumer)
    client.cluster.update_metadata(MetadataResponse_v4(0, BROKERS, "cluster", 0, []))
    client.send = answers.send
    return client


@pytest.mark.parametrize("topics", [set(), {"orders"}])
async def test_a_client_requests_its_own_topics_and_has_none_created(topics: set[str]) -> None:
    answers = Answers()
    client = kept(answers)
    assert await client._metadata_update(client.cluster, topics)
    expected = MetadataRequest(list(topics), allow_auto_topic_creation=False)
    assert answers.requests == [expected.prepare(VERSIONS).encode()]
    assert client.cluster.topics() == {"orders"}


async def test_another_broker_is_asked_when_one_does_not_answer() -> None:
    for late in (0, 1):
        answers = Answers(late)
        client = kept(answers)
        assert await client._metadata_update(client.cluster, set())
        assert len(answers.requests) == 1


async def test_without_an_answer_the_metadata_stay() -> None:
    client = kept(Answers(0, 1))
    assert not await client._metadata_update(client.cluster, set())
    assert {broker.nodeId for broker in client.cluster.brokers()} == {0, 1}


async def test_other_clients_of_the_process_are_left_as_they_are() -> None:
    kept(Answers())
    other = inner_client(AIOKafkaConsumer(bootstrap_servers="a:9092"))
    assert "_metadata_update" not in vars(other)
    assert aiokafka.client.MetadataRequest is MetadataRequest


# --- decoding ------------------------------------------------------------------------------------

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
