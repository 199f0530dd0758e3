"""On a broker with an authorizer each user tries everything: what is not granted is refused."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiokafka.protocol.admin import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
)
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.produce import ProduceRequest
from tests.integration.authorization import (
    CLUSTER,
    GROUP,
    LITERAL,
    OPERATIONS,
    TOPIC,
    Acl,
    CreateAcls,
    acl,
    guarded_broker,
    parse_command,
)
from tests.integration.test_acls import COMMANDS

from binwright.kafka.client import LATEST, ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.frames import ListOffsets

pytestmark = pytest.mark.integration

DEADLINE_S = 240.0
REFUSED = {29, 30, 31}  # Kafka's codes: not authorized for the topic, the group, the cluster
BROKER, BROKER_CONFIG = 1, 4
TIMEOUT_MS = 5_000
TOPICS = (
    *("orders", "clicks", "payments", "payments.metadata", "payments.commands"),
    *("binwright.metadata", "binwright.commands", "binwright.landing"),
    "binwright.group-orders",
    *("binwright.metrics", "binwright.metrics.needs"),
    *("binwright.brokers", "binwright.probe", "binwright.plans"),
)
GROUPS = (
    *("binwright", "binwright.controllers", "binwright.scalers", "binwright.balancers"),
    *("orders-billing", "payments"),
)
IMPLIED = {
    "Describe": {"Read", "Write", "Delete", "Alter"},
    "DescribeConfigs": {"AlterConfigs"},
}
Attempt = tuple[int, str, str]
"""Kind of a thing, operation, name of the thing."""


Reply = Any
Try = tuple[Callable[[str], Request[Any]], Callable[[Reply], int]]
"""A request about a thing, and where its error code is in the response."""


def describe_configs(kind: int) -> Try:
    return (
        lambda name: DescribeConfigsRequest([(kind, name, None)]),
        lambda reply: int(reply.resources[0][0]),
    )


def alter_configs(kind: int) -> Try:
    return (
        lambda name: AlterConfigsRequest([(kind, name, [])], validate_only=True),
        lambda reply: int(reply.resources[0][0]),
    )


def create_topic(name: str) -> Request[Any]:
    wanted: Any = [(name, 1, 1, [], [])]
    return CreateTopicsRequest(wanted, TIMEOUT_MS, validate_only=True)


def add_partitions(name: str) -> Request[Any]:
    wanted: Any = [(name, (9, None))]
    return CreatePartitionsRequest(wanted, TIMEOUT_MS, validate_only=True)


def describe_acls(_: str) -> Request[Any]:
    return DescribeAclsRequest(TOPIC, "no-such", LITERAL, "User:nobody", "*", 1, 1)


def of_partition(reply: Reply) -> int:
    """Return the code of the one partition that a request was about."""
    return int(reply.topics[0][1][0][1])


TRIES: Mapping[tuple[int, str], Try] = {
    (TOPIC, "Describe"): (lambda name: ListOffsets([(name, [(0, LATEST)])]), of_partition),
    (TOPIC, "Read"): (lambda name: FetchRequest(0, 0, 1, 0, [(name, [(0, 0, 1)])]), of_partition),
    (TOPIC, "Write"): (  # no record: that is what a user is told who may write
        lambda name: ProduceRequest(None, 1, TIMEOUT_MS, [(name, [(0, b"no record")])]),
        of_partition,
    ),
    (TOPIC, "Create"): (create_topic, lambda reply: int(reply.topic_errors[0][1])),
    (TOPIC, "Alter"): (add_partitions, lambda reply: int(reply.topic_errors[0][1])),
    (TOPIC, "DescribeConfigs"): describe_configs(TOPIC),
    (TOPIC, "AlterConfigs"): alter_configs(TOPIC),
    (TOPIC, "Delete"): (
        lambda name: DeleteTopicsRequest([name], TIMEOUT_MS),
        lambda reply: int(reply.topic_error_codes[0][1]),
    ),
    (GROUP, "Describe"): (
        lambda name: DescribeGroupsRequest([name]),
        lambda reply: int(reply.groups[0][0]),
    ),
    (GROUP, "Read"): (
        lambda name: HeartbeatRequest(name, 0, "m"),
        lambda reply: int(reply.error_code),
    ),
    (CLUSTER, "Describe"): (describe_acls, lambda reply: int(reply.error_code)),
    (CLUSTER, "Alter"): (
        lambda _: CreateAcls([acl("nobody", "Read", TOPIC, "no-such")]),
        lambda reply: int(reply.results[0][0]),
    ),
    (CLUSTER, "Create"): (
        lambda _: create_topic("of-no-rule"),
        lambda reply: int(reply.topic_errors[0][1]),
    ),
    (CLUSTER, "DescribeConfigs"): describe_configs(BROKER_CONFIG),
    (CLUSTER, "AlterConfigs"): alter_configs(BROKER_CONFIG),
}
THE_CLUSTER = {CLUSTER: str(BROKER)}  # requests about it name a broker
THINGS = {TOPIC: TOPICS, GROUP: GROUPS, CLUSTER: (str(BROKER),)}


def granted(rules: Iterable[Acl], user: str) -> set[Attempt]:
    """Return the operations that rules allow a user, with those that they imply."""
    names = {number: name for name, number in OPERATIONS.items()}
    mine = [rule for rule in rules if rule.principal == f"User:{user}"]
    plain = {
        (each.resource, names[each.operation], THE_CLUSTER.get(each.resource, each.name))
        for each in mine
    }
    return plain | {
        (kind, operation, name)
        for kind, held, name in plain
        for operation, by in IMPLIED.items()
        if held in by and (kind, operation) in TRIES
    }


async def tried(cluster: ClusterClient, expected: set[Attempt]) -> set[Attempt]:
    """Return what a user may; what it may delete is not tried."""
    found = set()
    for (kind, operation), (request, code) in TRIES.items():
        for name in THINGS[kind]:
            attempt = kind, operation, name
            spared = operation == "Delete" and attempt in expected
            if spared or code(await cluster.send_request(BROKER, request(name))) not in REFUSED:
                found.add(attempt)
    return found


@pytest.mark.nightly
async def test_each_user_may_what_the_list_grants_and_nothing_else(tmp_path: Path) -> None:
    rules = [rule for line in COMMANDS for rule in parse_command(line)]
    users = sorted({rule.principal.removeprefix("User:") for rule in rules})
    assert len(users) == 8
    async with (
        asyncio.timeout(DEADLINE_S),
        guarded_broker(tmp_path / "kafka", [*users, "stranger"], rules, denies=True) as made,
    ):
        owner, connections = made
        async with KafkaControlTopics(owner) as bus:
            for topic in TOPICS:
                await bus.ensure(topic, 1, {})
        for name, connection in connections.items():
            expected = granted(rules, name)
            async with ClusterClient(connection) as cluster:
                assert await tried(cluster, expected) == expected, name
