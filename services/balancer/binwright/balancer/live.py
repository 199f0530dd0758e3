"""Reads the cluster of the settings, for commands and for the controller."""

from pathlib import Path

from binwright.balancer.admin.client import AdminClient
from binwright.balancer.cluster_model import Snapshot
from binwright.balancer.snapshot import published_rates, recorded_rates, take_snapshot
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.runtime.settings import Settings


async def read_cluster(settings: Settings, rates: Path | None, measure_s: float) -> Snapshot:
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
