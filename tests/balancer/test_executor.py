"""A plan is carried out on brokers made of dictionaries, on virtual time."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tests.balancer.fake_brokers import FakeBrokers, FakeProbe

from binwright.balancer.decide.reassignment import ClusterObservation, CopyLimits, NextActions
from binwright.balancer.decide.throttles import (
    ALL_BROKERS,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_RATE,
    LIST_MARK,
    Copy,
    Throttles,
)
from binwright.balancer.executor import (
    FETCH_BACKOFF,
    POLL_S,
    Executor,
    _Observer,
    check,
    slow_followers,
    take_back,
)
from binwright.balancer.ports import ClusterState, ConfigResource, Configs, Replicas
from binwright.protocol.errors import BrokerUnavailable, PlacementError, ReassignmentRefused
from binwright.protocol.model import TopicPartition

pytestmark = pytest.mark.looptime

BEFORE = {TopicPartition("orders", n): (1, 2) for n in range(6)}
AFTER: dict[TopicPartition, Replicas] = {
    TopicPartition("orders", n): ((2, 1), (3, 1), (2, 4), (4, 3), (1, 3), (3, 2))[n]
    for n in range(6)
}
LIMITS = CopyLimits(rate=1_000, paused_rate=1_000, copies=2, leaders=2)
DEADLINE_S = 600.0


class Killed(BaseException):
    """What a process does not survive."""


def brokers() -> FakeBrokers:
    return FakeBrokers(BEFORE, racks=dict.fromkeys((1, 2, 3, 4)), partition_bytes=3_000)


def placement(fake: FakeBrokers) -> dict[TopicPartition, Replicas]:
    return {partition: state.replicas for partition, state in fake.partitions.items()}


async def finish(fake: FakeBrokers) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await Executor(fake, AFTER, LIMITS).run()


async def copying(fake: FakeBrokers) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not (await fake.state()).reassignments:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_everything_is_where_the_plan_has_it_led_by_the_first_without_throttles() -> None:
    fake = brokers()
    await finish(fake)
    assert placement(fake) == AFTER
    assert all(state.leader == state.replicas[0] for state in fake.partitions.values())
    assert fake.throttled() == []


async def test_few_copies_run_at_once() -> None:
    fake = brokers()
    await finish(fake)
    assert fake.most_copies <= 2 * len(fake.alive) / 2


@pytest.mark.parametrize("calls", range(0, 120, 3))
async def test_a_run_that_was_killed_is_continued_and_no_throttle_is_left(calls: int) -> None:
    fake = brokers()
    # From this call on nothing of the first run reaches the cluster, its cleaning-up included.
    fake.fail_next = [*[None] * calls, *[Killed()] * 5]
    with suppress(Killed):
        await finish(fake)
    fake.fail_next = []
    await finish(fake)
    assert placement(fake) == AFTER
    assert fake.throttled() == []


@pytest.mark.parametrize("calls", range(0, 120, 7))
async def test_what_a_killed_run_left_is_taken_back_without_its_plan(calls: int) -> None:
    fake = brokers()
    fake.fail_next = [*[None] * calls, *[Killed()] * 5]
    with suppress(Killed):
        await finish(fake)
    fake.fail_next = []
    async with asyncio.timeout(DEADLINE_S):
        await take_back(fake)
    assert fake.throttled() == []
    assert (await fake.state()).reassignments == {}
    for partition, replicas in placement(fake).items():
        assert {*replicas} in ({*BEFORE[partition]}, {*AFTER[partition]})


async def test_a_throttle_that_a_broker_does_not_show_yet_is_removed() -> None:
    fake = brokers()
    await fake.set_configs(Throttles().until(1_000_000, [Copy(next(iter(BEFORE)), (1,), (2,))]))
    shown = fake.configs

    async def outdated(resources: Collection[ConfigResource], _: Collection[str]) -> Configs:
        fake.configs = shown  # type: ignore[method-assign]
        return {each: {} for each in resources}

    fake.configs = outdated  # type: ignore[method-assign, assignment]
    async with asyncio.timeout(DEADLINE_S):
        await take_back(fake)
    assert fake.throttled() == []


async def test_lists_that_others_strip_are_set_again_at_the_next_look_and_reported() -> None:
    fake, orders = brokers(), ConfigResource("topic", "orders")
    limited = fake.configs_set
    with capture_logs() as logs:
        running = asyncio.create_task(finish(fake))
        await copying(fake)
        await asyncio.sleep(1.2)
        del limited[orders]
        async with asyncio.timeout(5 * POLL_S):
            while orders not in limited:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await running
    assert [one["topics"] for one in logs if one["event"] == "throttles.stripped"] == [("orders",)]
    assert placement(fake) == AFTER


async def test_our_lists_are_read_at_each_look() -> None:
    fake, orders = brokers(), ConfigResource("topic", "orders")
    fake.configs_set[orders] = {FOLLOWER_LIST: f"{LIST_MARK},0:3"}
    observer = _Observer(fake, with_disks=False)
    assert [(await observer.observe()).stripped for _ in range(2)] == [(), ()]
    del fake.configs_set[orders]
    assert [(await observer.observe()).stripped for _ in range(2)] == [("orders",), ()]


@pytest.mark.parametrize("theirs", ["400", "900000"])
async def test_a_limit_of_the_owner_stays_and_the_smaller_one_counts(theirs: str) -> None:
    owners = {LEADER_RATE: theirs, FOLLOWER_RATE: theirs}
    fake = brokers()
    fake.configs_set[ALL_BROKERS] = dict(owners)
    found = await check(fake, AFTER, replication_may_change=False)
    assert len(found.foreign_limits()) == 1
    began_s = asyncio.get_running_loop().time()
    await finish(fake)
    took_s = asyncio.get_running_loop().time() - began_s

    assert fake.configs_set == {ALL_BROKERS: owners}
    # Copies of 3,000 bytes, three after each other at least, at 400/s or at 1,617/s.
    assert took_s >= 3 * 3_000 / min(int(theirs), 1_617)
    assert await take_back(fake) == 0
    assert fake.configs_set == {ALL_BROKERS: owners}


async def test_a_run_that_is_stopped_takes_back_what_is_under_way() -> None:
    fake = brokers()
    running = asyncio.create_task(finish(fake))
    await copying(fake)
    running.cancel()
    await asyncio.wait({running})
    assert (await fake.state()).reassignments == {}
    assert fake.throttled() == []


async def test_a_broker_that_does_not_answer_is_asked_again() -> None:
    fake = brokers()
    fake.fail_next = [BrokerUnavailable("away")] * 4
    await finish(fake)
    assert placement(fake) == AFTER


async def test_a_refusal_ends_the_run_and_leaves_nothing() -> None:
    fake = brokers()

    def refuse(decided: NextActions, _: ClusterObservation) -> None:
        if decided.progress.copying:
            fake.fail_next = [ReassignmentRefused("no right")]

    with pytest.raises(ReassignmentRefused):
        async with asyncio.timeout(DEADLINE_S):
            await Executor(fake, AFTER, LIMITS, on_decision=refuse).run()
    assert fake.throttled() == []
    assert (await fake.state()).reassignments == {}


async def test_a_run_that_cannot_take_back_ends_with_its_own_error() -> None:
    fake = brokers()

    def refuse(decided: NextActions, _: ClusterObservation) -> None:
        if decided.progress.copying:
            fake.fail_next = [ReassignmentRefused("no right")] * 2

    with capture_logs() as logs, pytest.raises(ReassignmentRefused):
        await Executor(fake, AFTER, LIMITS, on_decision=refuse).run()
    assert logs[-1]["event"] == "reassignment.left"


async def test_nothing_starts_before_the_latency_of_producers_is_known() -> None:
    fake = brokers()
    running = asyncio.create_task(Executor(fake, AFTER, LIMITS, probe=FakeProbe()).run())
    await asyncio.sleep(3)
    assert fake.calls == []
    await running
    assert placement(fake) == AFTER


async def test_a_run_pauses_while_producers_wait_and_goes_on_after() -> None:
    fake, probe = brokers(), FakeProbe()
    seen: list[tuple[str, ...]] = []
    run = Executor(
        fake, AFTER, LIMITS, probe=probe, on_decision=lambda decided, _: seen.append(decided.pauses)
    )
    running = asyncio.create_task(run.run())
    await asyncio.sleep(7)
    probe.latency_s = 2.0
    await asyncio.sleep(60)
    assert not running.done()
    assert seen[-1] == ("producers wait 2000 ms, more than 110 ms",)
    probe.latency_s = 0.01
    async with asyncio.timeout(DEADLINE_S):
        await running
    assert placement(fake) == AFTER


async def test_a_run_waits_for_a_broker_that_went_down() -> None:
    fake = brokers()
    running = asyncio.create_task(finish(fake))
    await copying(fake)
    fake.kill_broker(3)
    await asyncio.sleep(100)
    assert not running.done()
    fake.start_broker(3)
    await running
    assert placement(fake) == AFTER
    assert fake.throttled() == []


async def test_the_bytes_of_an_hour_spread_a_plan_over_hours() -> None:
    fake = brokers()
    limits = CopyLimits(rate=1_000, copies=2, hourly_bytes=6_000)
    running = asyncio.create_task(Executor(fake, AFTER, limits).run())
    await asyncio.sleep(3_000)
    assert not running.done()
    await running
    assert placement(fake) == AFTER


async def test_unsafe_plans_are_refused_with_every_reason() -> None:
    fake = FakeBrokers(BEFORE, min_in_sync=2)
    fake.configs_set[ConfigResource("broker", "1")] = {LEADER_RATE: "1000"}
    with pytest.raises(PlacementError) as refused:
        await check(fake, {TopicPartition("orders", 0): (7,)}, replication_may_change=True)
    assert str(refused.value) == (
        "nothing is moved: broker 7 is down, or there is none of this number; "
        "orders-0: 1 replicas are fewer than min.insync.replicas (2)"
    )
    assert fake.calls == []


async def test_a_broker_that_lags_behind_the_end_of_a_move_is_asked_again() -> None:
    """The list of moves has it no more, and the partition still has the replica that it copied."""

    class Late(FakeBrokers):
        async def state(self) -> ClusterState:
            there = await super().state()
            if asyncio.get_running_loop().time() >= updated_at:
                return there
            (partition, now), *_ = sorted(there.partitions.items())
            late = replace(now, replicas=(*now.replicas, 9))
            return replace(there, partitions={**there.partitions, partition: late})

    updated_at = asyncio.get_running_loop().time() + 2.0
    late = Late(BEFORE, racks=dict.fromkeys((1, 2, 3, 4, 9)))
    await check(late, AFTER, replication_may_change=False)
    updated_at += 3_600.0
    with pytest.raises(PlacementError, match="changes the replication"):
        await check(late, AFTER, replication_may_change=False)


async def test_brokers_whose_followers_wait_long_are_named() -> None:
    fake = brokers()
    for broker, backoff_ms in ((1, "1000"), (2, "100")):
        fake.configs_set[ConfigResource("broker", str(broker))] = {FETCH_BACKOFF: backoff_ms}
    assert await slow_followers(fake) == [1]


async def test_a_safe_plan_is_not_refused() -> None:
    await check(brokers(), AFTER, replication_may_change=False)
