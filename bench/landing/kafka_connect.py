"""Kafka Connect with Iceberg's sink: a worker in distributed mode, a table in a catalog on disk."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from binwright.local.cache import cache_dir
from binwright.local.child import Child, Command
from binwright.local.jars import ensure_jars, ivy_fetch, parse_lock
from binwright.local.java import LOG4J, find_java, java_environment
from binwright.local.server import HOST, ProgressCallback, Server, reserve_port
from binwright.protocol.errors import EmbeddedError

JVM = (
    *("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true", "-XX:-UsePerfData"),
)
"""What Kafka's own start script gives a worker."""
READY_S, GRACE_S, ANSWER_S, REBALANCE_S = 300.0, 30.0, 60.0, 60.0
AGAIN_S = 0.2
CONFLICT = 409  # a rebalance is going on
TIMESTAMP = "_kafka_metadata_timestamp"
"""The column in which the sink's transform puts Kafka's timestamp."""

Config = Mapping[str, str]
CONVERTERS: Config = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class ConnectWorker(Server):
    """A worker that runs, and its REST API."""

    def __init__(self, command: Command, url: str, progress: ProgressCallback) -> None:
        super().__init__(command, until_ready=self._until_ready, grace_s=GRACE_S, progress=progress)
        self._url = url

    async def put(self, connector: str, config: Config) -> None:
        """Create a connector, or change it; a rebalance is waited for."""
        async with asyncio.timeout(REBALANCE_S):
            while True:
                status = await self._call("PUT", f"/connectors/{connector}/config", config)
                if status != CONFLICT:
                    break
                await asyncio.sleep(AGAIN_S)
        if not 200 <= status < 300:
            raise EmbeddedError(f"the Connect worker refuses {connector}: status {status}")

    async def _until_ready(self, child: Child) -> None:
        async def serves() -> bool:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                return await self._call("GET", "/connectors", None) == 200
            return False

        await child.wait_until_ready(serves, deadline_s=READY_S)

    async def _call(self, method: str, path: str, body: Any) -> int:
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, self._url + path, json=body) as answer,
        ):
            return answer.status


@contextlib.asynccontextmanager
async def run_worker(
    directory: Path, servers: str, progress: ProgressCallback
) -> AsyncIterator[ConnectWorker]:
    """Run a worker beside the block."""
    java = await find_java()
    fetch = ivy_fetch(java, "Kafka Connect's", progress)
    plugins = cache_dir() / "jars" / "connect-plugins"
    await ensure_jars(_locked("iceberg_sink"), plugins / "iceberg", fetch)
    jars = await ensure_jars(_locked("connect_worker"), cache_dir() / "jars" / "connect", fetch)
    await asyncio.to_thread(directory.mkdir, parents=True)
    log4j, properties = directory / "log4j2.properties", directory / "worker.properties"
    log4j.write_text(LOG4J)
    with reserve_port() as port:
        settings = _worker_settings(servers, port, plugins)
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = Command(
            title="the Connect worker",
            argv=(
                *(str(java.binary), *JVM, f"-Dlog4j2.configurationFile={log4j.as_uri()}"),
                *("-cp", ":".join(map(str, jars))),
                *("org.apache.kafka.connect.cli.ConnectDistributed", str(properties)),
            ),
            directory=directory,
            log=directory / "worker.log",
            environment=java_environment({}),
        )
        worker = ConnectWorker(command, f"http://{HOST}:{port}", progress)
        await worker.start()
        try:
            yield worker
        finally:
            await worker.stop()


def iceberg_sink(
    topic: str, table: str, warehouse: Path, control: str, interval_s: float
) -> Config:
    """Return a connector of one task that lands JSON with its place in Kafka.

    Args:
        topic: With JSON objects.
        table: With its namespace; columns come by themselves.
        warehouse: Of a Hadoop catalog.
        control: The topic by which tasks and coordinator talk; it must be there.
        interval_s: From one commit to the next.
    """
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "1",
        "topics": topic,
        "iceberg.tables": table,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": warehouse.as_uri(),
        "iceberg.control.topic": control,
        "iceberg.control.commit.interval-ms": str(round(1000 * interval_s)),
        **CONVERTERS,
        "transforms": "place",
        "transforms.place.type": "org.apache.iceberg.connect.transforms.KafkaMetadataTransform",
    }


def _worker_settings(servers: str, port: int, plugins: Path) -> Config:
    return {
        "bootstrap.servers": servers,
        "group.id": "connect",
        **CONVERTERS,
        **{f"{name}.storage.topic": f"connect-{name}" for name in ("config", "offset", "status")},
        **{f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")},
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        "listeners": f"HTTP://{HOST}:{port}",
        "rest.advertised.host.name": HOST,
        "plugin.path": str(plugins),
    }


def _locked(name: str) -> Any:
    return parse_lock(Path(__file__).with_name(f"{name}.lock").read_text())
