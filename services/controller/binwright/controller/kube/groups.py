"""One controller for the ConsumerGroup objects of namespaces: a machine and a fleet for each."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from binwright.controller.fleets.kubernetes import KubernetesFleet
from binwright.controller.kube.announce import observer
from binwright.controller.kube.api import NOT_FOUND, Obj, collection
from binwright.controller.kube.cluster import Cluster
from binwright.controller.kube.deployment import Owner, Shape, Template, checked
from binwright.controller.kube.mirror import Mirror, key_of, name_of, namespace_of
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
from binwright.core.errors import (
    BinwrightError,
    ClusterRefused,
    ClusterUnavailable,
    UserError,
    WorldError,
)
from binwright.core.ports import Bus
from binwright.shell.gauges import Sample
from binwright.shell.pauses import Pause
from binwright.shell.run import endless, first_cause, meanwhile
from binwright.shell.settings import Settings

log = structlog.get_logger()

ROOT = f"/apis/{API_VERSION}"
RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
REFUSED_S = 30.0
STATUS_S = 2.0
GATHER_S = 0.1

Key = tuple[str, str]
"""Of an object: its namespace and name."""


@dataclass
class _Ruled:
    """One object at work."""

    identity: tuple[int, str, Key]
    task: "asyncio.Task[None]"


@dataclass(frozen=True)
class _View:
    """A namespace, or all of them, with the objects there."""

    cluster: Cluster
    objects: Mirror


@dataclass
class Groups:
    """All groups of some namespaces, ruled while this controller leads."""

    clusters: Sequence[Cluster]  # what is wrong with one holds up no other
    bus: Bus
    measurements: Measurements
    base: Settings
    _ruled: dict[Key, _Ruled] = field(default_factory=dict)
    _fleets: list[KubernetesFleet] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Have views of the objects; nothing is read yet."""
        self._views = [
            _View(each, Mirror(each.api, collection(ROOT, each.namespace, PLURAL)))
            for each in self.clusters
        ]
        for view in self._views:
            view.objects.listen(lambda _: self._changed.set())

    async def follow(self) -> None:
        """Follow the objects, for ever, also while another leads."""
        async with asyncio.TaskGroup() as tasks:
            for view in self._views:
                tasks.create_task(endless(view.objects.run()))

    def samples(self) -> Iterator[Sample]:
        """Yield the numbers of all fleets."""
        for fleet in self._fleets:
            yield from fleet.samples()

    async def rule(self) -> None:
        """Rule every object there is, for ever; end all reigns when cancelled.

        Raises:
            ClusterUnavailable: The objects of no namespace could be listed.
        """
        await self._listed()
        self._ruled.clear()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                await self._look(tasks)
                await self._changed.wait()
                await asyncio.sleep(GATHER_S)

    async def _listed(self) -> None:
        """Wait until the objects are known; those of a namespace that is late are taken later."""
        faults: list[ClusterUnavailable] = []
        for view in self._views:
            try:
                await view.objects.ready(0.0 if faults else view.cluster.patience_s)
            except ClusterUnavailable as exc:
                log.warning("groups.unlisted", reason=str(exc))
                faults.append(exc)
        if len(faults) == len(self._views):
            raise faults[0]

    async def _look(self, tasks: asyncio.TaskGroup) -> None:
        there = {key_of(obj): (view.cluster, obj) for view in self._views for obj in view.objects}
        first: dict[str, Key] = {}  # group -> the oldest object that names it
        for _, obj in sorted(there.values(), key=_age):
            first.setdefault(group_name(obj), key_of(obj))
        for key, ruled in list(self._ruled.items()):
            found = there.get(key)
            if found is None or ruled.identity != _identity(found[1], first):
                ruled.task.cancel()
                await asyncio.gather(ruled.task, return_exceptions=True)
                del self._ruled[key]
                log.info("group.left", namespace=key[0], name=key[1], deleted=found is None)
        for key, (cluster, obj) in there.items():
            if key not in self._ruled and not obj["metadata"].get("deletionTimestamp"):
                group = group_name(obj)
                log.info("group.ruled", namespace=key[0], name=key[1], group=group)
                owner = first[group]
                work = self._alone(cluster, obj) if owner == key else self._refused(obj, owner)
                self._ruled[key] = _Ruled(_identity(obj, first), tasks.create_task(work))

    def _found(self, owner: Owner) -> Obj | None:
        """Return an object as it is now."""
        found = (view.objects.get(owner.namespace, owner.name) for view in self._views)
        return next((obj for obj in found if obj is not None), None)

    def _writer(self, obj: Obj) -> StatusWriter:
        path = f"{collection(ROOT, namespace_of(obj), PLURAL)}/{name_of(obj)}"
        status: Obj = obj.get("status", {})
        generation = obj["metadata"]["generation"]
        return StatusWriter(self._shared.api, path, generation, status, status.get("lastPlan"))

    @property
    def _shared(self) -> Cluster:
        """Return any view: the connection and the Events are one for all."""
        return self.clusters[0]

    async def _refused(self, obj: Obj, owner: Key) -> None:
        # Topics, offsets and tables are Kafka's and the lake's: they know no namespaces.
        told = (
            f"group {group_name(obj)} is ruled by the ConsumerGroup {'/'.join(owner)}; for another "
            "group, make this object anew with a name of its own in spec.group"
        )
        await self._refuse(obj, "GroupTaken", told)

    async def _refuse(self, obj: Obj, reason: str, told: str) -> None:
        """Say why the object is not ruled; it is looked at again when it changes."""
        owner = Owner.of(obj, API_VERSION, KIND)
        log.warning("group.refused", namespace=owner.namespace, name=owner.name, reason=told)
        self._shared.recorder.note(owner, reason, told, warning=True)
        refused = Condition("Accepted", holds=False, reason=reason, message=told)
        unready = Condition("Ready", holds=False, reason=reason, message=told)
        await _written(self._writer(obj), {"state": "Refused"}, refused, unready)

    async def _alone(self, cluster: Cluster, obj: Obj) -> None:
        """Govern, whatever goes wrong: a fault of ours in one group ends no other's work."""
        pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                await self._govern(cluster, obj)
            except Exception as exc:
                cause = first_cause(exc)
                log.exception("group.failed", namespace=namespace_of(obj), name=name_of(obj))
                told = f"{type(cause).__name__}: {cause}; the controller's log has the rest"
                await self._refuse(obj, "ControllerFault", told)
            else:
                return  # refused, until it changes
            await asyncio.sleep(pause.next())

    async def _govern(self, cluster: Cluster, obj: Obj) -> None:
        """Reign over one object's group, again and again, until cancelled."""
        try:
            settings = settings_of(obj, self.base)
            ruled = realm(settings)
        except UserError as exc:
            await self._refuse(obj, "SpecRefused", str(exc))
            return
        owner, writer = Owner.of(obj, API_VERSION, KIND), self._writer(obj)
        observe = observer(cluster.recorder, owner, writer)
        shape = Shape(settings.group, owner.namespace, owner, environment(settings))
        fleet = KubernetesFleet(cluster, shape, settings.controller.max_slots, _template_of(obj))
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
            if refused := writer.approvals.heed(self._found(owner), controller):
                self._shared.recorder.note(owner, "ApprovalRefused", refused, warning=True)
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


def _identity(obj: Obj, first: Mapping[str, Key]) -> tuple[int, str, Key]:
    """Return what makes a reign begin anew when it changes."""
    meta = obj["metadata"]
    return meta["generation"], meta["uid"], first[group_name(obj)]


def _age(found: tuple[Cluster, Obj]) -> tuple[str, Key]:
    return found[1]["metadata"]["creationTimestamp"], key_of(found[1])
