"""The fleet of Deployments: reconciles one group's Deployments with the desired slots.

A Deployment keeps its pod running by itself. The fleet maintains the Deployments: it creates and
deletes them in parallel, and repairs one that was edited or deleted by hand. It reports which pods
will end with their nodes, or run by an older template: the controller has others take over, or lets
the fleet restart them one by one. What keeps a pod from running is reported as an Event.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from functools import partial

from binwright.controller.fleets.kubernetes.cluster import NamespaceObjects, open_cluster
from binwright.controller.fleets.kubernetes.deployment import (
    GROUP_LABEL,
    SLOT_LABEL,
    STEADY_S,
    DeploymentSpec,
    digest_of,
    is_available,
    resource_name,
    slot_of,
)
from binwright.controller.fleets.kubernetes.disruptions import find_disruptions, template_change
from binwright.controller.fleets.kubernetes.eviction_guard import EvictionGuard
from binwright.controller.fleets.kubernetes.pod_status import (
    Trouble,
    any_process_ended,
    deployment_trouble,
    has_ended,
    pod_trouble,
)
from binwright.controller.fleets.kubernetes.template import Template
from binwright.controller.settings import ControllerProgramSettings
from binwright.fleets.reconcile import (
    Operation,
    Readiness,
    Refusals,
    check_slots,
    log_report,
    reconcile_loop,
    run_all,
    samples,
)
from binwright.kubernetes.informer import Informer
from binwright.kubernetes.objects import Obj, key_of, label_of, name_of, namespace_of
from binwright.protocol.errors import ClusterRefused, ExternalError, TemplateRefused
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption, Process
from binwright.runtime.metrics import Sample
from binwright.runtime.run import background_tasks, must_not_end

GATHER_S = 0.2  # changes come in bursts: one round for all of them
REPEAT_S = 60.0  # without a change


class KubernetesFleet:
    """A `Fleet` of one group's Deployments."""

    def __init__(
        self,
        cluster: NamespaceObjects,
        spec: DeploymentSpec,
        max_slots: int,
        template: Callable[[], Awaitable[Template]] | None = None,
        *,
        moves: bool = True,
    ) -> None:
        """Run the slots of `spec` in `cluster`.

        Args:
            cluster: The connection, with the objects it watches.
            spec: What the Deployments are made from.
            max_slots: Only slots below this number are created.
            template: Returns the pod template, or raises `TemplateRefused`; None: the ConfigMap's.
            moves: Whether the controller replaces consumers before their nodes end.
        """
        self._cluster, self._spec, self._max_slots = cluster, spec, max_slots
        self._template = template or partial(cluster.template, spec.namespace)
        self._templates: dict[str, Template] = {}  # by digest, all that this process has seen
        self._desired: frozenset[Slot] | None = None  # None: unknown, or this process does not lead
        self._applied: dict[Slot, tuple[str, int]] = {}  # -> uid and generation after our change
        self._troubles: dict[Slot, Trouble] = {}
        self._refusals = Refusals(self._report)  # for all slots: of the template
        self._readiness = Readiness(STEADY_S)
        self._guard = EvictionGuard(cluster, spec, self._report, moves=moves)
        self._disruptions: dict[Slot, Disruption] = {}
        self._renewable: frozenset[Slot] = frozenset()
        self._on_end: Callable[[], None] | None = None
        self._changed = asyncio.Event()
        self._reconciling = asyncio.Lock()
        for informer in (cluster.deployments, cluster.pods, cluster.templates):
            informer.add_handler(self._handle_change)
        cluster.pods.add_handler(self._handle_pod)
        if cluster.nodes is not None:
            cluster.nodes.add_handler(self._handle_node)

    # --- the port ----------------------------------------------------------------------------

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""
        allowed = check_slots(desired, self._max_slots)
        first, self._desired = self._desired is None, allowed
        cluster = self._cluster
        try:
            for informer in (cluster.deployments, cluster.pods, cluster.templates):
                await informer.ready(cluster.patience_s)
            if first:
                self._report_leftovers()
            await self._reconcile()
        except ExternalError:
            self._changed.set()  # `run` reconciles as soon as the cluster is back
            raise

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`, even if the pod's node does not respond any more."""
        path = self._path("pods")
        selector = f"{GROUP_LABEL}={self._spec.resource_name},{SLOT_LABEL}={slot}"
        for pod in (await self._cluster.api.get(path, labelSelector=selector))["items"] or ():
            uid = pod["metadata"]["uid"]
            await self._cluster.api.delete(f"{path}/{name_of(pod)}", grace_s=0, uid=uid)
            self._report("ConsumerKilled", f"{name_of(pod)} was declared dead", slot, warning=True)

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`."""
        self._on_end = ended

    async def find_ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Fit `Fleet.find_ended`: from the pod of its host name, or because that pod is gone."""
        pods = {
            slot: self._cluster.pods.get(self._spec.namespace, process.host)
            for slot, process in processes.items()
        }
        ended = [s for s, pod in pods.items() if pod is not None and has_ended(pod, processes[s])]
        missing = [
            slot
            for slot, pod in pods.items()
            if pod is None and processes[slot].host.startswith(f"{self._spec.name(slot)}-")
        ]
        gone = await asyncio.gather(*(self._is_gone(processes[slot].host) for slot in missing))
        return [*ended, *(slot for slot, is_gone in zip(missing, gone, strict=True) if is_gone)]

    async def _is_gone(self, name: str) -> bool:
        """Whether the API server has no such pod; the informer may not have seen a new one yet."""
        selector = {"fieldSelector": f"metadata.name={name}"}
        return not (await self._cluster.api.get(self._path("pods"), **selector))["items"]

    def disruptions(self) -> Mapping[Slot, Disruption]:
        """Fit `Fleet.disruptions`: as of the last round."""
        return self._disruptions

    def renew(self, slots: Collection[Slot]) -> None:
        """Fit `Fleet.renew`."""
        self._renewable = frozenset(slots)
        self._changed.set()

    def update_ready(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.update_ready`."""
        if self._readiness.update_ready(ready):
            self._changed.set()

    def detach(self) -> None:
        """Fit `Fleet.detach`."""
        self._desired = self._on_end = None
        self._disruptions, self._renewable = {}, frozenset()
        self._readiness.forget()
        self._guard.forget()
        self._applied.clear()

    def close(self) -> None:
        """Detach, and remove the handlers from the cluster's informers."""
        self.detach()
        for informer in (self._cluster.deployments, self._cluster.pods, self._cluster.templates):
            informer.remove_handler(self._handle_change)
        self._cluster.pods.remove_handler(self._handle_pod)
        if self._cluster.nodes is not None:
            self._cluster.nodes.remove_handler(self._handle_node)

    @property
    def troubles(self) -> dict[Slot, Trouble]:
        """Return what keeps slots from running, as last seen."""
        return dict(self._troubles)

    @property
    def refusals(self) -> list[str]:
        """Return why Kubernetes refuses requests, and what is wrong with the template."""
        return [*self._refusals.reasons, *filter(None, [self._guard.refusal])]

    def samples(self) -> Iterator[Sample]:
        """Yield the fleet's metrics, while this process leads."""
        if self._desired is not None:
            troubles = {slot: trouble.reason for slot, trouble in self._troubles.items()}
            counts = len(self._desired), len(self.refusals)
            yield from samples(self._spec.group, *counts, troubles, self._disruptions)

    # --- reconciling ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the desired slots' Deployments as they should be, for ever."""
        await reconcile_loop(
            self._reconcile,
            self._changed,
            group=self._spec.group,
            every_s=REPEAT_S,
            gather_s=GATHER_S,
        )

    def _path(self, kind: str) -> str:
        return self._cluster.path(kind, self._spec.namespace)

    def _is_here(self, obj: Obj, *groups: str) -> bool:
        """Whether an object is in the namespace, with one of these values of the group label."""
        here = namespace_of(obj) == self._spec.namespace
        return here and label_of(obj, GROUP_LABEL) in groups

    def _handle_change(self, obj: Obj) -> None:
        if self._is_here(obj, self._spec.resource_name, ""):  # "": the template's ConfigMap
            self._changed.set()

    def _handle_pod(self, pod: Obj) -> None:
        if self._on_end is None or not self._is_here(pod, self._spec.resource_name):
            return
        if any_process_ended(pod) or self._cluster.pods.get(*key_of(pod)) is None:
            self._on_end()

    def _handle_node(self, _node: Obj) -> None:
        self._changed.set()

    def _of_group(self, informer: Informer) -> Iterator[tuple[Slot, Obj]]:
        for obj in informer:
            slot = slot_of(obj)
            if slot is not None and self._is_here(obj, self._spec.resource_name):
                yield slot, obj

    async def _reconcile(self) -> None:
        """Compare the Deployments with the desired slots, and run the operations that follow."""
        async with self._reconciling:
            template = await self._read_template()  # first: a repair may need it
            if self._desired is None:
                return
            present = {
                slot: deployment
                for slot, deployment in self._of_group(self._cluster.deployments)
                if not deployment["metadata"].get("deletionTimestamp")
            }
            self._diagnose(present)
            deletions = [self._retire(slot) for slot in sorted(present.keys() - self._desired)]
            kept = {slot: present[slot] for slot in sorted(present.keys() & self._desired)}
            repairs = [
                self._apply(slot, known, deployment)
                for slot, deployment in kept.items()
                if self._applied.get(slot) != _generation(deployment)
                and (known := self._templates.get(digest_of(deployment)))
                and self._spec.has_environment(deployment)
            ]
            updates: list[Operation] = []
            changes: dict[Slot, str] = {}
            if template is not None:
                missing = sorted(self._desired - present.keys())
                stale = [s for s, d in kept.items() if not self._spec.is_current(d, template)]
                # Those that do not run get the changed template at once.
                down = [s for s in stale if not kept[s].get("status", {}).get("readyReplicas")]
                updates = [self._apply(slot, template, kept.get(slot)) for slot in missing + down]
                changes = {s: template_change(kept[s], template) for s in stale if s not in down}
            self._disruptions = self._find_disruptions(kept, changes)
            if (slot := self._to_renew(kept)) is not None:
                updates.append(self._renew(slot, kept[slot], template))
            await run_all([*updates, *deletions, *repairs, self._guard.update()])
            if template is None:  # deletions and repairs are done; nothing else can be
                raise TemplateRefused(self._refusals.reason(None))

    async def _read_template(self) -> Template | None:
        try:
            template = await self._template()
        except TemplateRefused as exc:
            self._refusals.note("TemplateRefused", str(exc), None)
            return None
        self._refusals.clear(None)
        self._templates[template.digest] = template
        return template

    def _find_disruptions(
        self, kept: Mapping[Slot, Obj], changes: Mapping[Slot, str]
    ) -> dict[Slot, Disruption]:
        pods = [(slot, pod) for slot, pod in self._of_group(self._cluster.pods) if slot in kept]
        known, names = self._cluster.nodes, {pod["spec"].get("nodeName", "") for _, pod in pods}
        of_pods = (known.get("", name) for name in names) if known is not None else ()
        nodes = {name_of(node): node for node in of_pods if node is not None}
        return find_disruptions(pods, nodes, self._cluster.ending_taints, changes)

    def _to_renew(self, kept: Mapping[Slot, Obj]) -> Slot | None:
        """Return the slot that is restarted now: one, after all others run and are ready.

        So a template whose pods fail, or whose image is no consumer, stops at the first.
        """
        waiting = self._disruptions.keys() & self._renewable
        others = kept.keys() - self._disruptions.keys()
        if all(is_available(kept[slot]) and self._readiness.steady(slot) for slot in others):
            return min(waiting, default=None)
        return None

    async def _renew(self, slot: Slot, present: Obj, template: Template | None) -> None:
        """Restart a slot: by the changed template, or on another node."""
        if template is not None and not self._spec.is_current(present, template):
            await self._apply(slot, template, present)
            return
        self._readiness.mark_restarted(slot)
        reason = self._disruptions[slot].reason
        for at, pod in list(self._of_group(self._cluster.pods)):
            if at == slot:
                path, uid = f"{self._path('pods')}/{name_of(pod)}", pod["metadata"]["uid"]
                await self._cluster.api.delete(path, uid=uid)
        self._report("ConsumerRestarted", reason, slot)

    async def _apply(self, slot: Slot, template: Template, present: Obj | None) -> None:
        path = f"{self._path('deployments')}/{self._spec.name(slot)}"
        with self._refusals.noted(ClusterRefused, "DeploymentRefused", slot):
            obj = await self._cluster.api.apply(path, self._spec.deployment(slot, template))
        self._refusals.clear(slot)
        known, self._applied[slot] = self._applied.get(slot), _generation(obj)
        renewed = present is not None and not self._spec.is_current(present, template)
        if present is None or renewed:
            self._readiness.mark_restarted(slot)
        self._cluster.deployments.put(obj)
        match present:
            case None if known is None:
                self._report("ConsumerCreated", name_of(obj), slot)
            case None:
                self._report("ConsumerRestored", f"{name_of(obj)} was deleted", slot, warning=True)
            case _ if renewed:
                self._report("ConsumerRenewed", f"by the template of {template.origin}", slot)
            case _ if known is not None and known != self._applied[slot]:
                self._report("ConsumerRepaired", f"{name_of(obj)} was edited", slot, warning=True)

    async def _retire(self, slot: Slot) -> None:
        name = self._spec.name(slot)
        with self._refusals.noted(ClusterRefused, "RetirementRefused", slot):
            await self._cluster.api.delete(f"{self._path('deployments')}/{name}")
        self._cluster.deployments.drop(self._spec.namespace, name)
        self._applied.pop(slot, None)
        self._troubles.pop(slot, None)
        self._refusals.clear(slot)
        self._report("ConsumerRetired", name, slot)

    # --- reports -------------------------------------------------------------------------------

    def _diagnose(self, present: Mapping[Slot, Obj]) -> None:
        """Report what keeps pods from running, once for each reason, and that they recovered."""
        pods = dict(self._of_group(self._cluster.pods))
        for slot, deployment in present.items():
            pod = pods.get(slot)
            trouble = (pod_trouble(pod) if pod else None) or deployment_trouble(deployment)
            known = self._troubles.get(slot)
            if trouble and (known is None or known.reason != trouble.reason):
                self._report(trouble.reason, trouble.message, slot, warning=True)
            if trouble:
                self._troubles[slot] = trouble
            elif known and is_available(deployment):  # a pod also runs between two crashes
                del self._troubles[slot]
                self._report("ConsumerRecovered", f"from {known.reason}", slot)
        self._troubles = {s: t for s, t in self._troubles.items() if s in present}

    def _report_leftovers(self) -> None:
        ours, namespace = self._spec.group, self._spec.namespace
        for group in sorted(self._cluster.leftovers(namespace, ours)):
            text = (
                f"group {group} has Deployments here that group {ours}'s controller does not run; "
                f"if no other does: kubectl -n {namespace} delete deployment "
                f"-l {GROUP_LABEL}={resource_name(group)}"
            )
            self._report("LeftoversFound", text, None, warning=True)

    def _report(self, event: str, text: str, slot: Slot | None, *, warning: bool = False) -> None:
        log_report(self._spec.group, event, text, slot, warning=warning)
        if self._spec.owner is not None:
            message = text if slot is None else f"slot {slot}: {text}"
            self._cluster.recorder.note(self._spec.owner, event, message, warning=warning)


def _generation(deployment: Obj) -> tuple[str, int]:
    """Return uid and generation: they change when the object is edited or created again."""
    meta = deployment["metadata"]
    return meta["uid"], meta["generation"]


@contextlib.asynccontextmanager
async def kubernetes_fleet(settings: ControllerProgramSettings) -> AsyncIterator[KubernetesFleet]:
    """Give the fleet of Deployments that these settings describe; it is maintained meanwhile."""
    async with open_cluster(settings.kubernetes) as cluster:
        owner = await cluster.owner(settings.kubernetes.owner)
        spec = DeploymentSpec(settings.group, cluster.namespace, owner)
        moves = settings.controller.mode != "observe"
        fleet = KubernetesFleet(cluster, spec, settings.controller.max_slots, moves=moves)
        async with background_tasks(must_not_end(fleet.run())):
            yield fleet
