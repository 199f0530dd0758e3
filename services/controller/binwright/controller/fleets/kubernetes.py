"""Consumers as Deployments of one pod each, kept as they are wanted.

A Deployment keeps its pod alive by itself; this keeps the Deployments: made and retired in
parallel, repaired when somebody edits or deletes one, renewed one by one when the template changes.
What keeps a pod from running is told as an Event; the other slots go on.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

import structlog

from binwright.controller.fleets.keeping import (
    Order,
    Readiness,
    Refusals,
    all_of,
    keep,
    samples,
    within,
)
from binwright.controller.kube.api import Obj
from binwright.controller.kube.cluster import Cluster
from binwright.controller.kube.deployment import (
    GROUP_LABEL,
    SLOT_LABEL,
    STEADY_S,
    TEMPLATE_NOTE,
    Shape,
    Template,
    is_available,
    short,
    slot_of,
)
from binwright.controller.kube.ends import has_ended, tells_of_an_end
from binwright.controller.kube.mirror import Mirror, key_of, label_of, name_of, namespace_of
from binwright.controller.kube.trouble import Trouble, of_deployment, of_pod
from binwright.core.errors import ClusterRefused, TemplateRefused, WorldError
from binwright.core.model import Slot
from binwright.core.ports import Process
from binwright.shell.gauges import Sample

log = structlog.get_logger()

GATHER_S = 0.2  # changes come in swarms: one look for all of them
LOOK_AGAIN_S = 60.0  # although nothing changed


class KubernetesFleet:
    """A `Fleet` of one group's Deployments."""

    def __init__(
        self,
        cluster: Cluster,
        shape: Shape,
        max_slots: int,
        template: Callable[[], Template] | None = None,
    ) -> None:
        """Run `shape`'s slots in `cluster`, with the pods of `template` (else the ConfigMap's)."""
        self._cluster, self._shape, self._max_slots = cluster, shape, max_slots
        self._template = template or partial(cluster.template, shape.namespace)
        self._templates: dict[str, Template] = {}  # by digest, as seen in this life
        self._desired: frozenset[Slot] | None = None  # None: nobody has said, or we do not lead
        self._applied: dict[Slot, tuple[str, int]] = {}  # -> uid and generation as we left it
        self._troubles: dict[Slot, Trouble] = {}
        self._refused = Refusals(partial(self._tell, warning=True))  # of no slot: the template
        self._readiness = Readiness(STEADY_S)
        self._ended: Callable[[], None] | None = None
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()
        for mirror in (cluster.deployments, cluster.pods, cluster.templates):
            mirror.listen(self._heard)
        cluster.pods.listen(self._pod_heard)

    # --- the port ----------------------------------------------------------------------------

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""
        wanted = within(desired, self._max_slots)
        first, self._desired = self._desired is None, wanted
        try:
            for mirror in (self._cluster.deployments, self._cluster.pods, self._cluster.templates):
                await mirror.ready(self._cluster.patience_s)
            if first:
                self._name_leftovers()
            await self._look()
        except WorldError:
            self._changed.set()  # `run` makes up for it, as soon as the cluster is back
            raise

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`: also where the node does not answer any more."""
        path = self._path("pods")
        chosen = f"{GROUP_LABEL}={self._shape.short},{SLOT_LABEL}={slot}"
        for pod in (await self._cluster.api.get(path, labelSelector=chosen))["items"] or ():
            uid = pod["metadata"]["uid"]
            await self._cluster.api.delete(f"{path}/{name_of(pod)}", grace_s=0, uid=uid)
            self._tell("ConsumerKilled", f"{name_of(pod)} was declared dead", slot, warning=True)

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`."""
        self._ended = ended

    async def ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Fit `Fleet.ended`: by the pod of its host name, or because there is none any more."""
        pods = {
            slot: self._cluster.pods.get(self._shape.namespace, process.host)
            for slot, process in processes.items()
        }
        ended = [s for s, pod in pods.items() if pod is not None and has_ended(pod, processes[s])]
        missing = [
            slot
            for slot, pod in pods.items()
            if pod is None and processes[slot].host.startswith(f"{self._shape.name(slot)}-")
        ]
        gone = await asyncio.gather(*(self._is_gone(processes[slot].host) for slot in missing))
        return [*ended, *(slot for slot, is_gone in zip(missing, gone, strict=True) if is_gone)]

    async def _is_gone(self, name: str) -> bool:
        """Ask the API server itself: our view of it may not have come to a new pod yet."""
        chosen = {"fieldSelector": f"metadata.name={name}"}
        return not (await self._cluster.api.get(self._path("pods"), **chosen))["items"]

    def notice(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.notice`."""
        if self._readiness.notice(ready):
            self._changed.set()

    def rest(self) -> None:
        """Fit `Fleet.rest`."""
        self._desired = self._ended = None
        self._readiness.forget()
        self._applied.clear()

    def close(self) -> None:
        """Hear no more of the cluster."""
        self.rest()
        for mirror in (self._cluster.deployments, self._cluster.pods, self._cluster.templates):
            mirror.unlisten(self._heard)
        self._cluster.pods.unlisten(self._pod_heard)

    @property
    def troubles(self) -> dict[Slot, Trouble]:
        """Return what keeps slots from running, as known now."""
        return dict(self._troubles)

    @property
    def refusals(self) -> list[str]:
        """Return what Kubernetes or the template's faults do not let us do, in words."""
        return self._refused.reasons

    def samples(self) -> Iterator[Sample]:
        """Yield the fleet's numbers, while it is ours to keep."""
        if self._desired is not None:
            troubles = {slot: trouble.reason for slot, trouble in self._troubles.items()}
            yield from samples(self._shape.group, len(self._desired), len(self.refusals), troubles)

    # --- keeping -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the slots as they are wanted, for ever."""
        await keep(
            self._look,
            self._changed,
            group=self._shape.group,
            every_s=LOOK_AGAIN_S,
            gather_s=GATHER_S,
        )

    def _path(self, kind: str) -> str:
        return self._cluster.path(kind, self._shape.namespace)

    def _heard(self, obj: Obj) -> None:
        here = namespace_of(obj) == self._shape.namespace
        if here and label_of(obj, GROUP_LABEL) in (self._shape.short, ""):  # "": the template
            self._changed.set()

    def _pod_heard(self, pod: Obj) -> None:
        here = namespace_of(pod) == self._shape.namespace
        if self._ended is None or not here or label_of(pod, GROUP_LABEL) != self._shape.short:
            return
        if tells_of_an_end(pod) or self._cluster.pods.get(*key_of(pod)) is None:
            self._ended()

    def _ours(self, mirror: Mirror) -> Iterator[tuple[Slot, Obj]]:
        for obj in mirror:
            slot, here = slot_of(obj), namespace_of(obj) == self._shape.namespace
            if here and slot is not None and label_of(obj, GROUP_LABEL) == self._shape.short:
                yield slot, obj

    async def _look(self) -> None:
        """Compare what is there with what is wanted, and give the orders that follow."""
        async with self._turn:
            if self._desired is None:
                return
            there = {
                slot: found
                for slot, found in self._ours(self._cluster.deployments)
                if not found["metadata"].get("deletionTimestamp")
            }
            self._diagnose(there)
            template = self._usable()  # first: what was found in it is what to repair by
            retired = [self._retire(slot) for slot in sorted(there.keys() - self._desired)]
            kept = {slot: there[slot] for slot in sorted(there.keys() & self._desired)}
            repaired = [
                self._apply(slot, known, found)
                for slot, found in kept.items()
                if self._applied.get(slot) != _generation(found)
                and (known := self._templates.get(_digest(found)))
            ]
            made: list[Order] = []
            if template is not None:
                missing = sorted(self._desired - there.keys())
                made = [self._apply(slot, template, None) for slot in missing]
                made += [self._apply(s, template, kept[s]) for s in self._next(kept, template)]
            await all_of([*made, *retired, *repaired])
            if template is None:  # what need not be is gone, what is there is kept
                raise TemplateRefused(self._refused.why(None))

    def _usable(self) -> Template | None:
        try:
            template = self._template()
        except TemplateRefused as exc:
            self._refused.note("TemplateRefused", str(exc), None)
            return None
        self._refused.clear(None)
        self._templates[template.digest] = template
        return template

    def _next(self, kept: Mapping[Slot, Obj], template: Template) -> list[Slot]:
        """Return who gets a changed template now.

        What does not run anyway goes at once. The rest goes one by one, each after all that have
        the new template run, and say so themselves: a template whose pods fail, or whose image is
        something else, stops at the first.
        """
        stale = [slot for slot, found in kept.items() if _digest(found) != template.digest]
        down = [s for s in stale if not kept[s].get("status", {}).get("readyReplicas")]
        if down:
            return down
        fresh = kept.keys() - set(stale)
        steady = all(is_available(kept[slot]) and self._readiness.steady(slot) for slot in fresh)
        return stale[:1] if steady else []

    async def _apply(self, slot: Slot, template: Template, found: Obj | None) -> None:
        path = f"{self._path('deployments')}/{self._shape.name(slot)}"
        try:
            obj = await self._cluster.api.apply(path, self._shape.deployment(slot, template))
        except ClusterRefused as exc:
            self._refused.note("DeploymentRefused", str(exc), slot)
            raise
        self._refused.clear(slot)
        known, self._applied[slot] = self._applied.get(slot), _generation(obj)
        if found is None or _digest(found) != template.digest:
            self._readiness.begun(slot)
        self._cluster.deployments.put(obj)
        match found:
            case None if known is None:
                self._tell("ConsumerCreated", name_of(obj), slot)
            case None:
                self._tell("ConsumerRestored", f"{name_of(obj)} was deleted", slot, warning=True)
            case _ if _digest(found) != template.digest:
                self._tell("ConsumerRenewed", f"by the template of {template.origin}", slot)
            case _ if known is not None and known != self._applied[slot]:
                self._tell("ConsumerRepaired", f"{name_of(obj)} was edited", slot, warning=True)

    async def _retire(self, slot: Slot) -> None:
        name = self._shape.name(slot)
        try:
            await self._cluster.api.delete(f"{self._path('deployments')}/{name}")
        except ClusterRefused as exc:
            self._refused.note("RetirementRefused", str(exc), slot)
            raise
        self._cluster.deployments.drop(self._shape.namespace, name)
        for memory in (self._applied, self._troubles):
            memory.pop(slot, None)
        self._refused.clear(slot)
        self._tell("ConsumerRetired", name, slot)

    # --- what people are told ------------------------------------------------------------------

    def _diagnose(self, there: Mapping[Slot, Obj]) -> None:
        """Tell what keeps pods from running, once for each reason, and when it is over."""
        pods = dict(self._ours(self._cluster.pods))
        for slot, deployment in there.items():
            pod = pods.get(slot)
            found = (of_pod(pod) if pod else None) or of_deployment(deployment)
            known = self._troubles.get(slot)
            if found and (known is None or known.reason != found.reason):
                self._tell(found.reason, found.message, slot, warning=True)
            if found:
                self._troubles[slot] = found
            elif known and is_available(deployment):  # between two crashes a pod runs, too
                del self._troubles[slot]
                self._tell("ConsumerRecovered", f"from {known.reason}", slot)
        self._troubles = {s: t for s, t in self._troubles.items() if s in there}

    def _name_leftovers(self) -> None:
        mine, here = self._shape.group, self._shape.namespace
        for group in sorted(self._cluster.leftovers(here, mine)):
            told = (
                f"group {group} has Deployments here that group {mine}'s controller does not run; "
                f"if nobody does: kubectl -n {here} delete deployment "
                f"-l {GROUP_LABEL}={short(group)}"
            )
            self._tell("LeftoversFound", told, None, warning=True)

    def _tell(self, event: str, text: str, slot: Slot | None, *, warning: bool = False) -> None:
        told = text if slot is None else f"slot {slot}: {text}"
        say = log.warning if warning else log.info
        say("fleet.told", what=event, group=self._shape.group, slot=slot, text=text)
        if self._shape.owner is not None:
            self._cluster.recorder.note(self._shape.owner, event, told, warning=warning)


def _generation(deployment: Obj) -> tuple[str, int]:
    """Return what changes whenever somebody edits the object, or makes it anew."""
    meta = deployment["metadata"]
    return meta["uid"], meta["generation"]


def _digest(deployment: Obj) -> str:
    digest: str = deployment["metadata"].get("annotations", {}).get(TEMPLATE_NOTE, "")
    return digest
