"""Leads the groups of all ConsumerGroup objects: a `Leadership` and a fleet for each object."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from binwright.controller.fleets.kubernetes.cluster import NamespaceObjects, open_clusters
from binwright.controller.fleets.kubernetes.deployment import DeploymentSpec
from binwright.controller.fleets.kubernetes.fleet import KubernetesFleet
from binwright.controller.fleets.kubernetes.template import Template, check_template
from binwright.controller.fleets.kubernetes.template_patch import check_patch, patched
from binwright.controller.group_context import group_context
from binwright.controller.group_objects.admission import (
    Admission,
    Admitted,
    Key,
    NamespaceLimits,
    RefusedObject,
    capped,
)
from binwright.controller.group_objects.allowed import check_allowed
from binwright.controller.group_objects.plan_events import (
    PlanEvents,
    handle_annotation,
    shown_proposal,
)
from binwright.controller.group_objects.spec import (
    API_VERSION,
    KIND,
    PLURAL,
    environment,
    given_settings,
    group_name,
    secrets_in,
    settings_of,
)
from binwright.controller.group_objects.status import group_status, health_condition
from binwright.controller.leadership import Leadership
from binwright.controller.settings import ControllerProgramSettings
from binwright.kafka.election import LeadershipLost
from binwright.kafka.metrics_topic import Measurements
from binwright.kubernetes.connection import watched_namespaces
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.objects import (
    Obj,
    Owner,
    collection_path,
    key_of,
    name_of,
    namespace_of,
)
from binwright.kubernetes.status import Condition, StatusWriter
from binwright.protocol.errors import ClusterUnavailable, ExternalError, SettingsError, UserError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.backoff import Backoff
from binwright.runtime.health import Health
from binwright.runtime.logs import log
from binwright.runtime.metrics import Sample
from binwright.runtime.run import background_tasks, must_not_end, root_cause
from binwright.runtime.settings.group import Settings
from binwright.runtime.traces import Trace, untraced

LIST_FAILED = LogEvent.warning(
    "list.failed",
    "The ConsumerGroups of a namespace cannot be listed yet; those of the others are run.",
)
GROUP_RELEASED = LogEvent.info(
    "group.released",
    "A ConsumerGroup is no longer run: it was deleted, or another object has its group.",
)
GROUP_STARTED = LogEvent.info("group.started", "A ConsumerGroup is run from now on.")
GROUP_REFUSED = LogEvent.warning(
    "group.refused", "A ConsumerGroup cannot be run; its status has the same reason."
)
GROUP_FAILED = LogEvent.error(
    "group.failed",
    "Running a ConsumerGroup failed unexpectedly; it is tried again, the others go on.",
)
LEADERSHIP_ENDED = LogEvent.warning(
    "leadership.ended",
    "Leading a ConsumerGroup ended with an error; it is tried again after a pause.",
)
GROUP_LIMITED = LogEvent.warning(
    "group.limited", "A ConsumerGroup may not have all that it asks for: a limit of its namespace."
)

ROOT = f"/apis/{API_VERSION}"
RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
REFUSED_S = 30.0
STATUS_S = 2.0
GATHER_S = 0.1

Identity = tuple[str, int]
"""Of an object: its uid and generation, which its status and annotations leave unchanged."""


@dataclass
class _Active:
    """An object that is led, or refused."""

    identity: Identity
    admission: Admission
    task: "asyncio.Task[None]"


@dataclass(frozen=True)
class _View:
    """One namespace, or all of them, with its ConsumerGroup objects."""

    cluster: NamespaceObjects
    objects: Informer


@dataclass
class Groups:
    """All groups of some namespaces, led while this process is the leader."""

    clusters: Sequence[NamespaceObjects]  # one for each namespace; a failing one delays no other
    bus: ControlTopics
    measurements: Measurements
    base: ControllerProgramSettings
    health: Health | None = None
    trace: Trace = untraced
    _active: dict[Key, _Active] = field(default_factory=dict)
    _seen: dict[Key, Identity] = field(default_factory=dict)
    _fleets: list[KubernetesFleet] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Create informers of the objects; `follow` reads them."""
        self._limits = NamespaceLimits(self.base)
        self._views = [
            _View(cluster, Informer(cluster.api, collection_path(ROOT, cluster.namespace, PLURAL)))
            for cluster in self.clusters
        ]
        for view in self._views:
            view.objects.add_handler(partial(self._handle_change, view.objects))

    def _handle_change(self, objects: Informer, obj: Obj) -> None:
        """Look at all objects again, but not for each status that is written to one of many."""
        key = key_of(obj)
        present = objects.get(*key)
        identity = None if present is None else _identity(present)
        if self._seen.get(key) == identity:
            return
        self._changed.set()
        if identity is None:
            del self._seen[key]
        else:
            self._seen[key] = identity

    async def follow(self) -> None:
        """Watch the objects, for ever, also while another process leads."""
        async with asyncio.TaskGroup() as tasks:
            for view in self._views:
                tasks.create_task(must_not_end(view.objects.run()))

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of all fleets, and of what the limits of namespaces keep from them."""
        for fleet in self._fleets:
            yield from fleet.samples()
        yield from self._limits.samples()

    def is_active(self, namespace: str, name: str) -> bool:
        """Whether an object is led, or refused."""
        return (namespace, name) in self._active

    async def lead(self) -> None:
        """Lead the group of each object, for ever; until cancelled.

        Raises:
            ClusterUnavailable: The objects of no namespace could be listed.
        """
        await self._wait_for_lists()
        self._active.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._changed.clear()
                    await self._start_and_stop(tasks)
                    await self._changed.wait()
                    await asyncio.sleep(GATHER_S)
        finally:
            self._limits.clear()

    async def _wait_for_lists(self) -> None:
        """Wait until the objects are listed; those of a namespace that is late are added later."""
        faults: list[ClusterUnavailable] = []
        for view in self._views:
            try:
                await view.objects.ready(0.0 if faults else view.cluster.patience_s)
            except ClusterUnavailable as exc:
                log(LIST_FAILED, reason=str(exc))
                faults.append(exc)
        if len(faults) == len(self._views):
            raise faults[0]

    async def _start_and_stop(self, tasks: asyncio.TaskGroup) -> None:
        present = {key_of(obj): (view.cluster, obj) for view in self._views for obj in view.objects}
        admitted = self._limits.admissions([obj for _, obj in present.values()])
        ended = []
        for key, active in list(self._active.items()):
            wanted = present.get(key)
            same = wanted is not None and active.identity == _identity(wanted[1])
            if not same or active.admission != admitted[key]:
                active.task.cancel()
                ended.append(active.task)
                del self._active[key]
                log(GROUP_RELEASED, namespace=key[0], name=key[1], deleted=wanted is None)
        await asyncio.gather(*ended, return_exceptions=True)  # together: none waits for another
        self._limits.apply(admitted)  # now that nobody uses what was admitted before
        for key, (cluster, obj) in present.items():
            if key not in self._active and not obj["metadata"].get("deletionTimestamp"):
                group, admission = group_name(obj), admitted[key]
                log(GROUP_STARTED, namespace=key[0], name=key[1], group=group)
                work = (
                    self._refuse(obj, admission.reason, admission.text)
                    if isinstance(admission, RefusedObject)
                    else self._run_group(cluster, obj, admission)
                )
                task = tasks.create_task(work)
                self._active[key] = _Active(_identity(obj), admission, task)

    def _object(self, owner: Owner) -> Obj | None:
        """Return an object as last seen."""
        objects = (view.objects.get(owner.namespace, owner.name) for view in self._views)
        return next((obj for obj in objects if obj is not None), None)

    def _writer(self, obj: Obj) -> StatusWriter:
        path = f"{collection_path(ROOT, namespace_of(obj), PLURAL)}/{name_of(obj)}"
        generation = obj["metadata"]["generation"]
        return StatusWriter(self._shared.api, path, generation, obj.get("status", {}))

    @property
    def _shared(self) -> NamespaceObjects:
        """Return any of the clusters: they share the connection and the Events."""
        return self.clusters[0]

    async def _refuse(self, obj: Obj, reason: str, text: str) -> None:
        """Report why the object's group is not led; a change of the object is tried again."""
        owner = Owner.from_object(obj, API_VERSION, KIND)
        log(GROUP_REFUSED, namespace=owner.namespace, name=owner.name, reason=text)
        self._shared.recorder.note(owner, reason, text, warning=True)
        refused = Condition("Accepted", holds=False, reason=reason, message=text)
        unready = Condition("Ready", holds=False, reason=reason, message=text)
        await self._writer(obj).write_or_log({"state": "Refused"}, refused, unready)

    async def _run_group(self, cluster: NamespaceObjects, obj: Obj, admission: Admitted) -> None:
        """Run one object's group; an unexpected error in it must not end other groups."""
        pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                await self._lead_repeatedly(cluster, obj, admission)
            except Exception as exc:  # noqa: BLE001 - shown on the object
                cause = root_cause(exc)
                log(GROUP_FAILED, namespace=namespace_of(obj), name=name_of(obj), exc_info=True)
                text = f"{type(cause).__name__}: {cause}; the controller's log has the traceback"
                await self._refuse(obj, "ControllerFault", text)
            else:
                return  # refused, until the object changes
            await asyncio.sleep(pause.next())

    async def _lead_repeatedly(
        self, cluster: NamespaceObjects, obj: Obj, admission: Admitted
    ) -> None:
        """Lead one object's group, again and again, until cancelled; return if it is refused."""
        try:
            # In a thread: other groups go on meanwhile, however much an object has to be read.
            settings, given = await asyncio.to_thread(_read, obj, self.base)
            context = capped(group_context(settings, given, self.trace), admission.consumers)
        except UserError as exc:
            await self._refuse(obj, "SpecRefused", str(exc))
            return
        owner, writer = Owner.from_object(obj, API_VERSION, KIND), self._writer(obj)
        events = PlanEvents(cluster.recorder, owner, writer.was.get("lastPlan"))
        spec = DeploymentSpec(settings.group, owner.namespace, owner, environment(settings))
        template = self._template_of(cluster, obj)
        # Not what is admitted: consumers beyond that may still have to hand over what they read.
        fleet = KubernetesFleet(
            cluster,
            spec,
            settings.controller.max_slots,
            template,
            moves=settings.controller.mode != "observe",
        )
        self._fleets.append(fleet)
        try:
            async with background_tasks(must_not_end(fleet.run())):
                while True:
                    share = self._limits.share(key_of(obj))
                    controller = Leadership(
                        self.bus,
                        fleet,
                        context,
                        self.measurements,
                        events.observe,
                        self.health,
                        share,
                    )
                    try:
                        await self._lead_once(controller, fleet, events, writer, admission)
                    except UserError as exc:
                        await self._refuse(obj, "TopicRefused", str(exc))
                        await asyncio.sleep(REFUSED_S)  # the topic may be corrected meanwhile
                    fleet.detach()
                    await asyncio.sleep(RETRY_S)
        finally:
            self._fleets.remove(fleet)
            fleet.close()

    def _template_of(
        self, cluster: NamespaceObjects, obj: Obj
    ) -> Callable[[], Awaitable[Template]] | None:
        """Return a function that returns the object's own template; None: the ConfigMap's."""
        template = obj["spec"].get("template")
        if template is None:
            return None
        origin = f"ConsumerGroup {name_of(obj)}, spec.template"
        settings = self.base.kubernetes

        async def own() -> Template:
            if settings.templates == "any":
                return check_template(template, origin)
            check_patch(template, origin, settings)  # first: it is refused without a ConfigMap, too
            return patched(await cluster.template(namespace_of(obj)), template, origin)

        return own

    async def _lead_once(
        self,
        controller: Leadership,
        fleet: KubernetesFleet,
        events: PlanEvents,
        writer: StatusWriter,
        admission: Admitted,
    ) -> None:
        """Lead until leadership is lost or an external error ends it, and log which."""
        updating = self._update_status(controller, fleet, events, writer, admission)
        try:
            async with background_tasks(must_not_end(updating)):
                await controller.lead()
        except Exception as exc:
            cause = root_cause(exc)
            if isinstance(cause, UserError):
                raise cause from exc
            if not isinstance(cause, LeadershipLost | ExternalError):
                raise
            log(LEADERSHIP_ENDED, path=writer.path, reason=str(cause))

    async def _update_status(
        self,
        controller: Leadership,
        fleet: KubernetesFleet,
        events: PlanEvents,
        writer: StatusWriter,
        admission: Admitted,
    ) -> None:
        """Keep the object's status up to date and handle its approve annotation, for ever."""
        accepted = Condition("Accepted", holds=True, reason="SpecHolds")
        approvals, owner = writer.approvals, events.owner
        within = True
        while True:
            state = controller.state
            if refused := handle_annotation(approvals, self._object(owner), controller):
                self._shared.recorder.note(owner, "ApprovalRefused", refused, warning=True)
            approvals.proposal = shown_proposal(state.group.people.proposal, approvals.proposal)
            numbers, ready, measured = group_status(state, asyncio.get_running_loop().time())
            if events.last_plan is not None:
                numbers["lastPlan"] = events.last_plan
            health = health_condition(fleet.troubles, fleet.refusals)
            limits = self._limits.condition((owner.namespace, owner.name), admission)
            if within and not limits.holds:
                log(
                    GROUP_LIMITED,
                    namespace=owner.namespace,
                    name=owner.name,
                    reason=limits.message,
                )
                self._shared.recorder.note(owner, limits.reason, limits.message, warning=True)
            within = limits.holds
            await writer.write_or_log(numbers, accepted, ready, measured, health, limits)
            await asyncio.sleep(STATUS_S)


