"""What is changed of aiokafka's clients, and that others stay as they are."""

from types import SimpleNamespace
from typing import Any

import aiokafka.client
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import NodeNotReadyError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest, MetadataResponse_v4

import binwright.consumer.read.aiokafka_consumer  # noqa: F401 - it once replaced the request for all
from binwright.kafka.aiokafka_patches import (
    hasten_first_fetches,
    inner_client,
    keep_to_own_topics,
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


class Fetches:
    """A fetcher that builds a request for the same partitions each time."""

    def __init__(self, *partitions: int) -> None:
        self.partitions = partitions

    def _get_actions_per_node(self, _: object) -> tuple[list[tuple[int, FetchRequest]], str]:
        wanted = [("orders", [(number, 0, 1_000) for number in self.partitions])]
        return [(1, FetchRequest(75, 65_536, 8_000, 1, wanted))], "others"


def test_the_first_fetch_of_a_partition_gathers_nothing_and_later_ones_do() -> None:
    fetcher = Fetches(0, 1)
    first = hasten_first_fetches(SimpleNamespace(_fetcher=fetcher))

    def least_bytes() -> int:
        ((_, request),), others = fetcher._get_actions_per_node(None)
        assert others == "others"
        return int(request._min_bytes)

    assert least_bytes() == 65_536
    first.update({KafkaPartition("orders", 1), KafkaPartition("orders", 2)})
    assert (least_bytes(), least_bytes()) == (1, 65_536)
    assert first == {KafkaPartition("orders", 2)}, "it was not fetched yet"
    fetcher.partitions = (2,)
    assert (least_bytes(), least_bytes()) == (1, 65_536)
