"""A Spark Connect server with Delta, set up for landing many small appends."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from binwright.core.errors import EmbeddedError
from binwright.embedded.cache import cache_dir
from binwright.embedded.ivy import ivy_fetch, pyspark_jars
from binwright.embedded.jars import Say, ensure_jars, locked_jars
from binwright.embedded.java import Java, find_java
from binwright.embedded.jvm import LOG4J, flags, write_arguments
from binwright.embedded.place import undone_if_interrupted
from binwright.embedded.ports import HOST, answers, reserved
from binwright.embedded.process import Child, Command, clean_environment, run_to_end
from binwright.embedded.server import Server, silent

TITLE = "the Spark Connect server"
READY_S = 180.0
PROBE_S = 120.0
GRACE_S = 30.0

_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PROBE = Path(__file__).with_name("probe.py")
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
            await child.ready(lambda: answers(port), deadline_s=READY_S)
            await _query(self.url, command)

        super().__init__(command, until_ready=serving, grace_s=GRACE_S, say=say)
        self.url = f"sc://{HOST}:{port}"


@asynccontextmanager
async def run_spark(
    directory: Path,
    *,
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
    memory: str = "1g",
    cores: int = 2,
    nice: int = 0,
    say: Say = silent,
) -> AsyncIterator[Spark]:
    """Run a server whose scratch, warehouse and log are in `directory`, and stop it at the end.

    Tables written to a path outlive it. Table names do not: its catalogue is in memory.

    Args:
        directory: Made if it is not there.
        port: Of 127.0.0.1; a free one if None. It stays reserved between a stop and a start.
        settings: Spark settings beside ours or instead of them, as in spark-defaults.conf.
        memory: The heap, in Java's notation; the process takes about twice as much under load.
        cores: How many tasks run at a time.
        nice: How much lower its priority is, 0 to 19.
        say: Told in words what goes on.

    Raises:
        EmbeddedError: Java, the jars, the port or the server could not be had.
    """
    directory = directory.absolute()
    java = await find_java()
    delta = await ensure_jars(
        locked_jars("delta"), cache_dir() / "jars" / "delta", ivy_fetch(java, "Delta's jars", say)
    )
    with reserved(port) as listener:
        with undone_if_interrupted(directory):
            conf = {**defaults(directory, listener, cores), **(settings or {})}
            server = Spark(
                _command(directory, java, delta, conf, memory, nice), port=listener, say=say
            )
            await server.start()
        try:
            yield server
        finally:
            await server.stop()


def defaults(directory: Path, port: int, cores: int) -> dict[str, str]:
    """Return the settings of a server for landing only: many small appends, no analysis."""
    return {
        "spark.app.name": "binwright",
        "spark.master": f"local[{cores}]",
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.local.dir": str(directory / "tmp"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
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
        "spark.databricks.delta.writeChecksumFile.enabled": "false",
        # Nobody looks at the pages, so do not keep what they would show.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "20",
    }


def _command(
    directory: Path,
    java: Java,
    delta: tuple[Path, ...],
    conf: Mapping[str, str],
    memory: str,
    nice: int,
) -> Command:
    (directory / "log4j2.properties").write_text(LOG4J)
    (directory / "tmp").mkdir(exist_ok=True)
    shipped = pyspark_jars()
    options = (
        *flags(directory),
        f"-Xmx{memory}",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        # Straight into the virtual machine: Spark's launcher would put Delta's jars behind a class
        # loader of its own, where no class archive reaches them.
        *(f"-D{key}={value}" for key, value in conf.items()),
    )
    classpath = (*delta, *sorted(shipped.glob("*.jar")))
    return Command(
        title=TITLE,
        argv=(
            str(java.binary),
            write_arguments(directory / "spark.args", options, classpath, (_MAIN,)),
        ),
        directory=directory,
        log=directory / "spark.log",
        environment=clean_environment(
            {
                "SPARK_HOME": str(shipped.parent),
                "SPARK_LOCAL_IP": HOST,
                # A host name that nobody can resolve is common in containers.
                "SPARK_LOCAL_HOSTNAME": "localhost",
                "PYSPARK_PYTHON": sys.executable,
            }
        ),
        nice=nice,
    )


async def _query(url: str, server: Command) -> None:
    command = Command(
        title="a first query",
        argv=(sys.executable, "-P", str(_PROBE), url),
        directory=server.directory,
        log=server.directory / "probe.log",
        environment=clean_environment({}),
        nice=server.nice,
    )
    code, child = await run_to_end(command, deadline_s=PROBE_S)
    if code:
        raise EmbeddedError(
            f"{server.title} is up but answers no query, or its client is not installed "
            f"(pip install 'binwright[consumer]'):\n{child.tail()}"
        )
