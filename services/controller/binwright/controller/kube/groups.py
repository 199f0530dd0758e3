"""One controller for all ConsumerGroup objects of a namespace: a machine and a fleet for each."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import structlog

from binwright.controller.fleets.kubernetes import KubernetesFleet
from binwright.controller.kube.announce import observer
from binwright.controller.kube.api import NOT_FOUND, Obj
from binwright.controller.kube.cluster import Cluster
from binwright.controller.kube.deployment import Owner, Shape, Template, checked
from binwright.controller.kube.mirror import Mirror, name_of
from binwright.controller.kube.spec import (
    API_VERSION,
    KIND,
    PLURAL,
    environment,
    group_name,
    settings_of,
)
from binwright.controller.kube.status import Condition, StatusWriter, described, healthy
from binwright.controller.measurements import Measurements
from binwright.controller.realm import realm
from binwright.controller.steer import Controller, Deposed
from binwright.core.errors import BinwrightError, ClusterRefused, UserError, WorldError
from binwright.core.ports import Bus
from binwright.shell.gauges import Sample
from binwright.shell.run import endless, first_cause, meanwhile
from binwright.shell.settings import Settings

log = structlog.get_logger()

RETRY_S = 1.0
REFUSED_S = 30.0
STATUS_S = 2.0
GATHER_S = 0.1


@dataclass
class _Ruled:
    """One object at work."""

    identity: tuple[int, str, str]
    task: "asyncio.Task[None]"


@dataclass
class Groups:
    """All groups of a namespace, ruled while this controller leads."""

    cluster: Cluster
    bus: Bus
    measurements: Measurements
    base: Settings
    _ruled: dict[str, _Ruled] = field(default_factory=dict)
    _fleets: list[KubernetesFleet] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Follow the objects from the beginning, also while another leads."""
        path = f"/apis/{API_VERSION}/namespaces/{self.cluster.namespace}/{PLURAL}"
        self.objects = Mirror(self.cluster.api, path)
        self.objects.listen(lambda _: self._changed.set())

    def samples(self) -> Iterator[Sample]:
        """Yield the numbers of all fleets."""
        for fleet in self._fleets:
            yield from fleet.samples()

    async def rule(self) -> None:
        """Rule every object there is, for ever; end all reigns when cancelled.

        Raises:
            ClusterUnavailable: The objects could not be listed.
        """
        await self.objects.ready(self.cluster.patience_s)
        self._ruled.clear()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                await self._look(tasks)
                await self._changed.wait()
                await asyncio.sleep(GATHER_S)

    async def _look(self, tasks: asyncio.TaskGroup) -> None:
        there = {name_of(obj): obj for obj in self.objects}
        first: dict[str, str] = {}  # group -> the oldest object that names it
        for obj in sorted(there.values(), key=_age):
            first.setdefault(group_name(obj), name_of(obj))
        for name, ruled in list(self._ruled.items()):
            found = there.get(name)
            if found is None or ruled.identity != _identity(found, first):
                ruled.task.cancel()
                await asyncio.gather(ruled.task, return_exceptions=True)
                del self._ruled[name]
                log.info("group.left", name=name, deleted=found is None)
        for name, obj in there.items():
            if name not in self._ruled and not obj["metadata"].get("deletionTimestamp"):
                log.info("group.ruled", name=name, group=group_name(obj))
                owner = first[group_name(obj)]
                work = self._refused(obj, owner) if owner != name else self._govern(obj)
                self._ruled[name] = _Ruled(_identity(obj, first), tasks.create_task(work))

    def _writer(self, obj: Obj) -> StatusWriter:
        path = f"{self.objects.path}/{name_of(obj)}"
        status: Obj = obj.get("status", {})
        return StatusWriter(
            self.cluster.api, path, obj["metadata"]["generation"], status, status.get("lastPlan")
        )

    async def _refused(self, obj: Obj, owner: str) -> None:
        told = f"group {group_name(obj)} is ruled by the ConsumerGroup {owner}"
        await self._refuse(obj, "GroupTaken", told)

    async def _refuse(self, obj: Obj, reason: str, told: str) -> None:
        """Say why the object is not ruled; it is looked at again when it changes."""
        owner = Owner.of(obj, API_VERSION, KIND)
        log.warning("group.refused", name=owner.name, reason=told)
        self.cluster.recorder.note(owner, reason, told, warning=True)
        refused = Condition("Accepted", holds=False, reason=reason, message=told)
        unready = Condition("Ready", holds=False, reason=reason, message=told)
        await _written(self._writer(obj), {"state": "Refused"}, refused, unready)

    async def _govern(self, obj: Obj) -> None:
        """Reign over one object's group, again and again, until cancelled."""
        try:
            settings = settings_of(obj, self.base)
            ruled = realm(settings)
        except UserError as exc:
            await self._refuse(obj, "SpecRefused", str(exc))
            return
        owner, writer = Owner.of(obj, API_VERSION, KIND), self._writer(obj)
        observe = observer(self.cluster.recorder, owner, writer)
        shape = Shape(settings.group, owner.namespace, owner, environment(settings))
        fleet = KubernetesFleet(
            self.cluster, shape, settings.controller.max_slots, _template_of(obj)
        )
        self._fleets.append(fleet)
        try:
            async with meanwhile(endless(fleet.run())):
                while True:
                    controller = Controller(self.bus, fleet, ruled, self.measurements, observe)
                    try:
                        await self._reign(controller, fleet, owner, writer)
                    except UserError as exc:
                        await self._refuse(obj, "TopicRefused", str(exc))
                        await asyncio.sleep(REFUSED_S)  # it may have been put right
                    fleet.rest()
                    await asyncio.sleep(RETRY_S)
        finally:
            self._fleets.remove(fleet)
            fleet.close()

    async def _reign(
        self, controller: Controller, fleet: KubernetesFleet, owner: Owner, writer: StatusWriter
    ) -> None:
        """Reign once; tell why it ended unless it is our own fault, or a person's."""
        try:
            async with meanwhile(endless(self._tell(controller, fleet, owner, writer))):
                await controller.reign()
        except Exception as exc:
            cause = first_cause(exc)
            if isinstance(cause, UserError):
                raise cause from exc
            if not isinstance(cause, Deposed | WorldError):
                raise
            log.warning("reign.ended", path=writer.path, reason=str(cause))

    async def _tell(
        self, controller: Controller, fleet: KubernetesFleet, owner: Owner, writer: StatusWriter
    ) -> None:
        """Keep the object's status as the group is, and heed what approves a plan, for ever."""
        accepted = Condition("Accepted", holds=True, reason="SpecHolds")
        while True:
            state = controller.state
            if refused := writer.approvals.heed(self.objects.get(owner.name), controller):
                self.cluster.recorder.note(owner, "ApprovalRefused", refused, warning=True)
            writer.approvals.show(state.group.offer)
            numbers, ready, measured = described(state, asyncio.get_running_loop().time())
            health = healthy(fleet.troubles, fleet.refusals)
            await _written(writer, numbers, accepted, ready, measured, health)
            await asyncio.sleep(STATUS_S)


async def _written(writer: StatusWriter, numbers: Obj, *conditions: Condition) -> None:
    try:
        await writer.write(numbers, *conditions)
    except ClusterRefused as exc:
        if exc.status != NOT_FOUND:  # else the object is on its way out
            log.warning("status.unwritten", path=writer.path, reason=str(exc))
    except BinwrightError as exc:
        log.warning("status.unwritten", path=writer.path, reason=str(exc))


def _template_of(obj: Obj) -> Callable[[], Template] | None:
    """Return how to get the object's own template; None: the ConfigMap's."""
    given = obj["spec"].get("template")
    if given is None:
        return None
    return lambda: checked(given, f"ConsumerGroup {name_of(obj)}, spec.template")


def _identity(obj: Obj, first: Mapping[str, str]) -> tuple[int, str, str]:
    """Return what makes a reign begin anew when it changes."""
    meta = obj["metadata"]
    return meta["generation"], meta["uid"], first[group_name(obj)]


def _age(obj: Obj) -> tuple[str, str]:
    return obj["metadata"]["creationTimestamp"], name_of(obj)
