"""What the product's own clients are refused on a broker with the documented rights alone."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.builders import measurement
from tests.integration.authorization import guarded_broker, parse_command
from tests.integration.test_acls import COMMANDS

from binwright.balancer.commands.approve import approve_plan, withdraw_plan
from binwright.balancer.decide.proposals import BrokersApproved, BrokersProposed, CopiesStarted
from binwright.balancer.plan_topic import PlanTopic
from binwright.kafka.control_records import (
    COMMANDS_CONFIG,
    LANDING_CONFIG,
    LANDING_PARTITIONS,
    METADATA_CONFIG,
    METRICS_CONFIG,
    NEEDS_CONFIG,
    ORDERS_CONFIG,
)
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.monitor.sampling import KafkaLogs
from binwright.protocol.commands import Leave, StopReading
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.landing import Staged
from binwright.protocol.metadata import Hello
from binwright.protocol.metrics import Needs
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import (
    Approved,
    CordonOrder,
    FormerOrders,
    FreezeOrder,
    OrderRecord,
    PinOrder,
    ScaleOrder,
    TableOrder,
)
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.protocol.wire import AnyMessage
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

DEADLINE_S = 240.0
PLANS, ORDERS = "binwright.brokers", "binwright.group-orders"
USERS = ("controller", "consumer", "operator", "monitor", "viewer", "scaler", "approver")
REFUSED = "TopicAuthorizationFailed"


@pytest.fixture
async def users(tmp_path: Path) -> AsyncIterator[Mapping[str, KafkaSettings]]:
    """Connections of each user, and of the broker's owner."""
    rules = [rule for line in COMMANDS for rule in parse_command(line)]
    async with guarded_broker(tmp_path / "kafka", USERS, rules, denies=True) as (
        owner,
        connections,
    ):
        yield {"owner": owner, **connections}


@pytest.mark.nightly
async def test_what_each_user_may_not_is_refused_to_it(users: Mapping[str, KafkaSettings]) -> None:
    """One broker for all: its start takes longer than they do."""
    async with asyncio.timeout(DEADLINE_S):
        await only_controllers_command_consumers(users)
        await consumers_give_no_orders_and_approve_nothing(users)
        await operators_neither_report_nor_command(users)
        await a_monitor_writes_measurements_and_nothing_else(users)
        await neither_operators_nor_the_scaler_approve_plans_for_brokers(users)
        await a_monitor_measures_what_it_may_describe(users)


async def only_controllers_command_consumers(users: Mapping[str, KafkaSettings]) -> None:
    topic = "binwright.commands"
    stop = StopReading(term=9, revision=1, epoch=1, partitions=(TopicPartition("orders", 0),))
    async with KafkaControlTopics(users["owner"]) as bus:
        await bus.ensure(topic, 1, COMMANDS_CONFIG)
    for name in ("consumer", "operator"):
        async with KafkaControlTopics(users[name]) as bus:
            with pytest.raises(BrokerUnavailable, match=REFUSED):
                await publish_message(bus, topic, 0, stop)
    async with KafkaControlTopics(users["controller"]) as bus:
        assert await publish_message(bus, topic, 0, stop) == 0, "nothing was written before"
    async with KafkaControlTopics(users["consumer"]) as bus:
        reader = await bus.reader(topic, 0, 0)
        assert len(await reader.read(30.0)) == 1
        await reader.close()


async def refused(
    users: Mapping[str, KafkaSettings], name: str, sent: Sequence[tuple[str, AnyMessage]]
) -> None:
    """Check that a user's messages are refused, and that no topic has more than before."""
    topics = {topic for topic, _ in sent}
    async with KafkaControlTopics(users["owner"]) as owner:
        before = {topic: await owner.end(topic, 0) for topic in topics}
        async with KafkaControlTopics(users[name]) as bus:
            for topic, message in sent:
                with pytest.raises(BrokerUnavailable, match=REFUSED):
                    await publish_message(bus, topic, 0, message)
        assert {topic: await owner.end(topic, 0) for topic in topics} == before, name


GIVEN: Sequence[OrderRecord] = (
    Approved(plan=1, by="ann"),
    FreezeOrder(frozen=True, by="ann"),
    PinOrder(topic="orders", partition=0, slot=Slot(1), by="ann"),
    CordonOrder(slot=Slot(1), state="drained", by="ann"),
    ScaleOrder(consumers=9, by="ann"),
    TableOrder(topic="orders", paused=True, by="ann"),
    FormerOrders(taken=0),
)


