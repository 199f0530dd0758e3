"""Topics made and grown, against a cluster that answers as told."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    NoError,
    NotControllerError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
)
from aiokafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest

from binwright.kafka.client import NO_LEADER, ClusterClient
from binwright.kafka.topics import (
    PARTITIONS_PER_REQUEST,
    describe_topic,
    ensure_topic,
    refused_creations,
    replication_factor,
)
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.ports.kafka import TopicDescription
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.looptime

KAFKA = KafkaSettings(request_timeout_s=30)


class FakeCluster(ClusterClient):
    """Has one topic; refuses as told; elects leaders after some looks."""

    def __init__(self, partitions: int = 0, brokers: int = 3) -> None:
        super().__init__(KAFKA)
        self.count, self.alive = partitions, brokers
        self.refusals: list[type] = []
        self.requests: list[Any] = []
        self.unseen = self.leaderless = 0

    async def brokers(self) -> int:
        return self.alive

    async def leaders(self, topic: str) -> Mapping[int, int]:
        assert topic == "t"
        if self.unseen:
            self.unseen -= 1
            return {}
        self.leaderless -= 1
        return dict.fromkeys(range(self.count), NO_LEADER if self.leaderless >= 0 else 1)

    async def send_to_controller(self, request: Any) -> Any:
        self.requests.append(request)
        error: Any = self.refusals.pop(0) if self.refusals else NoError
        if error is NoError:
            match request:
                case CreateTopicsRequest():
                    ((_, self.count, *_),) = request.create_topic_requests
                case CreatePartitionsRequest():
                    ((_, (self.count, _)),) = request._topic_partitions
        return SimpleNamespace(topic_errors=[("t", error.errno, "said so")])


def created(request: Any) -> tuple[int, int, dict[str, str]]:
    ((_, partitions, replicas, _, config),) = request.create_topic_requests
    return partitions, replicas, dict(config)


async def test_a_topic_on_three_brokers_has_three_replicas_and_needs_two() -> None:
    cluster = FakeCluster(brokers=5)
    await ensure_topic(cluster, KAFKA, "t", 2, {"cleanup.policy": "compact"})
    (request,) = cluster.requests
    assert created(request) == (2, 3, {"min.insync.replicas": "2", "cleanup.policy": "compact"})


async def test_on_fewer_brokers_it_has_as_many_replicas_as_there_are() -> None:
    cluster = FakeCluster(brokers=2)
    await ensure_topic(cluster, KAFKA, "t", 2, {})
    assert created(cluster.requests[0]) == (2, 2, {})


async def test_the_settings_choose_the_replicas() -> None:
    assert await replication_factor(FakeCluster(), KafkaSettings(replication_factor=1)) == 1


async def test_a_topic_that_is_large_enough_is_left_alone() -> None:
    cluster = FakeCluster(partitions=7)
    await ensure_topic(cluster, KAFKA, "t", 3, {})
    assert cluster.requests == []


async def test_a_large_topic_is_made_in_steps() -> None:
    cluster = FakeCluster()
    await ensure_topic(cluster, KAFKA, "t", 2 * PARTITIONS_PER_REQUEST + 1, {})
    assert (cluster.count, len(cluster.requests)) == (2 * PARTITIONS_PER_REQUEST + 1, 3)


async def test_it_waits_for_leaders() -> None:
    cluster = FakeCluster(partitions=1)
    cluster.leaderless = 20
    await ensure_topic(cluster, KAFKA, "t", 1, {})
    assert cluster.leaderless < 0


async def test_whether_a_topic_could_be_created_is_asked_without_creating_it() -> None:
    cluster = FakeCluster(brokers=2)
    assert await refused_creations(cluster, KAFKA, {}) == (set(), {})
    assert await refused_creations(cluster, KAFKA, {"t": 8}) == (set(), {})
    (request,) = cluster.requests
    assert created(request) == (8, 2, {})
    assert request.prepare({19: (0, 3)}).validate_only is True


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (TopicAlreadyExistsError, (set(), {})),
        (TopicAuthorizationFailedError, ({"t"}, {})),
        (ClusterAuthorizationFailedError, ({"t"}, {})),
        (PolicyViolationError, (set(), {"t": "PolicyViolationError: said so"})),
    ],
)
async def test_why_a_topic_could_not_be_created_is_returned(
    error: type, refused: tuple[set[str], dict[str, str]]
) -> None:
    cluster = FakeCluster()
    cluster.refusals = [error]
    assert await refused_creations(cluster, KAFKA, {"t": 1}) == refused


@pytest.mark.parametrize("error", [TopicAlreadyExistsError, NotControllerError])
async def test_a_passing_error_is_tried_again(error: type) -> None:
    cluster = FakeCluster()
    cluster.refusals = [error] * 5
    await ensure_topic(cluster, KAFKA, "t", 1, {})
    assert cluster.count == 1


async def test_a_broker_that_does_not_know_the_last_step_yet_is_waited_for() -> None:
    cluster = FakeCluster(partitions=1)
    cluster.unseen = 3
    cluster.refusals = [TopicAlreadyExistsError] * 3 + [InvalidPartitionsError]
    await ensure_topic(cluster, KAFKA, "t", 2, {})
    assert cluster.count == 2


async def test_a_refusal_is_reported_with_kafkas_reason() -> None:
    cluster = FakeCluster()
    cluster.refusals = [InvalidReplicationFactorError]
    with pytest.raises(BrokerUnavailable, match=r"topic t: InvalidReplicationFactor.*said so"):
        await ensure_topic(cluster, KAFKA, "t", 1, {})


async def test_a_lasting_error_ends_at_the_deadline() -> None:
    cluster = FakeCluster()
    cluster.refusals = [NotControllerError] * 1000
    with pytest.raises(BrokerUnavailable, match="not ready within 30 s: NotController"):
        await ensure_topic(cluster, KAFKA, "t", 1, {})


# --- how a topic is set up ---------------------------------------------------------------------


class Described(FakeCluster):
    """Tells of its topic's settings, or refuses to."""

    def __init__(self, error: type = NoError, rows: tuple[Any, ...] = ()) -> None:
        super().__init__(brokers=5)
        self.error: Any = error
        self.rows = rows or ((0, 0, 1, 3, 1, 2, 3, 1, 1), (0, 1, 1, 2, 1, 2, 1, 1))

    async def _metadata(self, topics: Any, ids: Any = None) -> Any:
        assert (topics, ids) == (["t"], None)
        return SimpleNamespace(topics=[(0, "t", False, self.rows)])

    async def send_to_controller(self, request: Any) -> Any:
        ((kind, topic, names),) = request._resources
        entries = [(name, f"{name} is so", False, False, False) for name in names]
        return SimpleNamespace(resources=[(self.error.errno, "", kind, topic, entries)])


async def test_a_topic_is_described_by_its_settings_and_its_fewest_replicas() -> None:
    facts = await describe_topic(Described(), "t", ["b", "a"])
    assert facts == TopicDescription({"a": "a is so", "b": "b is so"}, replicas=2, brokers=5)


async def test_replicas_are_counted_where_the_rows_differ_in_size_too() -> None:
    rows = ((0, 0, 1, [1, 2, 3], [1]), (0, 1, 1, [1], [1]))
    assert (await describe_topic(Described(rows=rows), "t", ["a"])).replicas == 1


async def test_settings_that_we_may_not_read_are_left_out() -> None:
    facts = await describe_topic(Described(TopicAuthorizationFailedError), "t", ["a"])
    assert facts.config == {}


async def test_a_topic_that_does_not_exist_cannot_be_described() -> None:
    cluster = Described()
    cluster.rows = ()
    with pytest.raises(TopicMissing):
        await describe_topic(cluster, "t", ["a"])
