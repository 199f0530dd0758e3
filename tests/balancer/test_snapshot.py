"""What is read of a cluster, and how fast its partitions grow."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.balancer.fake_brokers import FakeBrokers

from binwright.balancer.ports import ClusterState, Disk, PartitionState
from binwright.balancer.snapshot import (
    growth,
    latest_rates,
    published_rates,
    recorded_rates,
    recorded_trends,
    take_snapshot,
)
from binwright.kafka.control_records import METRICS_CONFIG, METRICS_PARTITION
from binwright.kafka.publishing import publish_message
from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.measurements import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.recordings.recording import header_line
from binwright.runtime.clock import wall_ms
from binwright.testing.control_topics import FakeControlTopics

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


def measurement(at_ms: int, *rates: float | None) -> Measurement:
    partitions = tuple(
        PartitionRate(n, None if rate is None else BytesPerSecond(rate), 30.0, 0, 0, None)
        for n, rate in enumerate(rates)
    )
    return Measurement(
        topic="orders",
        at_ms=at_ms,
        monitor="m",
        number=at_ms,
        interval_s=1.0,
        count=len(rates),
        partitions=partitions,
    )


def test_the_last_known_rate_counts() -> None:
    assert latest_rates([measurement(1, 5.0, 6.0), measurement(2, 7.0, None)]) == rated(
        {P0: 7, P1: 6}
    )


async def test_rates_of_the_metrics_topic_count_while_they_are_fresh() -> None:
    bus, now = FakeControlTopics(), wall_ms()
    await bus.ensure("metrics", 1, METRICS_CONFIG)
    for each in (measurement(now - 3_600_000, 1.0, 2.0), measurement(now, 7.0)):
        await publish_message(bus, "metrics", METRICS_PARTITION, each)
    assert await published_rates(bus, "metrics") == rated({P0: 7})


async def test_without_a_monitor_there_are_no_rates() -> None:
    assert await published_rates(FakeControlTopics(), "metrics") == {}


def recording(path: Path, *measurements: Measurement) -> Path:
    lines = (wire.encode(each) + b"\n" for each in measurements)
    path.write_bytes(header_line(BytesPerSecond(1.0)) + b"".join(lines))
    return path


def test_rates_of_a_recording_are_its_last(tmp_path: Path) -> None:
    file = recording(tmp_path / "load.jsonl", measurement(1, 5.0, 6.0), measurement(2, 7.0))
    assert float(recorded_rates(file)[P0]) == 7


def test_a_recording_without_rates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="no rate in it"):
        recorded_rates(recording(tmp_path / "load.jsonl"))


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="none"):
        recorded_trends(tmp_path / "none")


def test_topics_of_a_recording_have_trends(tmp_path: Path) -> None:
    day_ms = 86_400_000
    days = [measurement(n * day_ms // 24, 100.0 + n // 24) for n in range(24 * 4 + 1)]
    lines = recorded_trends(recording(tmp_path / "load.jsonl", *days))
    assert lines["orders"].per_day == pytest.approx(1.0, rel=0.1)


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
