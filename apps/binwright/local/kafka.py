"""Real Kafka brokers: one that is alone, or several that are one cluster.

Each is a KRaft node. Alone, it is broker and controller in one process; in a cluster leaders move,
and replicas lag.
"""

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from binwright.local.cache import cache_dir
from binwright.local.child import Child, Command, run_to_end
from binwright.local.class_data import ClassDataArchive, archive_in_background, class_data_archive
from binwright.local.jars import ensure_jars, ivy_fetch, locked_jars
from binwright.local.java import (
    LOG4J,
    Java,
    find_java,
    java_environment,
    quick_jvm_flags,
    write_arguments,
)
from binwright.local.machine import check_descriptors
from binwright.local.server import (
    HOST,
    ProgressCallback,
    Server,
    accepts_connections,
    no_progress,
    reserve_port,
    run_directory,
)
from binwright.protocol.errors import EmbeddedError

TITLE = "the Kafka broker"
READY_S = 120.0
FORMAT_S = 60.0
GRACE_S = 30.0
_DEL = 0x7F
SETTLED_S = 3.0  # topics made, groups joined: most classes are loaded
REPLICAS = 3
VOTERS = 3
"""Brokers that are controllers too, at most: more of them only vote."""


class EmbeddedBroker(Server):
    """A broker on 127.0.0.1, without encryption or passwords."""

    def __init__(
        self, broker_command: Command, *, port: int, progress: ProgressCallback = no_progress
    ) -> None:
        async def serving(child: Child) -> None:
            # Metadata was answered 10 ms after the port opened in every run: no more to wait for.
            await child.wait_until_ready(lambda: accepts_connections(port), deadline_s=READY_S)

        super().__init__(broker_command, until_ready=serving, grace_s=GRACE_S, progress=progress)
        self.bootstrap_servers = f"{HOST}:{port}"


@asynccontextmanager
async def run_broker(
    directory: Path,
    *,
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
    heap: str = "512m",
    nice: int = 0,
    cluster: str | None = None,
    java_options: Sequence[str] = (),
    classpath: Sequence[Path] = (),
    kafka: Sequence[Path] = (),
    progress: ProgressCallback = no_progress,
) -> AsyncIterator[EmbeddedBroker]:
    """Run a broker whose data, settings and log are in `directory`, and stop it at the end.

    Args:
        directory: Made if it is not there. A broker's own from before is continued.
        port: Of 127.0.0.1; a free one if None. It stays reserved between a stop and a start.
        settings: EmbeddedBroker settings beside ours or instead of them, as in server.properties.
        heap: Most it may use, in Java's notation.
        nice: How much lower its priority is, 0 to 19.
        cluster: The id of the cluster that it joins; None: of its own.
        java_options: Options of its JVM beside ours.
        classpath: Jars of its plugins.
        kafka: The jars of another version of Kafka, all that it needs; none: the embedded one's.
        progress: Told in words what goes on.

    Raises:
        EmbeddedError: Java, the jars, the port or the broker could not be had.
    """
    java, jars = await ensure_kafka(progress, kafka)
    with reserve_port(port) as listener, reserve_port() as controller:
        with run_directory(directory) as home:
            properties = {**default_settings(home, listener, controller), **(settings or {})}
            archive = class_data_archive("broker", java, jars, home)
            # An archive serves every class path that begins with its own.
            plugged = replace(archive, classpath=(*jars, *classpath))
            await prepare_storage(home, properties, plugged, cluster or new_cluster_id())
            broker = EmbeddedBroker(
                broker_command(home, plugged, heap, nice, java_options),
                port=listener,
                progress=progress,
            )
            await broker.start()
        try:
            async with archive_in_background(archive, after_s=SETTLED_S):
                yield broker
        finally:
            await broker.stop()


async def ensure_kafka(
    progress: ProgressCallback, other: Sequence[Path] = ()
) -> tuple[Java, tuple[Path, ...]]:
    """Return a Java and Kafka's jars, fetched if they are not there; or the `other` ones.

    Raises:
        SettingsError: This machine does not let a broker run.
        EmbeddedError: They could not be had.
    """
    check_descriptors()
    java = await find_java()
    if other:
        return java, tuple(other)
    fetch = ivy_fetch(java, "Kafka's", progress)
    return java, await ensure_jars(locked_jars("kafka"), cache_dir() / "jars" / "kafka", fetch)


