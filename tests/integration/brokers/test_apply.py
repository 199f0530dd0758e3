"""`binwright brokers apply` and `cancel` on three real brokers under load."""

import asyncio
import signal
from pathlib import Path

import pytest

from binwright.balancer.admin_client import AdminClient
from binwright.balancer.decide.throttles import (
    ALL_BROKERS,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
)
from binwright.balancer.ports import ConfigResource, Replicas
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings

from .helpers import (
    Load,
    check_nothing_is_lost,
    command,
    fill,
    finished,
    make_topic,
    placement,
    run,
    throttles,
    until,
    write_plan,
)
from .kafka_tool import verify

pytestmark = pytest.mark.integration

MB = 1_000_000


async def uneven(kafka: KafkaSettings, topic: str, size: int) -> dict[TopicPartition, Replicas]:
    """Make a topic that is all on brokers 1 and 2; return where it should be."""
    await make_topic(kafka, topic, dict.fromkeys(range(6), (1, 2)))
    partitions = [TopicPartition(topic, number) for number in range(6)]
    await fill(kafka, dict.fromkeys(partitions, size))
    spread: list[Replicas] = [(1, 2), (2, 1), (3, 1), (3, 2), (2, 3), (1, 3)]
    return dict(zip(partitions, spread, strict=True))


@pytest.mark.nightly
async def test_a_run_that_is_killed_under_load_is_continued_to_the_end(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    targets = await uneven(kafka, "killed", 6 * MB)
    plan = write_plan(tmp_path / "plan.json", targets)
    apply = ("apply", str(plan), "--throttle", str(4 * MB), "--copies", "1")
    async with Load(kafka, list(targets)).running(0.02) as load:
        first = await command(kafka, *apply)
        await until(admin, lambda state: bool(state.reassignments))
        first.kill()
        await finished(first)
        assert (await throttles(admin)).ours
        code, out, errors = await run(kafka, *apply)
        assert code == 0, out + errors
    assert placement(await admin.state(), "killed") == targets
    assert await verify(kafka.bootstrap_servers, plan) == []
    left = await throttles(admin)
    assert (left.ours, left.foreign) == ({}, {})
    await check_nothing_is_lost(kafka, load)


async def test_ctrl_c_takes_back_what_is_under_way(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    targets = await uneven(kafka, "stopped", 3 * MB)
    plan = write_plan(tmp_path / "plan.json", targets)
    running = await command(kafka, "apply", str(plan), "--throttle", "200000", "--no-probe")
    await until(admin, lambda state: bool(state.reassignments))
    running.send_signal(signal.SIGINT)
    await finished(running)
    state = await admin.state()
    assert state.reassignments == {}
    assert not (await throttles(admin)).ours


async def test_what_a_killed_run_left_is_cancelled_without_its_plan(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    targets = await uneven(kafka, "left", 3 * MB)
    plan = write_plan(tmp_path / "plan.json", targets)
    running = await command(kafka, "apply", str(plan), "--throttle", "200000", "--no-probe")
    await until(admin, lambda state: bool(state.reassignments))
    running.kill()
    await finished(running)
    code, out, _ = await run(kafka, "cancel")
    assert (code, "taken back; no throttle of ours is left" in out) == (0, True)
    assert (await admin.state()).reassignments == {}
    assert not (await throttles(admin)).ours


async def test_a_limit_of_the_owner_refuses_nothing_and_stays(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    targets = await uneven(kafka, "limited", MB)
    plan = write_plan(tmp_path / "plan.json", targets)
    owners = {LEADER_RATE: "40000000", FOLLOWER_RATE: "40000000"}
    await admin.set_configs({ALL_BROKERS: owners})
    try:
        code, out, errors = await run(kafka, "apply", str(plan), "--no-probe")
        assert code == 0, out + errors
        assert f"the default of all brokers: {LEADER_RATE} = 40000000" in out
        assert placement(await admin.state(), "limited") == targets
        left = await throttles(admin)
        assert (left.ours, left.foreign) == ({}, {ALL_BROKERS: owners}), "listed once"
        _, out, _ = await run(kafka, "cancel")
        assert "no throttle of ours is left" in out
        assert "40000000" in out
    finally:
        await admin.set_configs({ALL_BROKERS: dict.fromkeys(owners)})


async def test_lists_that_another_operator_strips_are_set_again(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    targets = await uneven(kafka, "stripped", 3 * MB)
    plan = write_plan(tmp_path / "plan.json", targets)
    running = await command(kafka, "apply", str(plan), "--throttle", "200000", "--no-probe")
    await until(admin, lambda state: bool(state.reassignments))
    topic = ConfigResource("topic", "stripped")
    async with asyncio.timeout(60):
        await asyncio.sleep(3)  # the run has looked at its lists
        await admin.set_configs({topic: {LEADER_LIST: None, FOLLOWER_LIST: None}})
        while topic not in (await throttles(admin)).ours:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    running.send_signal(signal.SIGINT)
    _, out, _ = await finished(running)
    assert "another operator took our throttles off stripped" in out
    assert not (await throttles(admin)).ours


async def test_nothing_moves_with_dry_run(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    targets = await uneven(kafka, "dry", MB // 10)
    before = await admin.state()
    plan = write_plan(tmp_path / "plan.json", targets)
    code, out, _ = await run(kafka, "apply", str(plan), "--dry-run")
    assert (code, out) == (0, "6 partitions; the plan is safe, and nothing is moved\n")
    assert await admin.state() == before


async def test_an_unsafe_plan_is_refused(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    await make_topic(kafka, "unsafe", {0: (1, 2)}, {"min.insync.replicas": "2"})
    targets = {TopicPartition("unsafe", 0): (9,), TopicPartition("unsafe", 1): (1, 2)}
    plan = write_plan(tmp_path / "plan.json", targets)
    code, _, errors = await run(kafka, "apply", str(plan), "--allow-replication-change")
    assert code == 2
    assert "broker 9 is down, or there is none of this number" in errors
    assert "unsafe-0: 1 replicas are fewer than min.insync.replicas (2)" in errors
    assert "unsafe-1 does not exist" in errors
    assert placement(await admin.state(), "unsafe") == {TopicPartition("unsafe", 0): (1, 2)}
