"""What the product's own clients are refused on a broker with the documented rights alone."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.integration.authorization import TOPIC, acl, guarded_broker, parse_command
from tests.integration.test_acls import COMMANDS

from binwright.balancer.commands.approve import approve_plan, withdraw_plan
from binwright.balancer.decide.proposals import BrokersApproved, BrokersProposed, CopiesStarted
from binwright.balancer.plan_topic import PlanTopic
from binwright.kafka.control_records import COMMANDS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.monitor.sampling import KafkaLogs
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.messages import StopReading
from binwright.protocol.model import TopicPartition
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.runtime.settings import KafkaSettings

pytestmark = pytest.mark.integration

DEADLINE_S = 240.0
PLANS, STEERED = "binwright.brokers", "binwright.plans"
USERS = ("controller", "consumer", "operator", "monitor", "steer", "approver")
REFUSED = "TopicAuthorizationFailed"


@pytest.fixture
async def users(tmp_path: Path) -> AsyncIterator[Mapping[str, KafkaSettings]]:
    """Connections of each user, and of the broker's owner."""
    rules = [
        *(rule for line in COMMANDS for rule in parse_command(line)),
        # As docs/how-to/assignor.md and brokers.md have them: neither is a service of the list.
        *(acl("steer", operation, TOPIC, STEERED) for operation in ("Create", "Read", "Write")),
        *(acl("approver", operation, TOPIC, PLANS) for operation in ("Read", "Write")),
    ]
    async with guarded_broker(tmp_path / "kafka", USERS, rules, denies=True) as (
        owner,
        connections,
    ):
        yield {"owner": owner, **connections}


async def test_what_each_user_may_not_is_refused_to_it(users: Mapping[str, KafkaSettings]) -> None:
    """One broker for all: its start takes longer than they do."""
    async with asyncio.timeout(DEADLINE_S):
        await only_controllers_command_consumers(users)
        await neither_operators_nor_steer_approve_plans_for_brokers(users)
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


async def neither_operators_nor_steer_approve_plans_for_brokers(
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
        for name in ("operator", "steer", "controller", "consumer"):
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