def default_settings(home: Path, listener: int, controller: int) -> dict[str, str]:
    """Return the settings of a broker that is small, quick, and in the rest as it comes."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{HOST}:{listener},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{listener}",
        "log.dirs": str(home / "data"),
        "auto.create.topics.enable": "false",
        # One node: what Kafka keeps for itself cannot have more replicas.
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "2",
        # Groups form at once, and a test may have short sessions.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        # There is nobody to outvote: elect and register without the usual patience.
        "controller.quorum.election.timeout.ms": "500",
        "controller.quorum.election.backoff.max.ms": "300",
        "broker.heartbeat.interval.ms": "500",
        # After a kill the next start waits until the controller has given up the old one.
        "broker.session.timeout.ms": "3000",
        # Threads and buffers for one machine.
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "log.cleaner.dedupe.buffer.size": str(8 << 20),
    }


def new_cluster_id() -> str:
    """Return a new cluster id: 16 random bytes as Kafka writes them."""
    while True:  # one that begins with "-" is taken for an option by the format tool, 1 in 64
        drawn = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not drawn.startswith("-"):
            return drawn


def properties_text(properties: Mapping[str, str]) -> str:
    """Return a Java properties file; what is not ASCII is escaped, since Java reads Latin-1."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    plain = value.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-16-be")
    units = (int.from_bytes(plain[i : i + 2], "big") for i in range(0, len(plain), 2))
    return "".join(chr(unit) if unit < _DEL else f"\\u{unit:04x}" for unit in units)


async def prepare_storage(
    home: Path, properties: Mapping[str, str], archive: ClassDataArchive, cluster: str
) -> None:
    """Write a broker's settings, and format its storage unless it is; raise `EmbeddedError`."""
    _write(home, properties)
    await _format(home, archive, cluster)


def _write(home: Path, properties: Mapping[str, str]) -> None:
    if "," in str(home):
        raise EmbeddedError(
            f"Kafka would take {home} for two directories: name one without a comma"
        )
    (home / "server.properties").write_text(properties_text(properties), encoding="ascii")
    (home / "log4j2.properties").write_text(LOG4J)
    (home / "tmp").mkdir(exist_ok=True)


async def _format(home: Path, archive: ClassDataArchive, cluster: str) -> None:
    if (home / "data" / "meta.properties").exists():
        return
    options = (*quick_jvm_flags(home), *archive.options(), "-Xmx128m")
    settings = str(home / "server.properties")
    main = ("kafka.tools.StorageTool", "format", "-t", cluster, "-c", settings)
    arguments = write_arguments(home / "format.args", options, archive.classpath, main)
    work = Command(
        title="formatting the broker's storage",
        argv=(str(archive.java.binary), arguments),
        directory=home,
        log=home / "format.log",
        environment=java_environment({}),
    )
    code, child = await run_to_end(work, deadline_s=FORMAT_S)
    if code:
        raise EmbeddedError(f"{work.title} ended with {code}:\n{child.tail()}")


def broker_command(
    home: Path,
    archive: ClassDataArchive,
    heap: str,
    nice: int,
    java_options: Sequence[str] = (),
) -> Command:
    """Return what runs the broker that lives in `home`."""
    options = (*quick_jvm_flags(home), *archive.options(), f"-Xmx{heap}", *java_options)
    main = ("kafka.Kafka", str(home / "server.properties"))
    arguments = write_arguments(home / "broker.args", options, archive.classpath, main)
    return Command(
        title=TITLE,
        argv=(str(archive.java.binary), arguments),
        directory=home,
        log=home / "broker.log",
        environment=java_environment({}),
        nice=nice,
    )


@asynccontextmanager
async def run_brokers(
    directory: Path,
    *,
    count: int = 3,
    settings: Mapping[str, str] | None = None,
    racks: Sequence[str] = (),
    heap: str = "256m",
    kafka: Sequence[Path] = (),
    progress: ProgressCallback = no_progress,
) -> AsyncIterator[tuple[EmbeddedBroker, ...]]:
    """Run a new cluster of `count` brokers, 1 to `count`, and end it at the end.

    The first `VOTERS` are controllers, too. They are killed at the end, not stopped: a broker that
    stops hands its partitions over first, and waits for minutes once there is no majority to do it.

    Args:
        directory: Made if it is not there; each broker has a directory in it.
        count: How many, > 0.
        settings: EmbeddedBroker settings beside ours or instead of them, of all.
        racks: The rack of each broker; none: they have no racks.
        heap: Most that each may use, in Java's notation.
        kafka: The jars of another version of Kafka; see `run_broker`.
        progress: Told in words what goes on.

    Raises:
        EmbeddedError: Java, the jars, a port or a broker could not be had.
    """
    java, jars = await ensure_kafka(progress, kafka)
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
                EmbeddedBroker(
                    broker_command(place, archive, heap, 0), port=listener, progress=progress
                )
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
