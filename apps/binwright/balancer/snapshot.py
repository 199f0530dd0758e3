"""Reads a running cluster: replicas, sizes, retention, and how fast partitions are written."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

from binwright.balancer.admin_client import AdminClient
from binwright.balancer.cluster_model import TOPIC_CONFIGS, Snapshot
from binwright.balancer.decide.rate_history import HOUR_S, RateHistory
from binwright.balancer.ports import Brokers, ClusterState, ConfigResource, Disk, PartitionState
from binwright.balancer.rates import published_history, published_rates, recorded_history
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.model import BytesPerSecond, Rates, TopicPartition
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.settings.programs import ProgramSettings

MEASURE_S = 10.0
"""How long sizes are compared where no monitor measures."""


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


class ClusterReader:
    """Reads a cluster again and again; the hours before the first time are read once.

    After a pause, as of a process that led before, they are read again.
    """

    def __init__(self, settings: ProgramSettings, measure_s: float = MEASURE_S) -> None:
        """Prepare.

        Args:
            settings: Name the cluster and the metrics topic.
            measure_s: How long what is not measured is measured, s; 0: it counts as idle.
        """
        self._settings, self._measure_s = settings, measure_s
        self._history, self._next_hour = RateHistory(), -inf

    async def read(self) -> Snapshot:
        """Read the cluster now, with what monitors published; raise `BrokerUnavailable`."""
        kafka, topic = self._settings.kafka, self._settings.monitor.topic
        async with AdminClient(kafka) as brokers:
            async with KafkaControlTopics(kafka, read_only=True) as bus:
                rates = await published_rates(bus, topic, wall_ms())
                if loop_s() >= self._next_hour + HOUR_S:
                    self._history = await published_history(bus, topic, wall_ms())
            seen = await take_snapshot(brokers, rates, self._measure_s)
        if loop_s() >= self._next_hour:
            self._history.append(seen.rates)
            self._next_hour = loop_s() + HOUR_S
        return replace(seen, history=self._history)


async def read_cluster(settings: ProgramSettings, rates: Path | None, measure_s: float) -> Snapshot:
    """Read the cluster of the settings once.

    Args:
        settings: Name the cluster and the metrics topic.
        rates: A recording; None: what monitors published.
        measure_s: how long what is not measured is measured, s; 0: it counts as idle.

    Raises:
        StreamError: The recording cannot be read.
        BrokerUnavailable: Kafka does not answer.
    """
    if rates is None:
        return await ClusterReader(settings, measure_s).read()
    history = await asyncio.to_thread(recorded_history, rates)
    async with AdminClient(settings.kafka) as brokers:
        return replace(await take_snapshot(brokers, history.last(), measure_s), history=history)
