"""Groups of the settings: replicas are processes of this machine, or run by somebody else."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from binwright.fleets.process import ProcessFleet
from binwright.fleets.reconcile import FLEET_FAILED
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import Slot
from binwright.runtime.backoff import Backoff
from binwright.runtime.environment import clean_environment
from binwright.runtime.logs import log
from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.members import Members, number_of
from binwright.scaler.decide.sizing import WorkloadStatus
from binwright.scaler.passes import ScaledTarget
from binwright.scaler.settings import REPLICA, LocalGroupSettings, ScalerProgramSettings

WATCH_S = 2.0
RETRY_S, LONGEST_RETRY_S = 1.0, 30.0


@dataclass
class FleetWorkload:
    """A fleet as the workload of a group: replica i is slot i; see `ports.ScaledWorkload`."""

    group: str
    fleet: ProcessFleet
    _wanted: int | None = None  # None: not known yet what runs
    _running: Collection[Slot] = ()  # as last seen

    def status(self) -> WorkloadStatus | None:
        """Fit `ScaledWorkload.status`."""
        if self._wanted is None:
            return None
        return WorkloadStatus(replicas=self._wanted, ready=len(self._running))

    async def replicas_of(self, members: Members) -> Mapping[str, Replica]:
        """Fit `ScaledWorkload.replicas_of`: by the number at the end of a member's name.

        The name is its `group.instance.id`, else its `client.id`. Two of the same are not told
        apart, and nobody is by a number that no replica has.
        """
        numbers = {id_: number_of(one.instance or one.client) for id_, one in members.items()}
        count = Counter(numbers.values())
        return {
            id_: Replica(str(number), number)
            for id_, number in numbers.items()
            if number is not None and count[number] == 1 and number < (self._wanted or 0)
        }

    async def scale(self, replicas: int, ending: Collection[str] = ()) -> None:
        """Fit `ScaledWorkload.scale`: the highest numbers end."""
        del ending
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
                        log(FLEET_FAILED, group=self.group, reason=str(exc))
                        await asyncio.sleep(pause.next())
                    else:
                        pause.reset()
                        await asyncio.sleep(WATCH_S)
        finally:
            self.fleet.detach()
            self._wanted = None

    async def _watch(self) -> None:
        self._running = self.fleet.running()
        if self._wanted is None:
            await self.scale(len(self._running))


@dataclass
class LocalTargets:
    """The targets of the settings' groups."""

    targets: dict[str, ScaledTarget] = field(default_factory=dict)
    workloads: list[FleetWorkload] = field(default_factory=list)

    def add(self, group: LocalGroupSettings, workload: FleetWorkload | None) -> None:
        """Add a group; without a workload, somebody else runs its members."""
        key = f"local/{group.group}"
        self.targets[key] = ScaledTarget(key, group, workload)
        if workload is not None:
            self.workloads.append(workload)

    async def run(self) -> None:
        """Keep the replicas of all groups running, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for workload in self.workloads:
                tasks.create_task(must_not_end(workload.run()))


def local_targets(settings: ScalerProgramSettings) -> LocalTargets:
    """Return the groups that the settings describe."""
    targets = LocalTargets()
    for group in settings.scaler.groups:
        runs_here = FleetWorkload(group.group, process_fleet(group)) if group.command else None
        targets.add(group, runs_here)
    return targets


def process_fleet(group: LocalGroupSettings) -> ProcessFleet:
    """Return the fleet that runs a group's replicas."""
    variables = dict(each.split("=", 1) for each in group.environment)
    # At any time: schedules may allow more than the rest of the day.
    most = (each.max_replicas or each.min_replicas or 0 for each in group.schedules)
    return ProcessFleet(
        command=lambda slot: [part.replace(REPLICA, str(slot)) for part in group.command],
        max_slots=max([group.max_replicas, *most]),
        environment=lambda _: clean_environment(variables, pass_on=group.pass_on),
        logs=group.logs,
        grace_s=group.grace_s,
    )
