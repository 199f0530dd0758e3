"""A Spark Connect server with Delta, set up for landing many small appends."""

import secrets
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from binwright.local.cache import cache_dir
from binwright.local.child import Child, Command
from binwright.local.class_data import ClassDataArchive, archive_in_background, class_data_archive
from binwright.local.jars import Fetch, ensure_jars, ivy_fetch, locked_jars, pyspark_jars_dir
from binwright.local.java import (
    LOG4J,
    Java,
    find_java,
    java_environment,
    jvm_flags,
    write_arguments,
    write_private,
)
from binwright.local.machine import check_descriptors, check_user
from binwright.local.server import (
    HOST,
    ProgressCallback,
    Server,
    no_progress,
    reserve_port,
    run_directory,
)
from binwright.protocol.errors import EmbeddedError
from binwright.runtime.environment import clean_environment
from binwright.runtime.spark_url import with_token

TITLE = "the Spark Connect server"
READY_S = 180.0
GRACE_S = 30.0
TOKEN_BYTES = 32
SETTLED_S = 15.0  # the first tables are claimed and written

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""Spark's launcher gives them to Java. An embedded server is started without it."""
_AUTHENTICATION = ("spark.authenticate", "spark.network.crypto.enabled")
_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PROBE = Path(__file__).with_name("spark_probe.py")
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - its name: server and client read it
SHIPPED = Path(__file__).with_name("spark-defaults.conf")
LANDING_JAR = Path(__file__).with_name("binwright-landing.jar")
"""The extension that commits staged files as they are: `python -m tools.landing_jar` builds it."""
# What Spark and Arrow reach into, as Spark's own launcher opens it.
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)


@dataclass(frozen=True, slots=True)
class Master:
    """The master of a standalone cluster.

    Attributes:
        url: Its address.
        secret: By which master, workers, driver and executors know each other.
    """

    url: str
    secret: str = field(repr=False)


class SparkServer(Server):
    """A Spark Connect server on 127.0.0.1, for clients with its token.

    Attributes:
        address: Without the token.
        token_file: Readable by this user alone.
        url: With the token, for clients in this process: not for a command line, nor for a log.
    """

    def __init__(
        self,
        command: Command,
        *,
        port: int,
        token_file: Path,
        progress: ProgressCallback = no_progress,
    ) -> None:
        async def serving(child: Child) -> None:
            await _first_query(self.address, child, command)

        super().__init__(command, until_ready=serving, grace_s=GRACE_S, progress=progress)
        # Without TLS pyspark sends a token to this name only.
        self.address = f"sc://localhost:{port}"
        self.token_file = token_file
        self.url = with_token(self.address, token_file)


@asynccontextmanager
async def run_spark(
    directory: Path,
    *,
    port: int | None = None,
    token: str | None = None,
    settings: Mapping[str, str] | None = None,
    memory: str = "1g",
    cores: int = 2,
    master: Master | None = None,
    jars: Sequence[Path] = (),
    spark: Sequence[Path] = (),
    nice: int = 0,
    progress: ProgressCallback = no_progress,
) -> AsyncIterator[SparkServer]:
    """Run a server whose scratch, warehouse and log are in `directory`, and stop it at the end.

    Its token is in the file `token` of the directory until then, and in the server's environment.
    Tables written to a path outlive it. Table names do not: its catalogue is in memory.

    Args:
        directory: Made if it is not there.
        port: Of 127.0.0.1; a free one if None. It stays reserved between a stop and a start.
        token: Clients must send it; None: a random one.
        settings: Spark settings beside ours or instead of them, as in spark-defaults.conf.
        memory: The heap, in Java's notation; the process takes 0.5 GB beside it.
        cores: How many tasks run at a time, unless there is a `master`.
        master: Of a standalone cluster on this machine, as `run_spark_cluster` gives it; tasks
            then run in executors of its workers. None runs them in the server's own process.
        jars: More of them for its class path, such as an object store's or a source's.
        spark: The jars of another version of Spark with its Delta, without a `master`; none: the
            embedded one's. The extension is beside them as well.
        nice: How much lower its priority is, 0 to 19.
        progress: Told in words what goes on.

    Raises:
        SettingsError: This machine does not let a Spark run.
        EmbeddedError: Java, the jars, the port or the server could not be had.
    """
    check_descriptors()
    check_user()
    java = await find_java()
    delta = () if spark else await delta_jars(java, progress)
    own = (LANDING_JAR, *spark) if spark else classpath(delta)
    with reserve_port(port) as listener:
        with run_directory(directory) as home:
            archive = class_data_archive("spark", java, (*own, *jars), home)
            conf = {
                **default_settings(home, listener, cores),
                **cluster_settings(master, (*delta, LANDING_JAR, *jars)),
            }
            conf |= settings or {}
            options = (
                *spark_flags(home),
                *conf[JAVA_OPTIONS].split(),
                *archive.options(),
                f"-Xmx{memory}",
                *properties(conf),
            )
            secret = secrets.token_urlsafe(TOKEN_BYTES) if token is None else token
            server = SparkServer(
                _command(home, archive, options, secret, nice),
                port=listener,
                token_file=write_private(home / "token", secret),
                progress=progress,
            )
            await server.start()
        try:
            async with archive_in_background(archive, after_s=SETTLED_S):
                yield server
        finally:
            await server.stop()
            server.token_file.unlink(missing_ok=True)


