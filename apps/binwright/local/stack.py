"""The whole system on this machine: broker, Spark, monitor, controller and its consumers.

Each part is a process. A service that ends is restarted after a pause, as by an orchestrator.
However the stack ends, none of its processes is left.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from binwright.fleets.process import ProcessFleet, process_fleet
from binwright.local.child import Child, Command
from binwright.local.kafka import run_broker
from binwright.local.server import ProgressCallback, Server
from binwright.local.spark import SparkServer, run_spark
from binwright.local.spark_cluster import run_spark_cluster
from binwright.local.spark_size import SparkSize
from binwright.protocol.errors import EmbeddedError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.loading import settings_environment
from binwright.runtime.spark_url import with_token

SPARK_NOT_WARMED_UP = LogEvent.warning(
    "spark.not_warmed_up",
    "The warm-up of the embedded Spark failed or took too long; its first commits are slow.",
)
SERVICE_ENDED = LogEvent.warning(
    "service.ended", "A service of `binwright up` or `demo` ended and is started again."
)

RESTART_S = 1.0
RESTARTS = 20  # of one service; after that the stack fails
FLEET_END_S = 30.0
WARM_UP_S = 120.0
LOGS_VARIABLE = "BINWRIGHT_CONTROLLER__PROCESS_LOGS"


@dataclass(frozen=True, slots=True)
class Servers:
    """The addresses of Kafka and Spark.

    Attributes:
        bootstrap_servers: Kafka's.
        spark: Spark's, as it was given, or without the token if it is embedded.
        took_s: How long their start took.
        token_file: With the token of an embedded Spark.
    """

    bootstrap_servers: str
    spark: str
    took_s: float
    token_file: Path | None = None

    @property
    def spark_url(self) -> str:
        """Return Spark's address with the token, for clients in this process: not to be shown."""
        return with_token(self.spark, self.token_file)


@contextlib.asynccontextmanager
async def servers(
    directory: Path,
    progress: ProgressCallback,
    *,
    bootstrap_servers: str | None = None,
    spark: str | None = None,
    embedded: SparkSize = SparkSize(),  # noqa: B008 - it is frozen
) -> AsyncIterator[Servers]:
    """Start an embedded broker and an embedded Spark, side by side, unless addresses are given.

    Args:
        directory: Of their data and logs.
        progress: Called with each step, in words.
        bootstrap_servers: Of a Kafka that runs.
        spark: The address of Spark Connect servers that run.
        embedded: The size of the embedded Spark.

    Raises:
        EmbeddedError: One of them does not start.
    """
    began = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        started: list[Server] = []

        async def broker() -> str:
            if bootstrap_servers is not None:
                return bootstrap_servers
            server = await stack.enter_async_context(
                run_broker(directory / "kafka", progress=progress)
            )
            started.append(server)
            return server.bootstrap_servers

        async def connect() -> tuple[str, Path | None]:
            if spark is not None:
                return spark, None
            running = _embedded_spark(directory / "spark", embedded, progress)
            server = await stack.enter_async_context(running)
            started.append(server)
            return server.address, server.token_file

        async with asyncio.TaskGroup() as tasks:
            kafka, connected = tasks.create_task(broker()), tasks.create_task(connect())
        address, token_file = connected.result()
        restarting = asyncio.create_task(_restart_dead(started, progress))
        try:
            yield Servers(kafka.result(), address, time.monotonic() - began, token_file)
        finally:
            restarting.cancel()
            await asyncio.gather(restarting, return_exceptions=True)


async def _restart_dead(servers: Sequence[Server], progress: ProgressCallback) -> None:
    """Restart servers that died, on their data and ports."""
    while True:
        await asyncio.sleep(RESTART_S)
        for server in servers:
            if server.pid is None:
                progress("a server died; starting it again")
                try:
                    await server.start()
                except EmbeddedError as exc:
                    progress(f"it did not start: {exc}")


@contextlib.asynccontextmanager
async def _embedded_spark(
    directory: Path, wanted: SparkSize, progress: ProgressCallback
) -> AsyncIterator[SparkServer]:
    """Run a Spark Connect server, and the cluster that runs its tasks if one is wanted."""
    if not wanted.workers:
        async with run_spark(directory, memory=wanted.heap, progress=progress) as server:
            yield server
        return
    # A worker's memory is that of one executor's heap; Spark does not count its other memory.
    cluster = run_spark_cluster(
        directory / "cluster", workers=wanted.workers, memory_each=wanted.heap, progress=progress
    )
    executors = {"spark.executor.memory": wanted.heap}
    async with (
        cluster as master,
        run_spark(
            directory, memory=wanted.heap, master=master, settings=executors, progress=progress
        ) as server,
    ):
        yield server


