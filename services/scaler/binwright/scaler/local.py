"""Groups of the settings: replicas are processes or containers of this machine."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from binwright.controller.fleets.docker.engine import Engine, open_engine
from binwright.controller.fleets.docker.fleet import DockerFleet, Timing
from binwright.controller.fleets.docker.setup import DEFAULT_PROJECT, own_container
from binwright.controller.fleets.docker.spec import SLOT, ContainerSpec
from binwright.controller.fleets.kubernetes.deployment import resource_name
from binwright.fleets.process import ProcessFleet
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import Slot
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings import LocalGroupSettings, Settings
from binwright.runtime.settings.scaler import REPLICA
from binwright.scaler.decide.machine import WorkloadSeen
from binwright.scaler.targets import Target

log = structlog.get_logger()

WATCH_S = 2.0
RETRY_S, LONGEST_RETRY_S = 1.0, 30.0


class LocalFleet(Protocol):
    """What a fleet of processes and one of containers have in common."""

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""

    async def run(self) -> None:
        """Keep the desired slots running, for ever."""

    def detach(self) -> None:
        """Fit `Fleet.detach`."""

    def update_ready(self, ready: dict[Slot, float]) -> None:
        """Fit `Fleet.update_ready`."""


@dataclass
class FleetWorkload:
    """A fleet as the workload of a group: replica i is slot i; see `targets.Workload`.

    Attributes:
        fleet: Runs the replicas.
        running: Returns the slots that run now.
    """

    group: str
    fleet: LocalFleet
    running: Callable[[], Awaitable[Collection[Slot]]]
    _wanted: int | None = None  # None: not known yet what runs
    _since: dict[Slot, float] = field(default_factory=dict)  # when first seen running

    def seen(self) -> WorkloadSeen | None:
        """Fit `Workload.seen`."""
        if self._wanted is None:
            return None
        return WorkloadSeen(replicas=self._wanted, ready=len(self._since))

    async def scale(self, replicas: int) -> None:
        """Fit `Workload.scale`."""
        await self.fleet.reconcile([Slot(number) for number in range(replicas)])
        self._wanted = replicas

    async def run(self) -> None:
        """Find out what runs, keep it running, and watch it, for ever."""
        pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        try:
            async with background_tasks(must_not_end(self.fleet.run())):
                while True:
                    try:
                        await self._watch()
                    except ExternalError as exc:
                        log.warning("fleet.failed", group=self.group, reason=str(exc))
                        await asyncio.sleep(pause.next())
                    else:
                        pause.reset()
                        await asyncio.sleep(WATCH_S)
        finally:
            self.fleet.detach()
            self._wanted = None

    async def _watch(self) -> None:
        found = await self.running()
        if self._wanted is None:
            await self.scale(len(found))
        self._since = {slot: self._since.get(slot, loop_s()) for slot in sorted(found)}
        self.fleet.update_ready(self._since)


@dataclass
class LocalTargets:
    """The targets of the settings' groups."""

    targets: dict[str, Target] = field(default_factory=dict)
    workloads: list[FleetWorkload] = field(default_factory=list)

    def add(self, chosen: LocalGroupSettings, workload: FleetWorkload) -> None:
        """Add a group."""
        key = f"local/{chosen.group}"
        self.targets[key] = Target(key, chosen.config(), workload)
        self.workloads.append(workload)

    async def run(self) -> None:
        """Keep the replicas of all groups running, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for workload in self.workloads:
                tasks.create_task(must_not_end(workload.run()))


@contextlib.asynccontextmanager
async def local_targets(settings: Settings) -> AsyncIterator[LocalTargets]:
    """Give the groups that the settings describe.

    Raises:
        SettingsError: A group has an image, and there is no engine, or it may not be used.
        EngineUnavailable: The engine does not respond.
    """
    found = LocalTargets()
    async with contextlib.AsyncExitStack() as stack:
        groups = settings.scaler.groups
        engine, network = None, None
        if any(each.image for each in groups):
            docker = settings.docker
            engine = await stack.enter_async_context(
                open_engine(docker.socket, docker.request_timeout_s)
            )
            own = await own_container(engine)
            network = own["HostConfig"]["NetworkMode"] if own else None
        for each in groups:
            if each.image is None or engine is None:
                found.add(each, process_workload(each))
            else:
                found.add(each, container_workload(each, settings, engine, network))
        yield found


def process_workload(chosen: LocalGroupSettings) -> FleetWorkload:
    """Return the workload of a group whose replicas are processes."""
    fleet = ProcessFleet(
        command=lambda slot: [part.replace(REPLICA, str(slot)) for part in chosen.command],
        max_slots=_most(chosen),
        environment={**os.environ, **_variables(chosen)},
        logs=chosen.logs,
        grace_s=chosen.grace_s,
    )

    async def running() -> Collection[Slot]:
        return fleet.running()

    return FleetWorkload(chosen.group, fleet, running)


def container_workload(
    chosen: LocalGroupSettings, settings: Settings, engine: Engine, network: str | None
) -> FleetWorkload:
    """Return the workload of a group whose replicas are containers."""
    assert chosen.image is not None
    project = settings.docker.project or DEFAULT_PROJECT
    spec = ContainerSpec(
        # A project of its own: other groups' containers are none of its leftovers.
        project=resource_name(f"{project}-scaled-{chosen.group}"),
        group=resource_name(chosen.group),
        image=chosen.image,
        network=chosen.network or network,
        environment=_variables(chosen),
        grace_s=chosen.grace_s,
        command=tuple(part.replace(REPLICA, SLOT) for part in chosen.command),
    )
    timing = Timing(pull_s=settings.docker.pull_timeout_s)
    fleet = DockerFleet(engine, spec, _most(chosen), timing)
    return FleetWorkload(chosen.group, fleet, fleet.running)


def _variables(chosen: LocalGroupSettings) -> dict[str, str]:
    return dict(each.split("=", 1) for each in chosen.environment)


def _most(chosen: LocalGroupSettings) -> int:
    """Return the most replicas of any time."""
    others = (each.max_replicas or each.min_replicas or 0 for each in chosen.schedules)
    return max([chosen.max_replicas, *others])
