"""What a user may do, as brokers say it: fields of bits, hidden topics, refused groups."""

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    InvalidGroupIdError,
    InvalidTopicError,
    LeaderNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from binwright.kafka.client import ClusterClient
from binwright.kafka.group_requests import DescribeGroups
from binwright.kafka.permitted import (
    OPERATIONS,
    PermittedMetadata,
    operations,
    permitted_cluster,
    permitted_on_group,
)
from binwright.protocol.errors import BrokerUnavailable
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.looptime

READ, READS = 1 << 3 | 1 << 8, frozenset({"Read", "Describe"})
UNKNOWN = -(1 << 31)


class FakeCluster(ClusterClient):
    """Gives prepared replies, in order; a coordinator is asked through `send_request`."""

    def __init__(self, *replies: Any) -> None:
        super().__init__(KafkaSettings())
        self.replies = list(replies)
        self.asked: list[int] = []

    async def ask_any(self, _: Any) -> Any:
        return self.replies.pop(0)

    async def send_request(self, broker: int, _: Any) -> Any:
        self.asked.append(broker)
        return self.replies.pop(0)


def test_bits_are_operations() -> None:
    assert operations(READ) == READS
    every = sum(1 << number for number in OPERATIONS)
    assert operations(every) == frozenset(OPERATIONS.values())
    assert operations(0) == frozenset()
    assert operations(UNKNOWN) is None


def test_requests_ask_for_operations_and_create_no_topic() -> None:
    request = PermittedMetadata(["a"]).prepare({3: (0, 12)})
    assert request.encode() == struct.pack(">ih", 1, 1) + b"a" + b"\0\1\1"
    request = DescribeGroups(["a"], operations=True).prepare({15: (0, 5)})
    assert request.encode() == struct.pack(">ih", 1, 1) + b"a" + b"\1"


def metadata(*topics: Any, cluster: int = 0) -> SimpleNamespace:
    brokers = [(1, "a", 9092, None), (2, "b", 9093, None)]
    return SimpleNamespace(brokers=brokers, topics=topics, cluster_operations=cluster)


async def test_topics_are_described_hidden_missing_or_refused() -> None:
    partitions: list[Any] = [(0, 0, 1, 5, [1, 2], [1], []), (0, 1, -1, 5, [1], [], [])]
    reply = metadata(
        (0, "orders", False, partitions, READ),
        (LeaderNotAvailableError.errno, "new", False, partitions[1:], READ),
        (TopicAuthorizationFailedError.errno, "secret", False, [], UNKNOWN),
        (UnknownTopicOrPartitionError.errno, "absent", False, [], UNKNOWN),
        (InvalidTopicError.errno, "bad", False, [], UNKNOWN),
        cluster=1 << 8,
    )
    found = await permitted_cluster(FakeCluster(reply), ["orders"])
    orders = found.topics["orders"]
    assert (orders.leaders, orders.leaderless, orders.replicas) == ({0: 1, 1: -1}, (1,), 1)
    assert orders.permitted == READS
    assert found.topics["new"].leaderless == (1,)
    unseen = {name: topic for name, topic in found.topics.items() if not topic.leaders}
    assert {name: (topic.is_hidden, topic.error) for name, topic in unseen.items()} == {
        "secret": (True, ""),
        "absent": (False, ""),
        "bad": (False, "InvalidTopicError"),
    }
    assert found.permitted == frozenset({"Describe"})
    assert found.brokers == {1: ("a", 9092), 2: ("b", 9093)}


def coordinator(error: Any = None, broker: int = 7) -> SimpleNamespace:
    return SimpleNamespace(node_id=broker, error_code=error.errno if error else 0)


def group(bits: int, error: Any = None) -> SimpleNamespace:
    return SimpleNamespace(groups=[(error.errno if error else 0, "g", "", "", "", [], bits)])


async def test_a_group_is_asked_of_its_coordinator_once_there_is_one() -> None:
    cluster = FakeCluster(coordinator(CoordinatorNotAvailableError, -1), coordinator(), group(READ))
    assert await permitted_on_group(cluster, "g") == READS
    assert cluster.asked == [7]


@pytest.mark.parametrize(
    "replies",
    [
        [coordinator(GroupAuthorizationFailedError)],
        [coordinator(), group(UNKNOWN, GroupAuthorizationFailedError)],
    ],
)
async def test_a_group_that_may_not_be_described_permits_nothing(replies: list[Any]) -> None:
    assert await permitted_on_group(FakeCluster(*replies), "g") == frozenset()


async def test_another_refusal_is_an_error() -> None:
    with pytest.raises(BrokerUnavailable, match="group g: InvalidGroupIdError"):
        await permitted_on_group(FakeCluster(coordinator(InvalidGroupIdError)), "g")