async def warm_up(settings: Settings, directory: Path) -> None:
    """Let Spark learn on a throw-away table, `WARM_UP_S` at most; a failure is logged."""
    child = Child(
        Command(
            title="the warm-up of Spark",
            argv=(sys.executable, "-m", "binwright.consumer.land.warm_up"),
            directory=directory,
            log=directory / "warm-up.log",
            environment=_environment(settings),
        )
    )
    try:
        async with asyncio.timeout(WARM_UP_S):
            if code := await child.wait():
                log(SPARK_NOT_WARMED_UP, code=code, log_ends=child.tail())
    except TimeoutError:
        log(SPARK_NOT_WARMED_UP, waited_s=WARM_UP_S)
    finally:
        await asyncio.shield(child.stop(grace_s=5.0))


class Service:
    """A monitor or controller process, restarted whenever it ends."""

    def __init__(self, name: str, directory: Path, environment: Mapping[str, str]) -> None:
        """Prepare `python -m binwright.<name>`, logging to `<directory>/<name>.log`."""
        self._command = Command(
            title=f"the {name}",
            argv=(sys.executable, "-m", f"binwright.{name}"),
            directory=directory,
            log=directory / f"{name}.log",
            environment=environment,
        )
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self._child.pid if self._child and self._child.returncode is None else None

    async def run(self) -> None:
        """Keep the process running until cancelled, then end it.

        Raises:
            EmbeddedError: It ended `RESTARTS` times; with the end of its log.
        """
        for _ in range(RESTARTS):
            self._child = Child(self._command)
            try:
                code = await self._child.wait()
            except asyncio.CancelledError:
                await asyncio.shield(self._child.stop(grace_s=5.0))
                raise
            log(SERVICE_ENDED, service=self._command.title, code=code)
            await asyncio.sleep(RESTART_S)
        raise EmbeddedError(
            f"{self._command.title} ended {RESTARTS} times; its log ends:\n{self._child.tail()}"
            if self._child
            else f"{self._command.title} never ran"
        )


@dataclass(frozen=True, slots=True)
class Stack:
    """The running services."""

    settings: Settings
    monitor: Service
    controller: Service
    failed: asyncio.Future[None]

    async def wait_for_failure(self) -> None:
        """Wait until a service cannot be kept running; raise its `EmbeddedError`."""
        await asyncio.shield(self.failed)

    def pids(self) -> list[int]:
        """Return the processes of the services and of all slots."""
        services = [pid for s in (self.monitor, self.controller) if (pid := s.pid) is not None]
        return [*services, *self.consumer_pids()]

    def consumer_pids(self) -> list[int]:
        """Return the processes of all slots, in order of slots."""
        running = _own_fleet(self.settings).running()
        return [process.pid for slot in sorted(running) for process in running[slot]]


@contextlib.asynccontextmanager
async def services(
    settings: Settings, directory: Path, *, monitor: Settings | None = None
) -> AsyncIterator[Stack]:
    """Run monitor and controller, which starts consumers; end them all at the end.

    Args:
        settings: Of the group.
        directory: Of the services' logs.
        monitor: Of the monitor, where it measures something else than this group's topics.
    """
    stack = Stack(
        settings=settings,
        monitor=Service("monitor", directory, _environment(monitor or settings)),
        controller=Service("controller", directory, _environment(settings)),
        failed=asyncio.get_running_loop().create_future(),
    )
    running = [asyncio.create_task(s.run()) for s in (stack.monitor, stack.controller)]
    for task in running:
        task.add_done_callback(lambda done: _report_failure(stack.failed, done))
    try:
        yield stack
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await _own_fleet(settings).close()


def _own_fleet(settings: Settings) -> ProcessFleet:
    """Return the consumers that log where this stack does: another one may lead the same group."""
    logs = settings.controller.process_logs

    def owned(process: psutil.Process) -> bool:
        return logs is None or process.environ().get(LOGS_VARIABLE) == str(logs)

    fleet = process_fleet(settings)
    return replace(fleet, grace_s=FLEET_END_S, owned=owned)


def _environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, **settings_environment(settings)}


def _report_failure(failed: asyncio.Future[None], task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None and not failed.done():
        failed.set_exception(error)
