"""Brokers whose lines can be cut, the partition that the second one keeps, and the lake's disk."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.chaos.proxy import Proxy, proxy

from binwright.balancer.admin_client import AdminClient
from binwright.balancer.ports import Replicas
from binwright.local.kafka import EmbeddedBroker, run_broker
from binwright.local.server import HOST, reserve_port
from binwright.protocol.errors import EmbeddedError
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings

FAR = TopicPartition("clicks", 3)
"""What the second of two brokers keeps once `place_partitions` was called; the first all else."""
LAKE_SIZE = "3g"
PLACED_S, POLL_S = 60.0, 0.2


def may_mount() -> bool:
    """Tell whether file systems can be mounted here."""
    tried = subprocess.run(
        ("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"),
        capture_output=True,
        check=False,
    )
    return os.geteuid() == 0 and tried.returncode == 0


@contextlib.contextmanager
def disk(lake: Path) -> Iterator[Path]:
    """Give the lake a disk of its own, in memory, that can be full."""
    lake.mkdir(parents=True)
    subprocess.run(("mount", "-t", "tmpfs", "-o", f"size={LAKE_SIZE}", "tmpfs", lake), check=True)
    try:
        yield lake
    finally:
        subprocess.run(("umount", "-l", lake), check=True)


async def start_broker(
    held: contextlib.AsyncExitStack,
    directory: Path,
    node: Mapping[str, str],
    progress: Callable[[str], None],
    cluster: str | None = None,
) -> tuple[EmbeddedBroker, Proxy]:
    """Run a broker with two listeners: the services are told the proxy's address, we its own."""
    own, inner = (held.enter_context(reserve_port()) for _ in range(2))
    between = await held.enter_async_context(proxy(inner))
    listeners = f"PLAINTEXT://{HOST}:{own},CUT://{HOST}:{inner}"
    settings = {
        "listeners": listeners,
        "advertised.listeners": f"PLAINTEXT://{HOST}:{own},CUT://{HOST}:{between.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        **node,
    }
    if "controller" in node["process.roles"]:
        _, _, voter = node["controller.quorum.voters"].rpartition("@")
        settings["listeners"] = f"{listeners},CONTROLLER://{voter}"
    broker = await held.enter_async_context(
        run_broker(directory, port=own, settings=settings, cluster=cluster, progress=progress)
    )
    return broker, between


async def place_partitions(kafka: KafkaSettings) -> None:
    """Keep `FAR` on the second broker alone, and all else on the first alone.

    Raises:
        EmbeddedError: It is not so in time.
    """
    async with AdminClient(kafka) as admin:
        try:
            async with asyncio.timeout(PLACED_S):
                while misplaced := await _misplaced(admin):
                    await admin.reassign(misplaced)
                    await asyncio.sleep(POLL_S)
        except TimeoutError as exc:
            raise EmbeddedError(f"after {PLACED_S:g} s partitions are misplaced") from exc


async def _misplaced(admin: AdminClient) -> dict[TopicPartition, Replicas]:
    """Return where partitions belong that are elsewhere, or are on their way."""
    state = await admin.state()
    return {
        partition: wanted
        for partition, each in state.partitions.items()
        if each.replicas != (wanted := (2,) if partition == FAR else (1,))
    }


def node_settings(number: int, voter: int) -> dict[str, str]:
    """Return what differs between brokers: the first alone is a controller, too."""
    return {
        "node.id": str(number),
        "process.roles": "broker,controller" if number == 1 else "broker",
        "controller.quorum.voters": f"1@{HOST}:{voter}",
    }
