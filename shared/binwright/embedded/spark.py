"""A Spark Connect server with Delta, set up for landing many small appends."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from binwright.core.errors import EmbeddedError
from binwright.embedded.cache import cache_dir
from binwright.embedded.classes import Archive, archive_of, archived_meanwhile
from binwright.embedded.ivy import ivy_fetch, pyspark_jars
from binwright.embedded.jars import Say, ensure_jars, locked_jars
from binwright.embedded.java import find_java
from binwright.embedded.jvm import LOG4J, flags, write_arguments
from binwright.embedded.place import undone_if_interrupted
from binwright.embedded.ports import HOST, reserved
from binwright.embedded.process import Child, Command, clean_environment
from binwright.embedded.server import Server, silent

TITLE = "the Spark Connect server"
READY_S = 180.0
GRACE_S = 30.0
SETTLED_S = 15.0  # the first tables are claimed and written

_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PROBE = Path(__file__).with_name("probe.py")
# Without its second compiler Java keeps little room for code, and compiles it again and again.
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=160m")
# What Spark and Arrow reach into, as Spark's own launcher opens it.
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)


class Spark(Server):
    """A Spark Connect server on 127.0.0.1."""

    def __init__(self, command: Command, *, port: int, say: Say = silent) -> None:
        async def serving(child: Child) -> None:
            await _first_query(self.url, child, command)

        super().__init__(command, until_ready=serving, grace_s=GRACE_S, say=say)
        self.url = f"sc://{HOST}:{port}"


@asynccontextmanager
async def run_spark(  # noqa: PLR0913 - each is a choice of the caller's
    directory: Path,
    *,
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
    memory: str = "1g",
    cores: int = 2,
    nice: int = 0,
    quick: bool = False,
    say: Say = silent,
) -> AsyncIterator[Spark]:
    """Run a server whose scratch, warehouse and log are in `directory`, and stop it at the end.

    Tables written to a path outlive it. Table names do not: its catalogue is in memory.

    Args:
        directory: Made if it is not there.
        port: Of 127.0.0.1; a free one if None. It stays reserved between a stop and a start.
        settings: Spark settings beside ours or instead of them, as in spark-defaults.conf.
        memory: The heap, in Java's notation; the process takes more, 0.5 GB beside an idle heap.
        cores: How many tasks run at a time.
        nice: How much lower its priority is, 0 to 19.
        quick: Java compiles less: sooner at its pace, which is slower. For servers that soon die.
        say: Told in words what goes on.

    Raises:
        EmbeddedError: Java, the jars, the port or the server could not be had.
    """
    java = await find_java()
    delta = await ensure_jars(
        locked_jars("delta"), cache_dir() / "jars" / "delta", ivy_fetch(java, "Delta's", say)
    )
    classpath = (*delta, *sorted(pyspark_jars().glob("*.jar")))
    with reserved(port) as listener:
        with undone_if_interrupted(directory) as home:
            archive = archive_of("spark", java, classpath, home)
            conf = {**defaults(home, listener, cores), **(settings or {})}
            compiler = _QUICK if quick else ()
            options = (
                *_flags(home),
                *compiler,
                *archive.options(),
                f"-Xmx{memory}",
                *_properties(conf),
            )
            server = Spark(_command(home, archive, options, nice), port=listener, say=say)
            await server.start()
        try:
            async with archived_meanwhile(archive, after_s=SETTLED_S):
                yield server
        finally:
            await server.stop()


def defaults(home: Path, port: int, cores: int) -> dict[str, str]:
    """Return the settings of a server for landing only: many small appends, no analysis."""
    return {
        "spark.app.name": "binwright",
        "spark.master": f"local[{cores}]",
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.local.dir": str(home / "tmp"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Writers share two cores: in turns, not in the order of their coming.
        "spark.scheduler.mode": "FAIR",
        # A third of the time of small appends went into compiling the same little queries anew.
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        # A table of this size needs no more tasks than there are cores.
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # A log of a hundred little files is read by one task: four would cost more than they save.
        "spark.sql.files.openCostInBytes": "1",
        "spark.sql.files.minPartitionNum": "1",
        # What passes between tasks of one process need not be packed.
        "spark.broadcast.compress": "false",
        "spark.shuffle.compress": "false",
        "spark.cleaner.referenceTracking.blocking": "false",
        # Nobody looks at the pages, so do not keep what they would show.
        "spark.ui.enabled": "false",
        "spark.ui.liveUpdate.period": "-1",
        "spark.sql.ui.explainMode": "simple",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "20",
    }


def _flags(home: Path) -> tuple[str, ...]:
    return (
        *flags(home),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    )


def _properties(conf: Mapping[str, str]) -> tuple[str, ...]:
    # Spark takes its settings from Java's properties as well as from its launcher. The launcher
    # would put Delta behind a class loader of its own, where no class archive reaches.
    return tuple(f"-D{key}={value}" for key, value in conf.items())


def _command(home: Path, archive: Archive, options: Sequence[str], nice: int) -> Command:
    (home / "log4j2.properties").write_text(LOG4J)
    (home / "tmp").mkdir(exist_ok=True)
    arguments = write_arguments(home / "spark.args", options, archive.classpath, (_MAIN,))
    own = {
        "SPARK_HOME": str(pyspark_jars().parent),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_HOSTNAME": "localhost",  # a host name nobody resolves is common in containers
        "PYSPARK_PYTHON": sys.executable,
    }
    return Command(
        title=TITLE,
        argv=(str(archive.java.binary), arguments),
        directory=home,
        log=home / "spark.log",
        environment=clean_environment(own),
        nice=nice,
    )


async def _first_query(url: str, server: Child, command: Command) -> None:
    """Wait until a real client's query is answered; it imports while the server starts."""
    probe = Child(
        Command(
            title="a first query",
            argv=(sys.executable, "-P", str(_PROBE), url),
            directory=command.directory,
            log=command.directory / "probe.log",
            environment=clean_environment({}),
        )
    )

    async def answered() -> bool:
        return probe.returncode is not None

    try:
        await server.ready(answered, deadline_s=READY_S)
        if probe.returncode:
            raise EmbeddedError(
                f"{command.title} is up, but a client's first query failed, or the client is not "
                f"installed (pip install 'binwright[consumer]'):\n{probe.tail()}"
            )
    finally:
        probe.reap()