def _identity(obj: Obj) -> Identity:
    """Return what, when it changes, makes the object be led afresh."""
    return obj["metadata"]["uid"], obj["metadata"]["generation"]


@contextlib.asynccontextmanager
async def kubernetes_groups(
    settings: ControllerProgramSettings,
    bus: ControlTopics,
    measurements: Measurements,
    health: Health | None = None,
    trace: Trace = untraced,
) -> AsyncIterator[Groups]:
    """Give the groups that objects describe, in our namespace or those of the settings.

    The objects are watched meanwhile.

    Raises:
        SettingsError: The fleet is not `kubernetes`, or the settings hold a secret that would be
            written into the consumers' Deployments.
    """
    if settings.controller.fleet != "kubernetes":
        raise SettingsError('kubernetes.groups needs controller.fleet = "kubernetes"')
    if secrets := secrets_in(settings):
        raise SettingsError(f"kubernetes.groups: {'; '.join(secrets)}")
    namespaces = watched_namespaces(settings.kubernetes)
    async with open_clusters(settings.kubernetes, namespaces) as clusters:
        groups = Groups(clusters, bus, measurements, settings, health, trace)
        async with background_tasks(must_not_end(groups.follow())):
            yield groups


def _read(obj: Obj, base: ControllerProgramSettings) -> tuple[Settings, frozenset[str]]:
    """Return an object's settings, and which of the controller's it gives itself.

    Raises:
        SettingsError: They do not hold, or are not allowed.
    """
    settings = settings_of(obj, base)
    check_allowed(settings, base, namespace_of(obj))
    return settings, given_settings(obj)