async def consumers_give_no_orders_and_approve_nothing(users: Mapping[str, KafkaSettings]) -> None:
    async with KafkaControlTopics(users["owner"]) as bus:
        await bus.ensure(ORDERS, 1, ORDERS_CONFIG)
    await refused(users, "consumer", [(ORDERS, order) for order in GIVEN])
    for name in ("monitor", "scaler", "approver"):
        await refused(users, name, [(ORDERS, GIVEN[0])])
    with pytest.raises(BrokerUnavailable, match="ClusterAuthorizationFailed"):
        async with KafkaControlTopics(users["viewer"]):
            pass  # who may write to no topic opens no producer
    for name in ("operator", "controller"):  # by its commands; by an annotation
        async with KafkaControlTopics(users[name]) as bus:
            await publish_message(bus, ORDERS, 0, GIVEN[0])
    async with KafkaControlTopics(users["consumer"]) as bus:
        reader = await bus.reader(ORDERS, 0, 0)
        assert len(await reader.read(30.0)) == 2, "it reads the orders about its tables"
        await reader.close()


REPORTED: Mapping[str, AnyMessage] = {
    "binwright.metadata": Hello(slot=Slot(0), process="x", version="1"),
    "binwright.commands": Leave(term=1, epoch=1),
    "binwright.landing": Staged(
        topic="orders",
        topic_id=None,
        file="0-1-1-0a1b2c3d.parquet",
        rows=1,
        bytes=1,
        ranges={},
        slot=Slot(0),
        epoch=1,
    ),
}


async def operators_neither_report_nor_command(users: Mapping[str, KafkaSettings]) -> None:
    async with KafkaControlTopics(users["owner"]) as bus:
        await bus.ensure("binwright.metadata", 1, METADATA_CONFIG)
        await bus.ensure("binwright.landing", LANDING_PARTITIONS, LANDING_CONFIG)
    await refused(users, "operator", [*REPORTED.items()])


async def a_monitor_writes_measurements_and_nothing_else(
    users: Mapping[str, KafkaSettings],
) -> None:
    async with KafkaControlTopics(users["owner"]) as bus:
        await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
        await bus.ensure("binwright.metrics.needs", 1, NEEDS_CONFIG)
    needs = Needs(group="g", at_ms=1, topics=("orders",), patterns=())
    await refused(users, "monitor", [*REPORTED.items(), ("binwright.metrics.needs", needs)])
    async with KafkaControlTopics(users["monitor"]) as bus:
        await publish_message(bus, "binwright.metrics", 0, measurement("orders", []))


async def neither_operators_nor_the_scaler_approve_plans_for_brokers(
    users: Mapping[str, KafkaSettings],
) -> None:
    before, after = {TopicPartition("orders", 0): (1,)}, {TopicPartition("orders", 0): (2,)}
    proposed = BrokersProposed(
        group="g", reasons=("uneven",), bytes=1, before=before, after=after, waits=True
    )
    async with (
        KafkaControlTopics(users["owner"]) as owner,
        aclosing(PlanTopic(owner, PLANS)) as plans,
    ):
        number = await plans.publish(proposed)
        for name in ("operator", "scaler", "controller", "consumer"):
            async with KafkaControlTopics(users[name]) as bus:
                for attempt in (
                    approve_plan(bus, PLANS, number, 30.0),
                    withdraw_plan(bus, PLANS, number),
                    publish_message(bus, PLANS, 0, BrokersApproved(plan=number, by=name)),
                ):
                    with pytest.raises(BrokerUnavailable, match=REFUSED):
                        await attempt
        waits = (await plans.read()).numbered(number)
        assert waits is not None
        assert not waits.approved
        async with KafkaControlTopics(users["approver"]) as bus, asyncio.TaskGroup() as tasks:
            tasks.create_task(approve_plan(bus, PLANS, number, 60.0))
            while not (await plans.follow()).by_group["g"].approved:
                pass
            await plans.publish(CopiesStarted(plan=number, bytes=0, at_ms=0))  # as a leader does
        assert (await plans.read()).by_group["g"].by


async def a_monitor_measures_what_it_may_describe(users: Mapping[str, KafkaSettings]) -> None:
    """A group's pattern does not make it measure topics beyond the rights of its own user."""
    async with KafkaControlTopics(users["owner"]) as bus:
        for topic in ("orders", "clicks", "payments"):
            await bus.ensure(topic, 1, {})
    everything = Selection(patterns=(compile_pattern(".*"),))
    async with KafkaLogs(users["owner"]) as logs:
        await seen(logs, everything, {"orders", "payments"})
    async with KafkaLogs(users["monitor"]) as logs:
        assert "payments" not in await seen(logs, everything, {"orders", "clicks"})
        named = await logs.sample(Selection(frozenset({"payments"})), {})
        assert not named.get("payments")


async def seen(logs: KafkaLogs, wanted: Selection, least: set[str]) -> set[str]:
    """Return the topics that are measured, once these are; new ones are found every few seconds."""
    while not least <= (found := {*await logs.sample(wanted, {})}):  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    return found
