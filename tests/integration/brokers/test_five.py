"""Five real brokers: one that has joined is filled, and one is drained, under load."""

from pathlib import Path

import pytest

from binwright.balancer import plan_file
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.ports import ClusterState, Replicas
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings

from .helpers import (
    Load,
    check_nothing_is_lost,
    command,
    fill,
    finished,
    make_topic,
    run,
    throttles,
    until,
)
from .kafka_tool import verify

pytestmark = pytest.mark.integration

MB = 1_000_000
PLACED: dict[int, Replicas] = {n: (1, 2 + n % 2, 4) for n in range(6)}
"""Broker 1 leads all, 4 holds all, and 5 has just joined."""
SIZES = (5, 3, 2, 2, 1, 1)


@pytest.fixture(scope="module")
def racks() -> tuple[str, ...]:
    return "a", "b", "c", "a", "b"


def holders(state: ClusterState) -> set[int]:
    return {broker for each in state.partitions.values() for broker in each.replicas}


@pytest.mark.nightly
async def test_a_broker_that_joined_is_filled_and_one_is_drained_over_a_kill_under_load(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    await make_topic(kafka, "orders", PLACED, {"retention.ms": "-1"})
    partitions = [TopicPartition("orders", n) for n in PLACED]
    sizes = dict(zip(partitions, (size * MB for size in SIZES), strict=True))
    await fill(kafka, sizes)
    assert 5 not in holders(await admin.state())

    balance, drain = tmp_path / "balance.json", tmp_path / "drain.json"
    options = ("--throttle", str(4 * MB), "--no-probe")
    async with Load(kafka, partitions).running(0.02) as load:
        code, out, errors = await run(kafka, "plan", "--measure", "2", "--output", str(balance))
        assert code == 0, out + errors
        moving = await command(kafka, "apply", str(balance), *options)
        await until(admin, lambda state: bool(state.reassignments))
        moving.kill()
        await finished(moving)
        code, out, errors = await run(kafka, "apply", str(balance), *options)
        assert code == 0, out + errors
        assert 5 in holders(await admin.state())

        code, out, errors = await run(kafka, "drain", "4", "--measure", "2", "--output", str(drain))
        assert code == 0, out + errors
        code, out, errors = await run(kafka, "apply", str(drain), "--no-probe")
        assert code == 0, out + errors
    assert await verify(kafka.bootstrap_servers, drain) == []
    assert plan_file.read(drain)
    state, left = await admin.state(), await throttles(admin)
    assert holders(state) == {1, 2, 3, 5}
    assert all({*each.replicas} == each.in_sync for each in state.partitions.values())
    assert (left.ours, left.foreign) == ({}, {})
    await check_nothing_is_lost(kafka, load)