def default_settings(home: Path, port: int, cores: int) -> dict[str, str]:
    """Return the shipped settings, and those that depend on this machine and this run."""
    return {
        **shipped_settings(),
        "spark.app.name": "binwright",
        "spark.master": f"local[{cores}]",
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.local.dir": str(home / "tmp"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        # Tasks run in the server, which talks to itself alone: it asks for the secret, and encrypts
        # nothing. Encrypted, its first tasks hung for two minutes once, on a full machine.
        "spark.network.crypto.enabled": "false",
    }


def shipped_settings() -> dict[str, str]:
    """Return the settings that embedded, compose and Kubernetes servers have in common."""
    text = SHIPPED.read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def authentication() -> dict[str, str]:
    """Return those by which processes know each other by a secret, and encrypt what they send."""
    shipped = shipped_settings()
    return {key: shipped[key] for key in _AUTHENTICATION}


def cluster_settings(master: Master | None, jars: Sequence[Path]) -> dict[str, str]:
    """Return the settings of a server whose tasks run in executors of `master`; none if None."""
    if master is None:
        return {}
    return {
        "spark.master": master.url,
        **authentication(),
        # A driver takes it from nowhere else. Executors have it from their workers.
        "spark.authenticate.secret": master.secret,
        # The same machine: executors take them from where they are, and nothing is copied.
        "spark.executor.extraClassPath": ":".join(map(str, jars)),
    }


def properties(conf: Mapping[str, str]) -> tuple[str, ...]:
    """Return Java options that give Spark these settings."""
    # Spark takes its settings from Java's properties as well as from its launcher. The launcher
    # would put Delta behind a class loader of its own, where no class archive reaches.
    return tuple(f"-D{key}={value}" for key, value in conf.items())


def _command(
    home: Path, archive: ClassDataArchive, options: Sequence[str], token: str, nice: int
) -> Command:
    (home / "log4j2.properties").write_text(LOG4J)
    (home / "tmp").mkdir(exist_ok=True)
    arguments = write_arguments(home / "spark.args", options, archive.classpath, (_MAIN,))
    return Command(
        title=TITLE,
        argv=(str(archive.java.binary), arguments),
        directory=home,
        log=home / "spark.log",
        environment={**spark_environment(), TOKEN_VARIABLE: token},
        nice=nice,
    )


async def _first_query(address: str, server: Child, command: Command) -> None:
    """Wait until a real client's query is answered; it imports while the server starts."""
    probe = Child(
        Command(
            title="a first query",
            argv=(sys.executable, "-P", str(_PROBE), address),
            directory=command.directory,
            log=command.directory / "probe.log",
            environment=clean_environment({TOKEN_VARIABLE: command.environment[TOKEN_VARIABLE]}),
        )
    )

    async def answered() -> bool:
        return probe.returncode is not None

    try:
        await server.wait_until_ready(answered, deadline_s=READY_S)
        if probe.returncode:
            raise EmbeddedError(
                f"{command.title} is up, but a client's first query failed, or the client is not "
                f"installed (pip install 'binwright[embedded]'):\n{probe.tail()}"
            )
    finally:
        probe.reap()


async def delta_jars(java: Java, progress: ProgressCallback) -> tuple[Path, ...]:
    """Return Delta's jars, fetched first if the cache lacks them.

    Raises:
        EmbeddedError: They could not be had.
    """
    return await _cached("delta", ivy_fetch(java, "Delta's", progress))


async def s3_jars(java: Java, progress: ProgressCallback) -> tuple[Path, ...]:
    """Return what a server needs for tables at s3a://, beside its own jars; see `delta_jars`."""
    return await _cached("s3", ivy_fetch(java, "S3's", progress))


async def _cached(name: str, fetch: Fetch) -> tuple[Path, ...]:
    return tuple(await ensure_jars(locked_jars(name), cache_dir() / "jars" / name, fetch))


def classpath(delta: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the class path of a Spark process that reads and writes Delta tables."""
    return (*delta, LANDING_JAR, *sorted(pyspark_jars_dir().glob("*.jar")))


def spark_flags(directory: Path) -> tuple[str, ...]:
    """Return Java options of a Spark process whose traces stay in `directory`."""
    return (
        *jvm_flags(directory),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    )


def spark_environment() -> dict[str, str]:
    """Return the environment of a Spark process that is bound to 127.0.0.1."""
    return java_environment(
        {
            "SPARK_HOME": str(pyspark_jars_dir().parent),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_HOSTNAME": "localhost",  # a host name often does not resolve in containers
            "PYSPARK_PYTHON": sys.executable,
            "MALLOC_ARENA_MAX": "2",  # else each of 200 threads may get a heap of its own
        }
    )
