"""The shipped manifests on a real cluster: load, scale up and down, faults, and an audit.

Broker and Spark are embedded; monitor, controllers and consumers are pods, started by what
`deploy/` says, with the rights that it gives. Of the manifests only the settings are others, and
Spark's Deployment is left out.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from binwright.controller.kube.api import Api, Obj, configured
from binwright.core.model import TopicPartition
from binwright.embedded.broker import run_broker
from binwright.embedded.spark import run_spark
from binwright.lab.audit import audit
from binwright.lab.load import play
from binwright.lab.pacing import Load
from binwright.lab.picture import Picture
from binwright.lab.spectator import spectate
from binwright.lab.streams import PerCent
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import METADATA_CONFIG, METRICS_CONFIG
from binwright.shell.run import meanwhile
from binwright.shell.settings import KafkaSettings, LakeSettings

from .kubelet import Kubelet
from .plane import Plane
from .site import ROOT, is_ready, pid_of, until

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="session"),
]

NAMESPACE = "binwright"
LIMIT = 60_000.0
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
LONG_S, LONGEST_S = 180.0, 600.0

SETTINGS = """\
topics = ["orders"]
log_format = "json"
[kafka]
bootstrap_servers = "{kafka}"
[monitor]
window_s = 6
[controller]
fleet = "kubernetes"
limit_bytes_per_s = {limit}
max_slots = 6
look_again_s = 10
[consumer]
batch_cap_bytes = 10_000_000
[kubernetes]
owner = "binwright-controller"
[lake]
path = "{lake}"
spark = "{spark}"
[health]
port = 8080
"""


def overlay(directory: Path, settings: str) -> Path:
    """Write an overlay over the shipped base; return its directory."""
    meta = {"name": "binwright-settings"}
    file = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"binwright.toml": settings},
    }
    gone = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "binwright-spark"}}
    whole = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(ROOT / "deploy" / "base", directory.resolve())],
        "patches": [
            {"patch": yaml.safe_dump(file)},
            {"patch": yaml.safe_dump({**gone, "$patch": "delete"})},
        ],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    return directory


@dataclass
class System:
    """What runs, and how to look at it."""

    plane: Plane
    api: Api
    kafka: KafkaSettings
    lake: LakeSettings
    bus: KafkaBus
    picture: Picture

    async def pods(self, component: str) -> list[Obj]:
        chosen = f"app.kubernetes.io/component={component}"
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found: list[Obj] = (await self.api.get(path, labelSelector=chosen))["items"]
        return found

    async def ready(self, component: str) -> int:
        return sum(map(is_ready, await self.pods(component)))

    def held(self) -> dict[TopicPartition, int]:
        return {p: slot for slot, r in self.picture.reports.items() for p in r.held}

    def all_read(self) -> bool:
        return set(self.held()) == set(PARTITIONS)

    async def load(self, bytes_per_s: float, stop: asyncio.Event) -> None:
        """Write to every partition at this speed until told to stop."""
        rate = Load(
            row_s=LONGEST_S,
            bytes_per_per_cent=bytes_per_s / 100,
            record_bytes=512,
            duration_s=LONGEST_S,
        )
        await play([dict.fromkeys(PARTITIONS, PerCent(100.0))], self.kafka, rate, stop=stop)

    async def status(self) -> Obj:
        """Return what `binwright status` says of it, from outside of the cluster."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "binwright.cli", "status", "--json"),
            *("--bootstrap-servers", self.kafka.bootstrap_servers),
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(LONG_S):
            out, _ = await process.communicate()
        (told,) = json.loads(out)
        found: Obj = told
        return found

    async def landed(self) -> bool:
        ends = [await self.bus.end(p.topic, p.partition) for p in PARTITIONS]
        return all(
            self.picture.landed.get(p, 0) >= end for p, end in zip(PARTITIONS, ends, strict=True)
        )


