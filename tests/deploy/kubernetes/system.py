"""Runs the shipped manifests with an embedded broker and Spark, and inspects the system.

Only the manifests' settings are replaced, and Spark's Deployment is left out.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import yaml
from tests.chaos.proxy import proxy
from tests.deploy.kubernetes.sandbox import ROOT, is_ready

from binwright.inspect.audit import AuditResult, audit
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kubernetes.api import Api
from binwright.kubernetes.connection import load_configuration
from binwright.kubernetes.objects import Obj
from binwright.local.kafka import run_broker
from binwright.local.server import HOST, reserve_port
from binwright.local.spark import run_spark
from binwright.look.follower import watch_group
from binwright.look.group_view import GroupView
from binwright.protocol.model import TopicPartition
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

from .plane import ControlPlane

NAMESPACE = "binwright"
LIMIT = 60_000.0
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
LONG_S, LONGEST_S = 180.0, 600.0
MOUNTED_TOKEN = "/etc/binwright-spark/token"  # noqa: S105 - a path
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
replan_interval_s = 10
[kubernetes]
{kubernetes}
[lake]
path = "{lake}"
spark = "{spark}"
token_file = "{token_file}"
allow_cleartext_token = true
freshness_s = 2
[health]
port = 8080
"""


def overlay(directory: Path, settings: str, lake: Path | None, token: str) -> Path:
    """Write an overlay of the shipped base; return its directory.

    With a `lake`, consumers mount this directory at its own path, and the token as a Secret; in the
    overlay `local` they mount a claim at /lake.
    """
    meta = {"name": "binwright-settings"}
    file = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"binwright.toml": settings},
    }
    spark = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "binwright-spark"}}
    kustomization: Obj = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(ROOT / "deploy" / "base", directory.resolve())],
        "patches": [
            {"patch": yaml.safe_dump(file)},
            {"patch": yaml.safe_dump({**spark, "$patch": "delete"})},
        ],
    }
    if lake is not None:
        text = (ROOT / "deploy" / "overlays" / "local" / "consumer.yaml").read_text()
        kustomization["patches"].append(
            {"patch": text.replace("mountPath: /lake", f"mountPath: {lake}")}
        )
        (directory / "lake.yaml").write_text(yaml.safe_dump_all([*_volume(lake), _secret(token)]))
        kustomization["resources"].append("lake.yaml")
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return directory


def _secret(token: str) -> Obj:
    meta = {"name": "binwright-spark-token"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"token": token}}


def _volume(directory: Path) -> list[Obj]:
    """Return a volume that is a directory of this machine, and the consumers' claim to it."""
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


Install = Callable[[ControlPlane, Path, str, Path | None, str], Awaitable[None]]
"""Installs the manifests with settings, a lake's directory or none, and Spark's token."""


async def apply_overlay(
    plane: ControlPlane, home: Path, settings: str, lake: Path | None, token: str
) -> None:
    """Install by kustomize."""
    await plane.kubectl("apply", "-k", str(overlay(home, settings, lake, token)))


