"""All ScaledGroup objects of some namespaces as targets, with their status, Events and approvals.

Of two objects that name the same workload the older one counts; the other is refused.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from binwright.kubernetes.connection import watched_namespaces
from binwright.kubernetes.limits import OVER_LIMIT, LimitSettings
from binwright.kubernetes.objects import Obj, Owner, age_of, key_of, now
from binwright.kubernetes.settings import namespace_refusal
from binwright.kubernetes.status import APPROVE_ANNOTATION, Condition, StatusWriter
from binwright.protocol.errors import UserError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.patterns import compile_patterns
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log
from binwright.runtime.metrics import Sample
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.sizing import approve
from binwright.scaler.objects.admission import NO_SIZE, Admission, Size
from binwright.scaler.objects.cluster import ObjectWorkload, ScaledCluster, open_scaled_cluster
from binwright.scaler.objects.spec import API_VERSION, KIND, WorkloadRef, config_from, workload_of
from binwright.scaler.objects.status import conditions_of, numbers_of, proposal_of, state_from
from binwright.scaler.passes import ScaledTarget
from binwright.scaler.settings import ScalerProgramSettings

SCALEDGROUP_RELEASED = LogEvent.info(
    "scaledgroup.released", "A ScaledGroup is no longer scaled: it was deleted."
)
SCALEDGROUP_STARTED = LogEvent.info("scaledgroup.started", "A ScaledGroup is scaled from now on.")
SCALEDGROUP_REFUSED = LogEvent.warning(
    "scaledgroup.refused", "A ScaledGroup is not scaled; its status has the same reason."
)

GATHER_S = 0.1
NUMBERS_S = 30.0
"""Least time between two writes of a status of which only numbers have changed."""
DECIDED = ("replicas", "wantedReplicas")
NUMBERS = frozenset(
    {"lag", "recordsPerSecond", "packing", "reasons", "replicaRecordsPerSecond", "learnt", "usage"}
)

Key = tuple[str, str]


@dataclass(eq=False)
class _Entry:
    """One object, accepted or refused."""

    obj: Obj
    owner: Owner
    writer: StatusWriter
    target: ScaledTarget | None = None
    wanted: tuple[WorkloadRef, ScaledGroupSettings] | None = None  # None: the spec does not hold
    fault: str = ""  # of the spec
    size: Size = NO_SIZE  # as last seen; a refused group is not looked at again
    refused: tuple[str, str] | None = None  # reason and text
    written_s: float = float("-inf")
    last_scaled: Obj | None = None
    noted: dict[str, str] = field(default_factory=dict)  # Event reason -> its text


class ScaledObjects:
    """The targets that objects describe; `follow` keeps them up to date and writes statuses."""

    def __init__(
        self,
        cluster: ScaledCluster,
        limits: LimitSettings,
        request_pass: Callable[[], None] = lambda: None,
        assigned_groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
        assigned: Collection[str] = (),
    ) -> None:
        """Call `request_pass` when an object is new or has changed.

        Args:
            cluster: Has the objects.
            limits: Of each namespace.
            request_pass: Asks for a pass over all groups.
            assigned_groups: Namespace -> patterns of the groups that may be assigned; empty: any.
            assigned: Groups of the settings that are assigned; they are not, by an object.
        """
        self.targets: dict[str, ScaledTarget] = {}
        self.request_pass = request_pass
        self._cluster, self._limits = cluster, limits
        self._assigned_groups, self._assigned = assigned_groups, assigned
        self._admission = Admission(limits)
        self._objects: dict[Key, _Entry] = {}
        self._dirty: dict[Key, None] = {}
        self._changed = asyncio.Event()
        for each in cluster.namespaces:
            each.objects.add_handler(lambda _: self._changed.set())

    async def follow(self) -> None:
        """Read the objects and write their statuses, for ever; begin with what statuses say."""
        self._objects.clear()
        self.targets.clear()
        self._changed.set()
        try:
            while True:
                await self._changed.wait()
                await asyncio.sleep(GATHER_S)
                self._changed.clear()
                self._read()
                dirty, self._dirty = list(self._dirty), {}
                # Each write has its deadline; a slow one delays the next round only.
                entries = [self._objects[key] for key in dirty if key in self._objects]
                await asyncio.gather(*map(self._write, entries))
        finally:
            self._admission = Admission(self._limits)  # this process scales no more

    def samples(self) -> Iterator[Sample]:
        """Yield what the limits of namespaces keep from their objects."""
        yield from self._admission.samples()

    def _read(self) -> None:
        present = {key_of(obj): obj for each in self._cluster.namespaces for obj in each.objects}
        for key in self._objects.keys() - present.keys():
            del self._objects[key]
            self.targets.pop("/".join(key), None)
            log(SCALEDGROUP_RELEASED, namespace=key[0], name=key[1], deleted=True)
        owners: dict[WorkloadRef, Key] = {}
        readers: dict[str, Key] = {}
        self._admission = Admission(self._limits)
        for obj in sorted(present.values(), key=age_of):
            key = key_of(obj)
            entry = self._objects.get(key)
            if entry is None or entry.owner.uid != obj["metadata"]["uid"]:
                entry = self._objects[key] = self._added(obj)
            self._accept(key, entry, obj, owners, readers)
            self._approve(key, entry)

    def _added(self, obj: Obj) -> _Entry:
        owner = Owner.from_object(obj, API_VERSION, KIND)
        status: Obj = obj.get("status", {})
        writer = StatusWriter(
            self._cluster.api, self._cluster.object_path(obj), obj["metadata"]["generation"], status
        )
        return _Entry({}, owner, writer, last_scaled=status.get("lastScaled"))

    def _assignment_refusal(
        self, key: Key, config: ScaledGroupSettings, readers: dict[str, Key]
    ) -> tuple[str, str] | None:
        """Return why an object's group is not assigned, as a reason and a text; None: it may be."""
        if not config.assigns:
            return None
        namespace, group, allowed = key[0], config.group, self._assigned_groups
        patterns = compile_patterns(allowed.get(namespace, ()))
        if allowed and not any(pattern.matches(group) for pattern in patterns):
            text = f"group {group}: not one of the namespace {namespace} (scaler.assigned_groups)"
            return "GroupRefused", text
        if group in self._assigned:
            return "GroupTaken", f"scaler.groups of the settings assigns the group {group}"
        if (other := readers.setdefault(group, key)) != key:
            return "GroupTaken", f"the ScaledGroup {'/'.join(other)} assigns the group {group}"
        return None

    def _accept(
        self,
        key: Key,
        entry: _Entry,
        obj: Obj,
        owners: dict[WorkloadRef, Key],
        readers: dict[str, Key],
    ) -> None:
        """Make or change the target of an object, or refuse the object."""
        generation = obj["metadata"]["generation"]
        changed = not entry.obj or entry.writer.generation != generation
        entry.obj, entry.writer.generation = obj, generation
        if changed:
            try:
                entry.wanted = workload_of(obj), config_from(obj["spec"], "the spec")
                entry.size = Size(len(entry.wanted[1].topics))
            except UserError as exc:
                entry.wanted, entry.fault = None, str(exc)
        if text := namespace_refusal(key[0]):
            self._refuse(key, entry, "NamespaceRefused", text)
            return
        if entry.wanted is None:
            self._refuse(key, entry, "SpecRefused", entry.fault)
            return
        ref, config = entry.wanted
        if (other := owners.setdefault(ref, key)) != key:
            text = f"{ref} is scaled by the ScaledGroup {'/'.join(other)}"
            self._refuse(key, entry, "WorkloadTaken", text)
            return
        if refusal := self._assignment_refusal(key, config, readers):
            self._refuse(key, entry, *refusal)
            return
        if text := self._admission.refusal(key[0], entry.size):
            self._refuse(key, entry, OVER_LIMIT, text)
            return
        entry.refused = None
        workload = ObjectWorkload(self._cluster, ref)
        if entry.target is None:
            target = ScaledTarget("/".join(key), config, workload)
            target.state = state_from(obj.get("status", {}), loop_s(), wall_ms() / 1000)
            target.on_change = lambda _, ordered: self._report(key, ordered)
            entry.target = self.targets[target.key] = target
            log(SCALEDGROUP_STARTED, namespace=key[0], name=key[1], group=config.group)
            self.request_pass()
        elif changed:
            entry.target.config, entry.target.workload = config, workload
            self.request_pass()

    def _refuse(self, key: Key, entry: _Entry, reason: str, text: str) -> None:
        if entry.refused == (reason, text):
            return
        entry.refused, entry.target = (reason, text), None
        self.targets.pop("/".join(key), None)
        log(SCALEDGROUP_REFUSED, namespace=key[0], name=key[1], reason=text)
        self._cluster.recorder.note(entry.owner, reason, text, warning=True)
        self._dirty[key] = None

    def _approve(self, key: Key, entry: _Entry) -> None:
        """Handle the approve annotation once."""
        target, approvals = entry.target, entry.writer.approvals
        if target is None or target.verdict is None:
            return
        try:
            number = approvals.number(entry.obj, "proposal")
            if number is None:
                return
            approvals.handled(entry.obj)
            target.state, refused = approve(target.config, target.state, number)
        except UserError as exc:
            refused = str(exc)
        if refused:
            self._cluster.recorder.note(entry.owner, "ApprovalRefused", refused, warning=True)
        else:
            self._cluster.recorder.note(entry.owner, "ChangeApproved", f"proposal {number}")
            self.request_pass()
        self._dirty[key] = None

    def _report(self, key: Key, ordered: int | None) -> None:
        """Note what has changed as Events, and have the status written."""
        entry = self._objects.get(key)
        if entry is None or (target := entry.target) is None:
            return
        if target.verdict is not None:
            entry.size = Size.of(target.verdict)
        note = self._cluster.recorder.note
        if ordered is not None and target.verdict is not None:
            before, reasons = target.verdict.current, list(target.verdict.reasons)
            entry.last_scaled = {"time": now(), "from": before, "to": ordered, "reasons": reasons}
            note(entry.owner, "Scaled", f"{before} to {ordered} replicas: {'; '.join(reasons)}")
        for reason, text in _notable(target).items():
            if text and entry.noted.get(reason) != text:
                note(entry.owner, reason, text, warning=reason != "ChangeProposed")
            entry.noted[reason] = text
        self._dirty[key] = None
        self._changed.set()

    async def _write(self, entry: _Entry) -> None:
        target = entry.target
        if target is None:
            reason, text = entry.refused or ("Refused", entry.fault)
            refused = Condition("Accepted", holds=False, reason=reason, message=text)
            await entry.writer.write_or_log({}, refused)
            return
        if target.verdict is not None:
            approvals = entry.writer.approvals
            approvals.proposal = proposal_of(target.verdict, approvals.proposal)
        numbers = numbers_of(target)
        if entry.last_scaled is not None:
            numbers["lastScaled"] = entry.last_scaled
        same = all(entry.writer.was.get(n) == numbers.get(n) for n in DECIDED)
        if same and loop_s() - entry.written_s < NUMBERS_S:
            numbers = {name: value for name, value in numbers.items() if name not in NUMBERS}
        else:
            entry.written_s = loop_s()
        accepted = Condition("Accepted", holds=True, reason="SpecHolds")
        await entry.writer.write_or_log(numbers, accepted, *conditions_of(target))


