"""The whole system on this machine: broker, Spark, monitor, controller and its consumers.

Each part is a process. The services are watched as an orchestrator would: one that ends is started
again, after a pause. However the stack ends, nothing of it is left.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from binwright.cli.heap import EmbeddedSpark
from binwright.controller.__main__ import process_fleet
from binwright.core.errors import EmbeddedError
from binwright.embedded.broker import run_broker
from binwright.embedded.cluster import run_cluster
from binwright.embedded.process import Child, Command
from binwright.embedded.server import Server
from binwright.embedded.spark import Spark, run_spark
from binwright.shell.settings import Settings, settings_environment

log = structlog.get_logger()

Say = Callable[[str], None]
RESTART_S = 1.0
RESTARTS = 20  # within one stack's life; more means that it will never work
FLEET_END_S = 30.0


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the two servers are."""

    bootstrap_servers: str
    spark: str
    took_s: float


@contextlib.asynccontextmanager
async def servers(
    directory: Path,
    say: Say,
    *,
    bootstrap_servers: str | None = None,
    spark: str | None = None,
    embedded: EmbeddedSpark = EmbeddedSpark(),  # noqa: B008 - it is frozen
) -> AsyncIterator[Servers]:
    """Run what is not given: an embedded broker, an embedded Spark, side by side.

    Args:
        directory: Where their data and logs are.
        say: Told in words what goes on.
        bootstrap_servers: A broker that is there.
        spark: A Spark Connect server that is there.
        embedded: What the embedded Spark is to be.

    Raises:
        EmbeddedError: One of them could not be had.
    """
    began = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        made: list[Server] = []

        async def broker() -> str:
            if bootstrap_servers is not None:
                return bootstrap_servers
            server = await stack.enter_async_context(run_broker(directory / "kafka", say=say))
            made.append(server)
            return server.bootstrap_servers

        async def connect() -> str:
            if spark is not None:
                return spark
            running = _embedded_spark(directory / "spark", embedded, say)
            server = await stack.enter_async_context(running)
            made.append(server)
            return server.url

        async with asyncio.TaskGroup() as tasks:
            both = tasks.create_task(broker()), tasks.create_task(connect())
        keeping = asyncio.create_task(_keep(made, say))
        try:
            yield Servers(both[0].result(), both[1].result(), time.monotonic() - began)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


async def _keep(servers: Sequence[Server], say: Say) -> None:
    """Start a server that died again, on its data and its port, as an orchestrator would."""
    while True:
        await asyncio.sleep(RESTART_S)
        for server in servers:
            if server.pid is None:
                say("a server died; starting it again")
                try:
                    await server.start()
                except EmbeddedError as exc:
                    say(f"it did not start: {exc}")


@contextlib.asynccontextmanager
async def _embedded_spark(directory: Path, wanted: EmbeddedSpark, say: Say) -> AsyncIterator[Spark]:
    """Run a Spark Connect server, and the cluster that works for it if one is wanted."""
    if not wanted.workers:
        async with run_spark(directory, memory=wanted.heap, say=say) as server:
            yield server
        return
    # A worker's memory is for one executor's heap; its other needs are not counted.
    cluster = run_cluster(
        directory / "cluster", workers=wanted.workers, memory_each=wanted.heap, say=say
    )
    executors = {"spark.executor.memory": wanted.heap}
    async with (
        cluster as master,
        run_spark(
            directory, memory=wanted.heap, master=master, settings=executors, say=say
        ) as server,
    ):
        yield server


class Service:
    """A monitor or controller process, started again whenever it ends."""

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
        """Keep it running until cancelled, then end it.

        Raises:
            EmbeddedError: It ended too often; with its last words.
        """
        for _ in range(RESTARTS):
            self._child = Child(self._command)
            try:
                code = await self._child.exited()
            except asyncio.CancelledError:
                await asyncio.shield(self._child.stop(grace_s=5.0))
                raise
            log.warning("service.ended", service=self._command.title, code=code)
            await asyncio.sleep(RESTART_S)
        raise EmbeddedError(
            f"{self._command.title} ended {RESTARTS} times; its last words:\n{self._child.tail()}"
            if self._child
            else f"{self._command.title} never ran"
        )


@dataclass(frozen=True, slots=True)
class Stack:
    """The services that run."""

    settings: Settings
    monitor: Service
    controller: Service
    failed: asyncio.Future[None]

    async def trouble(self) -> None:
        """Wait until a service cannot be kept running; raises its `EmbeddedError`."""
        await asyncio.shield(self.failed)

    def pids(self) -> list[int]:
        """Return the processes of the services and of all slots."""
        services = [pid for s in (self.monitor, self.controller) if (pid := s.pid) is not None]
        return [*services, *self.consumer_pids()]

    def consumer_pids(self) -> list[int]:
        """Return the processes of all slots, in order of slots."""
        running = process_fleet(self.settings).running()
        return [process.pid for slot in sorted(running) for process in running[slot]]


@contextlib.asynccontextmanager
async def services(settings: Settings, directory: Path) -> AsyncIterator[Stack]:
    """Run monitor and controller, which runs consumers; at the end, end them all."""
    environment = {**os.environ, **settings_environment(settings)}
    stack = Stack(
        settings=settings,
        monitor=Service("monitor", directory, environment),
        controller=Service("controller", directory, environment),
        failed=asyncio.get_running_loop().create_future(),
    )
    keeping = [asyncio.create_task(s.run()) for s in (stack.monitor, stack.controller)]
    for task in keeping:
        task.add_done_callback(lambda done: _tell(stack.failed, done))
    try:
        yield stack
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        fleet = process_fleet(settings)
        fleet.grace_s = FLEET_END_S
        await fleet.close()


def _tell(failed: asyncio.Future[None], task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None and not failed.done():
        failed.set_exception(error)
