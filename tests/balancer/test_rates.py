"""Rates of the metrics topic and of recordings: now, and hour by hour."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from binwright.balancer.cluster_model import Snapshot, cluster_model
from binwright.balancer.decide.forecast import topic_trends
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import Balance, Infeasible
from binwright.balancer.decide.rate_history import HOUR_S, WEEK_HOURS, RateHistory
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.description import ClusterDescription
from binwright.balancer.ports import ClusterState, ConfigResource, Disk, PartitionState
from binwright.balancer.rates import (
    latest_rates,
    published_history,
    published_rates,
    recorded_history,
)
from binwright.kafka.control_records import METRICS_CONFIG, METRICS_PARTITION
from binwright.kafka.publishing import publish_message
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable, StreamError
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.runtime.clock import loop_s
from binwright.streams.recording import header_line
from binwright.testing.control_topics import FakeControlTopics

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
GB = 1e9
WEEK_S = WEEK_HOURS * HOUR_S


def rated(values: Mapping[TopicPartition, float]) -> dict[TopicPartition, BytesPerSecond]:
    return {partition: BytesPerSecond(value) for partition, value in values.items()}


def measurement(
    at_ms: int, *values: float | None, topic: str = "orders", monitor: str = "m"
) -> Measurement:
    partitions = tuple(
        PartitionRate(n, None if rate is None else BytesPerSecond(rate), 30.0, 0, 0, None)
        for n, rate in enumerate(values)
    )
    return Measurement(
        topic=topic,
        at_ms=at_ms,
        monitor=monitor,
        number=at_ms,
        interval_s=1.0,
        count=len(values),
        partitions=partitions,
    )


async def metrics_topic(*measurements: Measurement) -> FakeControlTopics:
    bus = FakeControlTopics()
    await bus.ensure("metrics", 1, METRICS_CONFIG)
    for each in measurements:
        await publish(bus, each)
    return bus


async def publish(bus: FakeControlTopics, message: Measurement) -> None:
    await publish_message(bus, "metrics", METRICS_PARTITION, message)


def now_ms() -> int:
    return round(1000 * loop_s())


def test_the_last_known_rate_counts() -> None:
    assert latest_rates([measurement(1, 5.0, 6.0), measurement(2, 7.0, None)]) == rated(
        {P0: 7, P1: 6}
    )


async def test_rates_of_the_metrics_topic_count_while_they_are_fresh() -> None:
    bus = await metrics_topic(measurement(0, 1.0, 2.0), measurement(3_600_000, 7.0))
    assert await published_rates(bus, "metrics", 3_600_000) == rated({P0: 7})


async def test_without_a_monitor_there_are_no_rates() -> None:
    assert await published_rates(FakeControlTopics(), "metrics", 0) == {}
    history = await published_history(FakeControlTopics(), "metrics", 0)
    assert not list(history.topics())


@pytest.mark.looptime
async def test_each_hour_of_the_metrics_topic_is_known_by_its_first_pass() -> None:
    bus = await metrics_topic()
    for hour in range(3):
        for second in range(10):
            await publish(bus, measurement(now_ms(), 10.0 * hour + second, 1.0))
            await publish(bus, measurement(now_ms(), 5.0, topic="bills"))
            await asyncio.sleep(1)
        await asyncio.sleep(HOUR_S - 10)
    history = await published_history(bus, "metrics", now_ms())
    # A pass is read for two intervals: of the rates within them the last one counts.
    assert history.of(P0) == [2.0, 12.0, 22.0]
    assert history.of(TopicPartition("bills", 0)) == [5.0] * 3
    assert bus.readers("metrics") == 0


@pytest.mark.looptime
async def test_hours_without_a_monitor_are_hours_without_rates() -> None:
    """They count for the trend, which needs to know how much time has passed."""
    bus = await metrics_topic()
    for hour in range(4):
        if hour != 2:
            await publish(bus, measurement(now_ms(), float(hour)))
        await asyncio.sleep(HOUR_S)
    history = await published_history(bus, "metrics", now_ms())
    assert history.of(P0) == [0.0, 1.0, 3.0]
    assert list(history.topics()) == [{"orders": 0.0}, {"orders": 1.0}, {}, {"orders": 3.0}]


class EndlessControlTopics(FakeControlTopics):
    """Promises records that never come, as a broker does of a transaction that is open."""

    async def end(self, topic: str, partition: int) -> int:
        return await super().end(topic, partition) + 1


@pytest.mark.looptime
async def test_a_history_that_cannot_be_read_in_time_is_a_fault_of_the_broker() -> None:
    bus = EndlessControlTopics()
    await bus.ensure("metrics", 1, METRICS_CONFIG)
    await publish(bus, measurement(0, 1.0))
    await asyncio.sleep(HOUR_S)
    with pytest.raises(BrokerUnavailable, match="metrics topic at offset 0: not done within 10 s"):
        await published_history(bus, "metrics", now_ms())


def snapshot_of(history: RateHistory, now: Mapping[TopicPartition, float]) -> Snapshot:
    """Return 4 brokers of 1 TB, each 40 % full by a partition that is kept for a week."""
    partitions = [TopicPartition("orders", number) for number in range(4)]
    placed = {p: PartitionState(n, (n,), frozenset({n})) for n, p in enumerate(partitions)}
    return Snapshot(
        state=ClusterState(dict.fromkeys(range(4)), placed),
        disks={n: Disk(int(1_000 * GB), 0, {p: int(400 * GB)}) for n, p in enumerate(partitions)},
        configs={ConfigResource("topic", "orders"): {"retention.ms": f"{WEEK_S * 1000:.0f}"}},
        rates=rated(now),
        history=history,
    )


@pytest.mark.looptime
async def test_a_peak_hour_of_three_times_the_mean_does_not_fill_the_brokers() -> None:
    """Each is 40 % full at the mean rate of a week; three times that would be 120 %."""
    mean = 400 * GB / WEEK_S
    bus = await metrics_topic()
    for hour in range(WEEK_HOURS):
        rate = 3 * mean if hour % 24 >= 22 else mean * (24 - 6) / 22
        await publish(bus, measurement(now_ms(), *[rate] * 4))
        await asyncio.sleep(HOUR_S)
    peak = await published_rates(bus, "metrics", now_ms() - round(HOUR_S * 1000) + 1)
    assert peak[P0] == pytest.approx(3 * mean)
    history = await published_history(bus, "metrics", now_ms())
    cluster = cluster_model(snapshot_of(history, peak), ClusterDescription())
    assert not isinstance(plan(cluster, Balance(), Heuristic()), Infeasible)
    of_p0 = cluster.partitions[0]
    assert of_p0.disk_bytes(cluster.topics["orders"]) == pytest.approx(400 * GB, rel=0.001)
    # The network is planned for the busy hours: two of 24 are more than 5 %.
    assert of_p0.rate == pytest.approx(3 * mean)


def recording(path: Path, *measurements: Measurement) -> Path:
    lines = (wire.encode(each) + b"\n" for each in measurements)
    path.write_bytes(header_line(BytesPerSecond(1.0)) + b"".join(lines))
    return path


def test_a_recording_counts_by_the_means_of_its_hours(tmp_path: Path) -> None:
    minutes = [measurement(minute * 60_000, float(minute // 30)) for minute in range(90)]
    history = recorded_history(recording(tmp_path / "load.jsonl", *minutes))
    assert history.of(P0) == [pytest.approx(0.5, abs=0.02), pytest.approx(2.0, abs=0.05)]
    assert history.last() == {P0: history.of(P0)[-1]}


def test_a_recording_without_rates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="no rate in it"):
        recorded_history(recording(tmp_path / "load.jsonl"))


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="none"):
        recorded_history(tmp_path / "none")


def test_topics_of_a_recording_have_trends(tmp_path: Path) -> None:
    hour_ms = 3_600_000
    hours = [measurement(n * hour_ms, 100.0 + n // 24) for n in range(24 * 4 + 1)]
    history = recorded_history(recording(tmp_path / "load.jsonl", *hours))
    line = topic_trends(history.topics(), HOUR_S)["orders"]
    assert line.per_day == pytest.approx(1.0, rel=0.1)
