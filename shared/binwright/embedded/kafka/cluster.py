"""Several real Kafka brokers that are one cluster: leaders that move, replicas that lag."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from binwright.embedded.java.class_data import class_data_archive
from binwright.embedded.java.jars import ProgressCallback
from binwright.embedded.kafka.broker import (
    Broker,
    broker_command,
    default_settings,
    ensure_kafka,
    new_cluster_id,
    prepare_storage,
)
from binwright.embedded.process.ports import HOST, reserve_port
from binwright.embedded.process.run_directory import run_directory
from binwright.embedded.process.server import no_progress

REPLICAS = 3


@asynccontextmanager
async def run_brokers(
    directory: Path,
    *,
    count: int = 3,
    settings: Mapping[str, str] | None = None,
    heap: str = "256m",
    progress: ProgressCallback = no_progress,
) -> AsyncIterator[tuple[Broker, ...]]:
    """Run a new cluster of `count` brokers, 1 to `count`, and end it at the end.

    Each is broker and controller. They are killed at the end, not stopped: a broker that stops
    hands its partitions over first, and waits for minutes once there is no majority to do it.

    Args:
        directory: Made if it is not there; each broker has a directory in it.
        count: How many, > 0.
        settings: Broker settings beside ours or instead of them, of all.
        heap: Most that each may use, in Java's notation.
        progress: Told in words what goes on.

    Raises:
        EmbeddedError: Java, the jars, a port or a broker could not be had.
    """
    java, jars = await ensure_kafka(progress)
    with ExitStack() as ports, run_directory(directory) as home:
        listeners = [ports.enter_context(reserve_port()) for _ in range(count)]
        controllers = [ports.enter_context(reserve_port()) for _ in range(count)]
        cluster = new_cluster_id()
        brokers = []
        for index, (listener, controller) in enumerate(zip(listeners, controllers, strict=True)):
            place = home / f"broker-{index + 1}"
            place.mkdir()
            properties = default_settings(place, listener, controller) | _together(
                index, controllers
            )
            archive = class_data_archive("broker", java, jars, place)
            await prepare_storage(place, {**properties, **(settings or {})}, archive, cluster)
            brokers.append(
                Broker(broker_command(place, archive, heap, 0), port=listener, progress=progress)
            )
        try:
            await asyncio.gather(*(broker.start() for broker in brokers))
            yield tuple(brokers)
        finally:
            await asyncio.gather(*(broker.kill() for broker in brokers))


def _together(index: int, controllers: Sequence[int]) -> dict[str, str]:
    """Return what differs from a broker that is alone."""
    replicas = str(min(REPLICAS, len(controllers)))
    voters = (f"{i}@{HOST}:{port}" for i, port in enumerate(controllers, 1))
    return {
        "node.id": str(index + 1),
        "controller.quorum.voters": ",".join(voters),
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "share.coordinator.state.topic.replication.factor": replicas,
        # The preferred leader gets its partitions back when somebody asks, not when it likes.
        "auto.leader.rebalance.enable": "false",
    }
