"""Clients that request the metadata of their own topics only."""

from typing import Any

import aiokafka.client
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import NodeNotReadyError
from aiokafka.protocol.metadata import MetadataRequest, MetadataResponse_v4

import binwright.consumer.reading.assigned  # noqa: F401 - it once replaced the request for all
from binwright.kafka.own_topics import inner_client, keep_to_own_topics

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
