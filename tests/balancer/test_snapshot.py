"""What is read of a cluster, and how fast its partitions grow."""

from collections.abc import Mapping

import pytest
from tests.balancer.fake_brokers import FakeBrokers

from binwright.balancer.ports import ClusterState, Disk, PartitionState
from binwright.balancer.snapshot import growth, take_snapshot
from binwright.protocol.model import BytesPerSecond, TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
ON_0_AND_1 = ClusterState(
    {0: None, 1: None},
    {P0: PartitionState(0, (0, 1), frozenset({0, 1})), P1: PartitionState(1, (1,), frozenset({1}))},
)


def disks(p0: int, p1: int) -> dict[int, Disk]:
    return {0: Disk(None, None, {P0: p0}), 1: Disk(None, None, {P0: 1, P1: p1})}


def test_partitions_grow_as_their_leaders_do() -> None:
    assert growth(ON_0_AND_1, disks(100, 50), disks(300, 50), 10.0) == rated({P0: 20.0, P1: 0.0})


def test_a_partition_that_shrank_is_not_measured() -> None:
    assert growth(ON_0_AND_1, disks(100, 50), disks(90, 60), 10.0) == rated({P1: 1.0})


def test_a_partition_whose_leader_is_away_is_not_measured() -> None:
    away = {1: disks(0, 60)[1]}
    assert growth(ON_0_AND_1, disks(100, 50), away, 10.0) == rated({P1: 1.0})


def rated(values: Mapping[TopicPartition, float]) -> dict[TopicPartition, BytesPerSecond]:
    return {partition: BytesPerSecond(value) for partition, value in values.items()}


@pytest.mark.looptime
async def test_only_what_no_monitor_measures_is_measured() -> None:
    fake = FakeBrokers({P0: (1, 2), P1: (1, 2)})
    seen = await take_snapshot(fake, rated({P0: 5.0, P1: 6.0}), 10.0)
    assert seen.rates == {P0: 5.0, P1: 6.0}
    half = await take_snapshot(fake, rated({P0: 5.0}), 10.0)
    assert half.rates == {P0: 5.0, P1: 0.0}


@pytest.mark.looptime
async def test_what_is_not_measured_is_counted() -> None:
    fake = FakeBrokers({P0: (1, 2), P1: (1, 2)})
    assert (await take_snapshot(fake, {}, 0.0)).unmeasured == 2
