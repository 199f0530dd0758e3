"""Several real Kafka brokers that are one cluster: leaders that move, replicas that lag."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from binwright.local.java.class_data import class_data_archive
from binwright.local.java.jars import ProgressCallback
from binwright.local.kafka.broker import (
    Broker,
    broker_command,
    default_settings,
    ensure_kafka,
    new_cluster_id,
    prepare_storage,
)
from binwright.local.process.ports import HOST, reserve_port
from binwright.local.process.run_directory import run_directory
from binwright.local.process.server import no_progress

REPLICAS = 3
VOTERS = 3
"""Brokers that are controllers too, at most: more of them only vote."""


@asynccontextmanager
async def run_brokers(  # noqa: PLR0913 - each is a choice of the caller's
    directory: Path,
    *,
    count: int = 3,
    settings: Mapping[str, str] | None = None,
    racks: Sequence[str] = (),
    heap: str = "256m",
    progress: ProgressCallback = no_progress,
) -> AsyncIterator[tuple[Broker, ...]]:
    """Run a new cluster of `count` brokers, 1 to `count`, and end it at the end.

    The first `VOTERS` are controllers, too. They are killed at the end, not stopped: a broker that
    stops hands its partitions over first, and waits for minutes once there is no majority to do it.

    Args:
        directory: Made if it is not there; each broker has a directory in it.
        count: How many, > 0.
        settings: Broker settings beside ours or instead of them, of all.
        racks: The rack of each broker; none: they have no racks.
        heap: Most that each may use, in Java's notation.
        progress: Told in words what goes on.

    Raises:
        EmbeddedError: Java, the jars, a port or a broker could not be had.
    """
    java, jars = await ensure_kafka(progress)
    with ExitStack() as ports, run_directory(directory) as home:
        listeners = [ports.enter_context(reserve_port()) for _ in range(count)]
        voters = min(count, VOTERS)
        controllers = [ports.enter_context(reserve_port()) for _ in range(voters)]
        cluster = new_cluster_id()
        brokers = []
        for index, listener in enumerate(listeners):
            place = home / f"broker-{index + 1}"
            place.mkdir()
            properties = {
                **_member(place, index, listener, controllers),
                **_together(index, count, controllers),
                **({"broker.rack": racks[index]} if racks else {}),
                **(settings or {}),
            }
            archive = class_data_archive("broker", java, jars, place)
            await prepare_storage(place, properties, archive, cluster)
            brokers.append(
                Broker(broker_command(place, archive, heap, 0), port=listener, progress=progress)
            )
        try:
            await asyncio.gather(*(broker.start() for broker in brokers))
            yield tuple(brokers)
        finally:
            await asyncio.gather(*(broker.kill() for broker in brokers))


def _member(place: Path, index: int, listener: int, controllers: Sequence[int]) -> dict[str, str]:
    """Return the settings of one broker: of a controller, too, or without its listener."""
    if index < len(controllers):
        return default_settings(place, listener, controllers[index])
    alone = default_settings(place, listener, controllers[0])
    return {**alone, "process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:{listener}"}


def _together(index: int, count: int, controllers: Sequence[int]) -> dict[str, str]:
    """Return what differs from a broker that is alone."""
    replicas = str(min(REPLICAS, count))
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