@dataclass
class System:
    """The running system, with methods to inspect it."""

    plane: ControlPlane
    api: Api
    kafka: KafkaSettings  # as this process reaches it
    lake: LakeSettings
    bus: KafkaControlTopics
    group: str
    view: GroupView  # of the group

    async def pods(self, component: str) -> list[Obj]:
        selector = f"app.kubernetes.io/component={component}"
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found: list[Obj] = (await self.api.get(path, labelSelector=selector))["items"]
        return found

    async def ready(self, component: str) -> int:
        return sum(map(is_ready, await self.pods(component)))

    def owners(self) -> dict[TopicPartition, int]:
        return {p: slot for slot, r in self.view.reports.items() for p in r.reading}

    def all_read(self) -> bool:
        return set(self.owners()) == set(PARTITIONS)

    async def load(self, bytes_per_s: float, stop: asyncio.Event) -> None:
        """Write to every partition at this rate until `stop` is set."""
        rate = Pacing(
            row_s=LONGEST_S,
            bytes_per_per_cent=bytes_per_s / 100,
            record_bytes=512,
            duration_s=LONGEST_S,
        )
        await run_load([dict.fromkeys(PARTITIONS, PerCent(100.0))], self.kafka, rate, stop=stop)

    async def audit(self) -> AuditResult:
        return await audit(("orders",), self.kafka, self.lake)

    async def status(self) -> Obj:
        """Return the output of `binwright status`, run outside of the cluster."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "binwright.cli", "status", "--json"),
            *("--bootstrap-servers", self.kafka.bootstrap_servers),
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(LONG_S):
            out, _ = await process.communicate()
        (group,) = json.loads(out)
        found: Obj = group
        return found

    async def landed(self) -> bool:
        ends = [await self.bus.end(p.topic, p.partition) for p in PARTITIONS]
        return all(
            self.view.landed.get(p, 0) >= end for p, end in zip(PARTITIONS, ends, strict=True)
        )


@dataclass(frozen=True)
class Servers:
    """Addresses of broker and Spark, for this process and for pods."""

    kafka: str
    spark: str
    pods_kafka: str
    pods_spark: str
    token_file: Path  # of this process, and of pods that are processes


@asynccontextmanager
async def run_servers(home: Path, address: str) -> AsyncIterator[Servers]:
    """Run broker and Spark; pods reach them at `address`, one of this machine's."""
    async with AsyncExitStack() as stack:
        port, outer, voting = (stack.enter_context(reserve_port()) for _ in range(3))
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
            pods = f"{HOST}:{port}", spark.address
            yield Servers(f"{HOST}:{port}", spark.address, *pods, spark.token_file)
        else:
            target = urlparse(spark.address).port
            assert target is not None
            between = await stack.enter_async_context(proxy(target, address))
            pods = f"{address}:{outer}", f"sc://{address}:{between.port}"
            yield Servers(f"{HOST}:{port}", spark.address, *pods, spark.token_file)


@asynccontextmanager
async def run_system(
    plane: ControlPlane,
    home: Path,
    *,
    objects: bool = False,
    address: str = HOST,
    install: Install = apply_overlay,
    kubernetes: str = "",
) -> AsyncIterator[System]:
    """Install the manifests; delete everything at the end.

    Args:
        plane: The control plane.
        home: Directory for data and logs.
        objects: Groups are objects, and `orders` is inspected; else the one of the settings is.
        address: This machine's, as pods reach it. With another one than the loopback, pods are
            containers: the lake's directory is their volume, in which they stage.
        install: What installs them.
        kubernetes: Further settings of `[kubernetes]`.
    """
    group = "orders" if objects else "binwright"
    lake_directory = home / "lake"
    lake_directory.mkdir()
    lake_directory.chmod(
        0o1777
    )  # containers run as another user; fsGroup has no effect on a hostPath volume
    async with AsyncExitStack() as stack:
        api = Api(await load_configuration(plane.kubeconfig()), 10.0)
        stack.push_async_callback(api.close)
        servers = await stack.enter_async_context(run_servers(home, address))
        kafka = KafkaSettings(bootstrap_servers=servers.kafka)
        lake = LakeSettings(
            path=str(lake_directory), spark=servers.spark, token_file=servers.token_file
        )
        settings = SETTINGS.format(
            kafka=servers.pods_kafka,
            limit=LIMIT,
            lake=lake.path,
            spark=servers.pods_spark,
            token_file=servers.token_file if address == HOST else MOUNTED_TOKEN,
            kubernetes=f"{OBJECTS if objects else ONE_GROUP}\n{kubernetes}",
        )
        async with KafkaControlTopics(kafka) as bus:
            await bus.ensure("orders", len(PARTITIONS), {})
            await bus.ensure(f"{group}.metadata", 1, METADATA_CONFIG)
            await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
            view = GroupView()
            watching = watch_group(bus, f"{group}.metadata", "binwright.metrics", view)
            volume = None if address == HOST else lake_directory
            try:
                await install(plane, home, settings, volume, servers.token_file.read_text())
                async with background_tasks(must_not_end(watching)):
                    yield System(plane, api, kafka, lake, bus, group, view)
            finally:  # wait for it: nothing can be created in a namespace that is being deleted
                await plane.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")