def _notable(target: ScaledTarget) -> Mapping[str, str]:
    """Return the texts of Events about a target, by their reasons; empty: nothing to note."""
    verdict = target.verdict
    if verdict is None:
        return {"Fault": target.fault}
    proposed = ""
    if verdict.proposal is not None and verdict.order is None and not verdict.blocked:
        proposed = f"proposal {verdict.proposal.number}: {verdict.proposal.replicas} replicas"
        if verdict.waits:
            proposed += f"; to approve: annotate {APPROVE_ANNOTATION}={verdict.proposal.number}"
    hot = ", ".join(map(str, verdict.hot))
    return {
        "Fault": target.problem,
        "AnotherOwner": "" if target.config.paused else verdict.blocked,
        "HotPartitions": f"faster than a replica: {hot}" if hot else "",
        "ChangeProposed": proposed,
    }


@contextlib.asynccontextmanager
async def scaled_objects(
    settings: ScalerProgramSettings, request_pass: Callable[[], None]
) -> AsyncIterator[ScaledObjects]:
    """Give the objects of our namespace, or of those of the settings; they are watched meanwhile.

    Raises:
        SettingsError: The settings do not say how to reach a cluster.
    """
    namespaces = watched_namespaces(settings.kubernetes)
    async with open_scaled_cluster(settings.kubernetes, namespaces) as cluster:
        yield ScaledObjects(
            cluster,
            settings.kubernetes.limits,
            request_pass,
            settings.scaler.assigned_groups,
            [each.group for each in settings.scaler.groups if each.assigns],
        )