@pytest_asyncio.fixture(loop_scope="session")
async def system(
    plane: Plane, nodes: tuple[Kubelet, Kubelet], tmp_path: Path
) -> AsyncIterator[System]:
    assert nodes
    (tmp_path / "lake").mkdir()
    api = Api(await configured(plane.kubeconfig()), 10.0)
    async with (
        run_broker(tmp_path / "kafka") as broker,
        run_spark(tmp_path / "spark", memory="1g") as spark,
    ):
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        lake = LakeSettings(path=str(tmp_path / "lake"), spark=spark.url)
        settings = SETTINGS.format(
            kafka=kafka.bootstrap_servers, limit=LIMIT, lake=lake.path, spark=lake.spark
        )
        async with KafkaBus(kafka) as bus:
            await bus.ensure("orders", len(PARTITIONS), {})
            await bus.ensure("binwright.metadata", 1, METADATA_CONFIG)
            await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
            picture = Picture()
            watching = spectate(bus, "binwright.metadata", "binwright.metrics", picture)
            await plane.kubectl("apply", "-k", str(overlay(tmp_path, settings)))
            try:
                async with meanwhile(watching):
                    yield System(plane, api, kafka, lake, bus, picture)
            finally:  # to the end: nothing can be put into a namespace that is about to go
                await plane.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")
    await api.close()


async def test_the_manifests_run_it_through_faults_and_every_row_lands_once(
    system: System,
) -> None:
    async def services_run() -> bool:
        return await system.ready("monitor") == 1 and await system.ready("controller") == 2

    await until(services_run, LONG_S)
    await until(system.all_read, LONG_S)
    assert len(set(system.held().values())) == 1

    enough = asyncio.Event()
    async with asyncio.timeout(LONGEST_S), asyncio.TaskGroup() as tasks:
        # 4 x 25 kB/s are more than one consumer's 60 kB/s: a second one is made.
        tasks.create_task(system.load(25_000, enough))
        await until(lambda: len(set(system.held().values())) >= 2 and system.all_read(), LONG_S)

        async def two_are_ready() -> bool:
            return await system.ready("consumer") >= 2

        await until(two_are_ready, LONG_S)

        async def seen_from_outside() -> bool:
            told = await system.status()
            well = told["state"] in {"moving", "steady"} and told["load"] > LIMIT
            return well and len(told["consumers"]) >= 2

        await until(seen_from_outside, LONG_S)

        # kill -9 of a consumer: declared dead, its pod comes back, its partitions find an owner.
        os.kill(pid_of((await system.pods("consumer"))[0]), signal.SIGKILL)
        await until(lambda: system.picture.deaths >= 1 or _newcomer(system), LONG_S)
        await until(system.all_read, LONG_S)

        # The leader goes, and the other leads.
        terms = system.picture.terms
        for pod in await system.pods("controller"):
            os.kill(pid_of(pod), signal.SIGKILL)
        await until(lambda: system.picture.terms > terms, LONG_S)

        # The API server goes and comes: no row waits for it.
        await system.plane.kill_api_server()
        await system.plane.start_api_server()
        enough.set()

    # The load is over: one consumer is enough, the others are retired.
    async def one_left() -> bool:
        return len(await system.pods("consumer")) == 1 and system.all_read()

    await until(system.landed, LONG_S)
    await until(one_left, LONG_S)
    found = await audit(("orders",), system.kafka, system.lake)
    assert found.clean, found.to_json()
    assert sum(part.rows for part in found.tables[0].partitions) > 0


def _newcomer(system: System) -> bool:
    """Whether the killed one was back before anybody missed it: then its new Hello fences it."""
    return "epoch" in " ".join(words for _, words in list(system.picture.news)[-3:])


async def test_the_shipped_overlays_are_what_the_api_server_takes(plane: Plane) -> None:
    """Applied without effect: schema, rules, and every field's name are checked."""
    await plane.kubectl("apply", "-f", str(ROOT / "deploy" / "base" / "namespace.yaml"))
    await plane.kubectl("apply", "-f", str(ROOT / "deploy" / "base" / "consumergroups.yaml"))
    for name in ("local", "production"):
        path = ROOT / "deploy" / "overlays" / name
        await plane.kubectl("apply", "-k", str(path), "--dry-run=server", "--validate=strict")
