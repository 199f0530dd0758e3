"""Groups of ordinary Java consumers that have binwright's assignor."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.integration.assignor.java_members import (
    JavaMember,
    build_programs,
    consumer_settings,
    running_members,
)
from tests.integration.assignor.plans import VALID_MS, names, publish, until
from tests.integration.topics import create_topic

from binwright.kafka.client import client_options
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.rebalance_request import request_rebalance

pytestmark = pytest.mark.integration

PROTOCOL = "binwright"


def partitions(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def owned(members: Sequence[JavaMember]) -> list[set[str]]:
    return [member.owned for member in members]


def seen(members: Sequence[JavaMember]) -> list[list[str]]:
    return [member.lines[-10:] for member in members]


async def test_members_read_what_is_planned_and_move_only_what_it_changes(
    broker: str, tmp_path: Path
) -> None:
    """One group through its life: planned, changed from outside, and with a plan too old."""
    kafka, topic = KafkaSettings(bootstrap_servers=broker), "java-group"
    await create_topic(kafka, topic, 6)
    programs = await build_programs(tmp_path)
    first = [partitions(topic, 0), partitions(topic, 1, 2, 3, 4, 5)]
    await publish(kafka, topic, first)
    settings = consumer_settings(broker, topic)
    async with running_members(programs, settings, topic, ["one", "two"]) as members:
        await until(lambda: sorted(owned(members), key=len) == names(first), lambda: seen(members))
        before = sorted(members, key=lambda member: len(member.owned))
        for member in members:
            member.revoked.clear()

        second = [partitions(topic, 0, 4), partitions(topic, 1, 2, 3, 5)]
        await publish(kafka, topic, second)
        await request_rebalance(client_options(kafka), topic, PROTOCOL, topic)
        await until(lambda: owned(before) == names(second), lambda: seen(members))
        assert [member.revoked for member in before] == [[], [f"{topic}-4"]]

        await publish(kafka, topic, first, age_ms=VALID_MS + 1000)
        await request_rebalance(client_options(kafka), topic, PROTOCOL, topic)
        await until(lambda: [len(each) for each in owned(members)] == [3, 3], lambda: seen(members))


async def test_a_group_without_a_plans_topic_is_assigned_as_by_cooperative_sticky(
    broker: str, tmp_path: Path
) -> None:
    kafka, topic = KafkaSettings(bootstrap_servers=broker), "java-alone"
    await create_topic(kafka, topic, 4)
    programs = await build_programs(tmp_path)
    settings = consumer_settings(broker, topic) | {"binwright.plans.topic": "no-such-topic"}
    async with running_members(programs, settings, topic, ["one", "two"]) as members:
        await until(lambda: [len(each) for each in owned(members)] == [2, 2], lambda: seen(members))
        assert set.union(*owned(members)) == {f"{topic}-{number}" for number in range(4)}
