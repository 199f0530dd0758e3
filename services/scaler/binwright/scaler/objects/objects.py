"""All ScaledGroup objects of some namespaces as targets, with their status, Events and approvals.

Of two objects that name the same workload the older one counts; the other is refused.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from binwright.kubernetes.objects import Obj, Owner, key_of, now
from binwright.kubernetes.status import APPROVE_ANNOTATION, Condition, StatusWriter
from binwright.protocol.errors import UserError
from binwright.runtime.clock import loop_s, wall_ms
from binwright.scaler.decide.config import ScaledGroup
from binwright.scaler.decide.machine import approve
from binwright.scaler.objects.cluster import ScaledCluster
from binwright.scaler.objects.spec import API_VERSION, KIND, WorkloadRef, config_of, workload_of
from binwright.scaler.objects.status import conditions_of, numbers_of, proposal_of, state_from
from binwright.scaler.objects.workload import ObjectWorkload
from binwright.scaler.targets import Target

log = structlog.get_logger()

GATHER_S = 0.1
NUMBERS_S = 30.0
"""A status of which only numbers have changed is written so often at most."""
DECIDED = ("replicas", "wantedReplicas")
NUMBERS = frozenset({"lag", "recordsPerSecond", "packing", "reasons", "replicaRecordsPerSecond"})

Key = tuple[str, str]


@dataclass(eq=False)
class _Object:
    """One object, accepted or refused."""

    obj: Obj
    owner: Owner
    writer: StatusWriter
    target: Target | None = None
    wanted: tuple[WorkloadRef, ScaledGroup] | None = None  # None: the spec does not hold
    fault: str = ""  # of the spec
    refused: tuple[str, str] | None = None  # reason and text
    written_s: float = float("-inf")
    last_scaled: Obj | None = None
    noted: dict[str, str] = field(default_factory=dict)  # Event reason -> its text


class ScaledObjects:
    """The targets that objects describe; `follow` keeps them up to date and writes statuses."""

    def __init__(self, cluster: ScaledCluster, hurry: Callable[[], None] = lambda: None) -> None:
        """Call `hurry` when an object is new or has changed."""
        self.targets: dict[str, Target] = {}
        self.hurry = hurry
        self._cluster = cluster
        self._objects: dict[Key, _Object] = {}
        self._dirty: dict[Key, None] = {}
        self._changed = asyncio.Event()
        for each in cluster.namespaces:
            each.objects.add_handler(lambda _: self._changed.set())

    async def follow(self) -> None:
        """Read the objects and write their statuses, for ever; begin with what statuses say."""
        self._objects.clear()
        self.targets.clear()
        self._changed.set()
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_S)
            self._changed.clear()
            self._read()
            dirty, self._dirty = list(self._dirty), {}
            # Each write has its deadline; a slow one delays the next round only.
            found = [self._objects[key] for key in dirty if key in self._objects]
            await asyncio.gather(*map(self._write, found))

    def _read(self) -> None:
        present = {key_of(obj): obj for each in self._cluster.namespaces for obj in each.objects}
        for key in self._objects.keys() - present.keys():
            del self._objects[key]
            self.targets.pop("/".join(key), None)
            log.info("group.released", namespace=key[0], name=key[1], deleted=True)
        owners: dict[WorkloadRef, Key] = {}
        for key in sorted(present, key=lambda key: (_created(present[key]), key)):
            obj = present[key]
            found = self._objects.get(key)
            if found is None or found.owner.uid != obj["metadata"]["uid"]:
                found = self._objects[key] = self._added(obj)
            self._accept(key, found, obj, owners)
            self._approve(key, found)

    def _added(self, obj: Obj) -> _Object:
        owner = Owner.from_object(obj, API_VERSION, KIND)
        status: Obj = obj.get("status", {})
        writer = StatusWriter(
            self._cluster.api, self._cluster.object_path(obj), obj["metadata"]["generation"], status
        )
        return _Object({}, owner, writer, last_scaled=status.get("lastScaled"))

    def _accept(self, key: Key, found: _Object, obj: Obj, owners: dict[WorkloadRef, Key]) -> None:
        """Make or change the target of an object, or refuse the object."""
        generation = obj["metadata"]["generation"]
        changed = not found.obj or found.writer.generation != generation
        found.obj, found.writer.generation = obj, generation
        if changed:
            try:
                found.wanted, found.fault = (workload_of(obj), config_of(obj)), ""
            except UserError as exc:
                found.wanted, found.fault = None, str(exc)
        if found.wanted is None:
            self._refuse(key, found, "SpecRefused", found.fault)
            return
        ref, config = found.wanted
        if (other := owners.setdefault(ref, key)) != key:
            text = f"{ref} is scaled by the ScaledGroup {'/'.join(other)}"
            self._refuse(key, found, "WorkloadTaken", text)
            return
        found.refused = None
        workload = ObjectWorkload(self._cluster, ref)
        if found.target is None:
            target = Target("/".join(key), config, workload)
            target.state = state_from(obj.get("status", {}), loop_s(), wall_ms() / 1000)
            target.on_change = lambda _, ordered: self._report(key, ordered)
            found.target = self.targets[target.key] = target
            log.info("group.started", namespace=key[0], name=key[1], group=config.group)
            self.hurry()
        elif changed:
            found.target.config, found.target.workload = config, workload
            self.hurry()

    def _refuse(self, key: Key, found: _Object, reason: str, text: str) -> None:
        if found.refused == (reason, text):
            return
        found.refused, found.target = (reason, text), None
        self.targets.pop("/".join(key), None)
        log.warning("group.refused", namespace=key[0], name=key[1], reason=text)
        self._cluster.recorder.note(found.owner, reason, text, warning=True)
        self._dirty[key] = None

    def _approve(self, key: Key, found: _Object) -> None:
        """Handle the approve annotation once."""
        given = found.obj["metadata"].get("annotations", {}).get(APPROVE_ANNOTATION)
        target, approvals = found.target, found.writer.approvals
        if given is None or given == approvals.seen or target is None or target.verdict is None:
            return
        approvals.seen = given
        if not (given.isascii() and given.isdigit()):
            text = f"{APPROVE_ANNOTATION}: expected a proposal's number, got {given!r}"
        else:
            target.state, text = approve(target.state, int(given))
        if text:
            self._cluster.recorder.note(found.owner, "ApprovalRefused", text, warning=True)
        else:
            self._cluster.recorder.note(found.owner, "ChangeApproved", f"proposal {given}")
            self.hurry()
        self._dirty[key] = None

    def _report(self, key: Key, ordered: int | None) -> None:
        """Note what has changed as Events, and have the status written."""
        found = self._objects.get(key)
        if found is None or (target := found.target) is None:
            return
        note = self._cluster.recorder.note
        if ordered is not None and target.verdict is not None:
            before, reasons = target.verdict.current, list(target.verdict.reasons)
            found.last_scaled = {
                "time": now(),
                "from": before,
                "to": ordered,
                "reasons": reasons,
            }
            note(found.owner, "Scaled", f"{before} to {ordered} replicas: {'; '.join(reasons)}")
        for reason, text in _notable(target).items():
            if text and found.noted.get(reason) != text:
                note(found.owner, reason, text, warning=reason != "ChangeProposed")
            found.noted[reason] = text
        self._dirty[key] = None
        self._changed.set()

    async def _write(self, found: _Object) -> None:
        target = found.target
        if target is None:
            reason, text = found.refused or ("Refused", found.fault)
            refused = Condition("Accepted", holds=False, reason=reason, message=text)
            await found.writer.write_or_log({}, refused)
            return
        if target.verdict is not None:
            approvals = found.writer.approvals
            approvals.proposal = proposal_of(target.verdict, approvals.proposal)
        numbers = numbers_of(target)
        if found.last_scaled is not None:
            numbers["lastScaled"] = found.last_scaled
        same = all(found.writer.was.get(n) == numbers.get(n) for n in DECIDED)
        if same and loop_s() - found.written_s < NUMBERS_S:
            numbers = {name: value for name, value in numbers.items() if name not in NUMBERS}
        else:
            found.written_s = loop_s()
        accepted = Condition("Accepted", holds=True, reason="SpecHolds")
        await found.writer.write_or_log(numbers, accepted, *conditions_of(target))


def _notable(target: Target) -> Mapping[str, str]:
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
        "Fault": target.fault,
        "AnotherOwner": "" if target.config.paused else verdict.blocked,
        "HotPartitions": f"faster than a replica: {hot}" if hot else "",
        "ChangeProposed": proposed,
    }


def _created(obj: Obj) -> str:
    created: str = obj["metadata"]["creationTimestamp"]
    return created
