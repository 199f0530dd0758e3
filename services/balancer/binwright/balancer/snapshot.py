"""Reads a running cluster: replicas, sizes, retention, and how fast partitions are written."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from binwright.balancer.admin_client import AdminClient
from binwright.balancer.cluster_model import TOPIC_CONFIGS, Snapshot
from binwright.balancer.decide.forecast import RateLine, topic_trends
from binwright.balancer.ports import Brokers, ClusterState, ConfigResource, Disk, PartitionState
from binwright.kafka.control_records import Decoder
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.measurements import Measurement
from binwright.protocol.model import BytesPerSecond, Rates, TopicPartition
from binwright.protocol.monitors import Monitors, accept_measurement
from binwright.protocol.ports.kafka import ControlTopics
from binwright.recordings.recording import RecordingReader, rows
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.settings import ProgramSettings
from binwright.views.follower import read_recent_measurements

MEASURE_S = 10.0
"""How long sizes are compared where no monitor measures."""
FRESH_S = 600
"""Age of a measurement that still counts."""
READ_S, HOUR_S = 0.5, 3_600.0
RECENT = 2_000


async def take_snapshot(brokers: Brokers, rates: Rates, measure_s: float) -> Snapshot:
    """Read a cluster.

    Args:
        brokers: The cluster.
        rates: Bytes/s of the partitions whose rate is known.
        measure_s: How long the growth of the others is measured, s; 0: they count as idle.
    """
    state, disks = await asyncio.gather(brokers.state(), brokers.disks())
    topics = {ConfigResource("topic", partition.topic) for partition in state.partitions}
    configs = await brokers.configs(topics, TOPIC_CONFIGS)
    if measure_s and state.partitions.keys() - rates.keys():
        began = loop_s()
        await asyncio.sleep(measure_s)
        later = await brokers.disks()
        rates = {**growth(state, disks, later, loop_s() - began), **rates}
        disks = later
    unknown = sum(partition not in rates for partition in state.partitions)
    return Snapshot(state, disks, configs, rates, unknown)


def growth(
    state: ClusterState, before: Mapping[int, Disk], after: Mapping[int, Disk], elapsed_s: float
) -> dict[TopicPartition, BytesPerSecond]:
    """Return how fast leaders grew, bytes/s.

    One that shrank, since retention deleted a part, is left out, as is one whose leader was away.
    """
    rates = {}
    for partition, each in state.partitions.items():
        first, last = _size(before, each, partition), _size(after, each, partition)
        if first is not None and last is not None and last >= first:
            rates[partition] = BytesPerSecond((last - first) / elapsed_s)
    return rates


def _size(
    disks: Mapping[int, Disk], state: PartitionState, partition: TopicPartition
) -> int | None:
    disk = None if state.leader is None else disks.get(state.leader)
    return None if disk is None else disk.sizes.get(partition)


async def published_rates(bus: ControlTopics, topic: str) -> dict[TopicPartition, BytesPerSecond]:
    """Return the last rates on the metrics topic, of the last `FRESH_S`; none without a monitor.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    if not await bus.partitions(topic):
        return {}
    reader, end = await read_recent_measurements(bus, topic, RECENT)
    decoder = Decoder(wire.decode_measurement)
    measurements: list[Measurement] = []
    try:
        while reader.position < end:
            measurements += [each for _, each in decoder.decode(await reader.read(READ_S))]
    finally:
        await reader.close()
    oldest_ms = wall_ms() - 1000 * FRESH_S
    return latest_rates(each for each in measurements if each.at_ms >= oldest_ms)


def recorded_rates(path: Path) -> dict[TopicPartition, BytesPerSecond]:
    """Return the last rates of a recording; raise `StreamError` if there are none."""
    try:
        with path.open("rb") as file:
            rates = latest_rates(RecordingReader(file))
    except (OSError, StreamError) as exc:
        raise StreamError(f"{path}: {exc}") from exc
    if not rates:
        raise StreamError(f"{path}: no rate in it")
    return rates


def latest_rates(found: Iterable[Measurement]) -> dict[TopicPartition, BytesPerSecond]:
    """Return the last known rate of each partition; of two monitors one is followed."""
    rates: dict[TopicPartition, BytesPerSecond] = {}
    monitors = Monitors()
    for measurement in found:
        monitors, counts, _ = accept_measurement(monitors, measurement.at_ms / 1000, measurement)
        if counts:
            rates |= measurement.rates()
    return rates


def recorded_trends(path: Path) -> dict[str, RateLine]:
    """Return how the topics of a recording grow; see `trend.topic_trends`.

    Raises:
        StreamError: The recording cannot be read.
    """
    try:
        with path.open("rb") as file:
            return topic_trends(rows(RecordingReader(file), HOUR_S), HOUR_S)
    except (OSError, StreamError) as exc:
        raise StreamError(f"{path}: {exc}") from exc


async def read_cluster(settings: ProgramSettings, rates: Path | None, measure_s: float) -> Snapshot:
    """Read the cluster of the settings.

    Args:
        settings: Name the cluster and the metrics topic.
        rates: A recording; None: what monitors published lately.
        measure_s: how long what is not measured is measured, s; 0: it counts as idle.

    Raises:
        StreamError: The recording cannot be read.
        BrokerUnavailable: Kafka does not answer.
    """
    known = {} if rates is None else recorded_rates(rates)
    async with AdminClient(settings.kafka) as brokers:
        if rates is None:
            async with KafkaControlTopics(settings.kafka, read_only=True) as bus:
                known = await published_rates(bus, settings.monitor.topic)
        return await take_snapshot(brokers, known, measure_s)
