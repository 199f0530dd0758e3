"""`make bench NAME=kubernetes`: what the fleet of Deployments takes, as JSON.

On a real control plane whose nodes run pods as processes: fifty Deployments at
once, a consumer's way from its slot to ready, and what fifty idle slots cost the process that keeps
them. That process holds what a controller has for its fleet: the watches and the repairs.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from tests.deploy.kubernetes.binaries import programs
from tests.deploy.kubernetes.kubelet import run_kubelet
from tests.deploy.kubernetes.plane import run_control_plane
from tests.deploy.kubernetes.sandbox import IMAGES, Sandbox, make_sandbox, until

from bench import figures
from binwright.cli.console import to_stderr
from binwright.controller.fleets.kubernetes.fleet import kubernetes_fleet
from binwright.controller.settings import ControllerProgramSettings
from binwright.kafka.control_records import COMMANDS_CONFIG, METADATA_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kubernetes.objects import Obj
from binwright.local.kafka import run_broker
from binwright.local.spark import run_spark
from binwright.protocol.model import Slot
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import load

SLOTS = [Slot(number) for number in range(50)]
IDLE_S = 30.0
LONG_S = 300.0
KEEP = "keep"


@asynccontextmanager
async def ground(home: Path) -> AsyncIterator[Sandbox]:
    """Run a control plane and two nodes; give a namespace."""
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)}
    (home / "plane").mkdir()
    async with (
        run_control_plane(programs(), home / "plane") as plane,
        run_kubelet(plane, "node-1", home, IMAGES, own) as one,
        run_kubelet(plane, "node-2", home, IMAGES, own) as two,
        make_sandbox(plane, (one, two), "bench") as sandbox,
    ):
        yield sandbox


async def running(sandbox: Sandbox, slots: set[int]) -> None:
    async def all_of_them() -> bool:
        return await sandbox.running() >= slots

    await until(all_of_them, LONG_S)


async def none_left(sandbox: Sandbox) -> None:
    async def gone() -> bool:
        return not await sandbox.pods()

    await until(gone, LONG_S)


async def fifty(sandbox: Sandbox) -> dict[str, float]:
    """Measure from the call that a plan makes to fifty Deployments, and to fifty running pods."""
    fleet = await sandbox.fleet("fifty")
    began = time.monotonic()
    await fleet.reconcile(SLOTS)
    created_s = time.monotonic() - began
    await running(sandbox, set(SLOTS))
    running_s = time.monotonic() - began
    fleet.detach()
    return {"created_s": round(created_s, 2), "running_s": round(running_s, 2)}


async def idle(sandbox: Sandbox) -> dict[str, float]:
    """Measure a process that keeps the fifty that are there."""
    environment = {
        **os.environ,
        "BINWRIGHT_GROUP": "fifty",
        "BINWRIGHT_LOG_LEVEL": "error",
        "BINWRIGHT_CONTROLLER__MAX_SLOTS": "60",
        "BINWRIGHT_KUBERNETES__NAMESPACE": sandbox.namespace,
        "BINWRIGHT_KUBERNETES__KUBECONFIG": str(sandbox.kubeconfig),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.kubernetes", KEEP),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(LONG_S):
            await process.stdout.readline()
        watched = psutil.Process(process.pid)
        await asyncio.sleep(5.0)  # what follows the first look is no idling
        before = watched.cpu_times()
        await asyncio.sleep(IDLE_S)
        after = watched.cpu_times()
        used_s = after.user + after.system - before.user - before.system
        return {
            "cores": round(used_s / IDLE_S, 4),
            "rss_mb": round(watched.memory_info().rss / 1e6, 1),
        }
    finally:
        process.kill()
        await process.wait()


async def keep() -> None:
    """Be that process."""
    async with kubernetes_fleet(load(ControllerProgramSettings)) as fleet:
        await fleet.reconcile(SLOTS)
        sys.stdout.write("kept\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def consumer(variables: dict[str, str]) -> Obj:
    """Return the template of a real consumer."""
    address = {"name": "BINWRIGHT_HEALTH__ADDRESS"}
    container = {
        "name": "consumer",
        "image": "binwright-consumer",
        "args": ["--slot", "$(SLOT)"],
        "env": [
            *({"name": name, "value": value} for name, value in variables.items()),
            {**address, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1},
    }
    return {"spec": {"automountServiceAccountToken": False, "containers": [container]}}


async def to_ready(sandbox: Sandbox, home: Path) -> dict[str, float]:
    """Measure from a Deployment to a consumer whose claims are committed, on a warm Spark."""
    async with (
        run_broker(home / "kafka") as broker,
        run_spark(home / "spark", memory="1g") as spark,
    ):
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        async with KafkaControlTopics(kafka) as bus:
            await bus.ensure("orders", 4, {})
            await bus.ensure("ready.metadata", 1, METADATA_CONFIG)
            await bus.ensure("ready.commands", 3, COMMANDS_CONFIG)
        await sandbox.apply_template(
            consumer(
                {
                    "BINWRIGHT_GROUP": "ready",
                    "BINWRIGHT_TOPICS": '["orders"]',
                    "BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
                    "BINWRIGHT_LAKE__PATH": str(home / "lake"),
                    "BINWRIGHT_LAKE__SPARK": spark.url,
                    "BINWRIGHT_HEALTH__PORT": "8080",
                }
            )
        )
        fleet = await sandbox.fleet("ready")
        took = []
        for count in (1, 2, 3):
            began = time.monotonic()
            await fleet.reconcile(SLOTS[:count])
            await running(sandbox, set(SLOTS[:count]))
            took.append(round(time.monotonic() - began, 2))
        await fleet.reconcile([])
    return {"first_s": took[0], "second_s": took[1], "third_s": took[2]}


async def measure() -> dict[str, Any]:
    """Measure all of it, one after the other."""
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as directory:
        async with AsyncExitStack() as stack:
            sandbox = await stack.enter_async_context(ground(Path(directory)))
            found: dict[str, Any] = {"load_before": os.getloadavg()[0]}
            found["deployments_50"] = await fifty(sandbox)
            found["idle_50"] = await idle(sandbox)
            cleared = await sandbox.fleet("fifty")
            await cleared.reconcile([])
            await none_left(sandbox)
            found["slot_to_ready"] = await to_ready(sandbox, Path(directory))
            found["load_after"] = os.getloadavg()[0]
            return found


def main() -> None:
    """Print the figures, or be what is measured."""
    if sys.argv[1:] == [KEEP]:
        asyncio.run(keep())
        return
    parser = argparse.ArgumentParser(prog="make bench NAME=kubernetes", description=__doc__)
    figures.add_option(parser)
    given = parser.parse_args()
    with to_stderr():
        found = asyncio.run(measure())
    figures.progress("kubernetes", found, given.figures)


if __name__ == "__main__":
    main()
