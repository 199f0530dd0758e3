"""The shipped manifests, their settings set to an embedded broker and Spark, and a look at it all.

Of the manifests only the settings are others, and Spark's Deployment is left out.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import yaml
from tests.chaos.proxy import proxy

from binwright.controller.kube.api import Api, Obj, configured
from binwright.core.model import TopicPartition
from binwright.embedded.broker import run_broker
from binwright.embedded.ports import HOST, reserved
from binwright.embedded.spark import run_spark
from binwright.lab.audit import AuditResult, audit
from binwright.lab.load import play
from binwright.lab.pacing import Load
from binwright.lab.picture import Picture
from binwright.lab.spectator import spectate
from binwright.lab.streams import PerCent
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import METADATA_CONFIG, METRICS_CONFIG
from binwright.shell.run import endless, meanwhile
from binwright.shell.settings import KafkaSettings, LakeSettings

from .plane import Plane
from .site import ROOT, is_ready

NAMESPACE = "binwright"
LIMIT = 60_000.0
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
LONG_S, LONGEST_S = 180.0, 600.0
ONE_GROUP, OBJECTS = 'owner = "binwright-controller"', "groups = true"

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
[kubernetes]
{kubernetes}
[lake]
path = "{lake}"
spark = "{spark}"
freshness_s = 2
[health]
port = 8080
"""


def overlay(directory: Path, settings: str, lake: Path | None) -> Path:
    """Write an overlay over the shipped base; return its directory.

    With a `lake`, consumers mount this directory at its own path, as the overlay `local` has them
    mount a claim at /lake.
    """
    meta = {"name": "binwright-settings"}
    file = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"binwright.toml": settings},
    }
    gone = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "binwright-spark"}}
    whole: Obj = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(ROOT / "deploy" / "base", directory.resolve())],
        "patches": [
            {"patch": yaml.safe_dump(file)},
            {"patch": yaml.safe_dump({**gone, "$patch": "delete"})},
        ],
    }
    if lake is not None:
        text = (ROOT / "deploy" / "overlays" / "local" / "consumer.yaml").read_text()
        whole["patches"].append({"patch": text.replace("mountPath: /lake", f"mountPath: {lake}")})
        (directory / "lake.yaml").write_text(yaml.safe_dump_all(_volume(lake)))
        whole["resources"].append("lake.yaml")
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    return directory


def _volume(directory: Path) -> list[Obj]:
    """Return a volume that is a directory of this machine, and the consumers' claim on it."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    volume = {
        "capacity": size,
        "accessModes": modes,
        "hostPath": {"path": str(directory)},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": NAMESPACE, "name": "binwright-lake"},
    }
    claim = {
        "accessModes": modes,
        "resources": {"requests": size},
        "storageClassName": "",
        "volumeName": "binwright-lake",
    }
    meta = {"name": "binwright-lake"}
    return [
        {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec}
        for kind, spec in (("PersistentVolume", volume), ("PersistentVolumeClaim", claim))
    ]


@dataclass
class System:
    """What runs, and how to look at it."""

    plane: Plane
    api: Api
    kafka: KafkaSettings  # as this process reaches it
    lake: LakeSettings
    bus: KafkaBus
    picture: Picture  # of the group

    async def pods(self, component: str) -> list[Obj]:
        chosen = f"app.kubernetes.io/component={component}"
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found: list[Obj] = (await self.api.get(path, labelSelector=chosen))["items"]
        return found

    async def ready(self, component: str) -> int:
        return sum(map(is_ready, await self.pods(component)))

    def held(self) -> dict[TopicPartition, int]:
        return {p: slot for slot, r in self.picture.reports.items() for p in r.reading}

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

    async def audit(self) -> AuditResult:
        return await audit(("orders",), self.kafka, self.lake)

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


@dataclass(frozen=True)
class Servers:
    """Broker and Spark, by the addresses of this process and of pods."""

    kafka: str
    spark: str
    pods_kafka: str
    pods_spark: str


@asynccontextmanager
async def run_servers(home: Path, address: str) -> AsyncIterator[Servers]:
    """Run both; pods reach them at `address`, which is this machine's."""
    async with AsyncExitStack() as stack:
        port, outer, voting = (stack.enter_context(reserved()) for _ in range(3))
        listeners = f"PLAINTEXT://{HOST}:{port}"
        if address != HOST:
            listeners += f",PODS://{address}:{outer}"
        settings = {
            "listeners": f"{listeners},CONTROLLER://{HOST}:{voting}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@{HOST}:{voting}",
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "PODS", "CONTROLLER")
            ),
        }
        await stack.enter_async_context(run_broker(home / "kafka", port=port, settings=settings))
        spark = await stack.enter_async_context(run_spark(home / "spark", memory="1g"))
        if address == HOST:
            yield Servers(f"{HOST}:{port}", spark.url, f"{HOST}:{port}", spark.url)
        else:
            target = urlparse(spark.url).port
            assert target is not None
            between = await stack.enter_async_context(proxy(target, address))
            pods = f"{address}:{outer}", f"sc://{address}:{between.port}"
            yield Servers(f"{HOST}:{port}", spark.url, *pods)


@asynccontextmanager
async def run_system(
    plane: Plane,
    home: Path,
    *,
    kubernetes: str = ONE_GROUP,
    group: str = "binwright",
    address: str = HOST,
) -> AsyncIterator[System]:
    """Apply the manifests, and take all of it away at the end.

    Args:
        plane: Where.
        home: For data and logs.
        kubernetes: What the settings say in that section.
        group: Whom to look at.
        address: Of this machine, as pods reach it. Pods on another one are containers: they get
            the lake's directory as a volume, in which they stage for Spark here.
    """
    lake_directory = home / "lake"
    lake_directory.mkdir()
    lake_directory.chmod(0o1777)  # containers are another user, and such a volume heeds no fsGroup
    async with AsyncExitStack() as stack:
        api = Api(await configured(plane.kubeconfig()), 10.0)
        stack.push_async_callback(api.close)
        servers = await stack.enter_async_context(run_servers(home, address))
        kafka = KafkaSettings(bootstrap_servers=servers.kafka)
        lake = LakeSettings(path=str(lake_directory), spark=servers.spark)
        settings = SETTINGS.format(
            kafka=servers.pods_kafka,
            limit=LIMIT,
            lake=lake.path,
            spark=servers.pods_spark,
            kubernetes=kubernetes,
        )
        async with KafkaBus(kafka) as bus:
            await bus.ensure("orders", len(PARTITIONS), {})
            await bus.ensure(f"{group}.metadata", 1, METADATA_CONFIG)
            await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
            picture = Picture()
            watching = spectate(bus, f"{group}.metadata", "binwright.metrics", picture)
            await plane.kubectl(
                "apply",
                "-k",
                str(overlay(home, settings, None if address == HOST else lake_directory)),
            )
            try:
                async with meanwhile(endless(watching)):
                    yield System(plane, api, kafka, lake, bus, picture)
            finally:  # to the end: nothing can be put into a namespace that is about to go
                await plane.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")
