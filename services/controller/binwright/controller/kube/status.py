"""What an object says of its group, for `kubectl get` and `describe`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from binwright.controller.kube.api import Api, Obj, now
from binwright.controller.kube.approvals import Approvals
from binwright.controller.kube.trouble import Trouble
from binwright.core.model import Slot
from binwright.core.states import State

SIGNIFICANT = 2  # digits of a rate: a status is not written anew for every byte


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that holds, or why it does not."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def described(state: State, time: float) -> tuple[Obj, Condition, Condition]:
    """Return numbers of a group, whether it is ready, and whether it is measured."""
    group = state.group
    loads = group.loads()
    living = [slot for slot, member in group.members.items() if member.epoch is not None]
    unread = sum(at.slot is None for at in group.partitions.values())
    unready = [slot for slot in living if not group.members[slot].usable]
    fresh = group.measured_at is not None and time - group.measured_at <= group.rules.stale_s
    numbers = {
        "state": type(state).__name__,
        "consumers": len(living),
        "partitions": len(group.partitions),
        "bytesPerSecond": rounded(sum(loads.values())),
    }
    if unread or not group.partitions:
        told = f"{unread} of {len(group.partitions)} partitions are read by nobody"
        ready = Condition("Ready", holds=False, reason="PartitionsUnread", message=told)
    elif unready:
        told = f"consumers {', '.join(map(str, sorted(unready)))} are not ready yet"
        ready = Condition("Ready", holds=False, reason="ConsumersUnready", message=told)
    else:
        ready = Condition("Ready", holds=True, reason="AllRead")
    measured = (
        Condition("Measured", holds=True, reason="Fresh")
        if fresh
        else Condition(
            "Measured",
            holds=False,
            reason="Stale",
            message="no monitor says anything of these topics: does one run, and are they there?",
        )
    )
    return numbers, ready, measured


def healthy(troubles: Mapping[Slot, Trouble], refusals: Sequence[str]) -> Condition:
    """Return whether all pods run that should."""
    told = [f"slot {slot}: {t.reason}: {t.message}" for slot, t in sorted(troubles.items())]
    if not told and not refusals:
        return Condition("Healthy", holds=True, reason="PodsRun")
    reason = "Refused" if refusals else next(iter(troubles.values())).reason
    return Condition("Healthy", holds=False, reason=reason, message="; ".join([*refusals, *told]))


def rounded(rate: float) -> int:
    """Return a rate to two digits."""
    return int(float(f"{rate:.{SIGNIFICANT}g}"))


@dataclass
class StatusWriter:
    """Writes one object's status when it changes."""

    api: Api
    path: str  # of the object
    generation: int
    was: Obj  # as last read or written
    plan: Obj | None = None  # the last, as told
    approvals: Approvals = field(default_factory=Approvals)
    _conditions: dict[str, Obj] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take over what stands there."""
        self.approvals = Approvals(self.was.get("proposal"), self.was.get("approvalSeen"))
        self._conditions = {c["type"]: c for c in self.was.get("conditions") or ()}

    async def write(self, numbers: Obj, *conditions: Condition) -> None:
        """Write what is new; raise a `WorldError` if it cannot be written."""
        for condition in conditions:
            self._conditions[condition.type] = self._aged(condition)
        status = {
            **numbers,
            **self.approvals.status(),
            "observedGeneration": self.generation,
            "conditions": [self._conditions[name] for name in sorted(self._conditions)],
        }
        if self.plan is not None:
            status["lastPlan"] = self.plan
        if any(self.was.get(key) != value for key, value in status.items()):
            await self.api.merge(f"{self.path}/status", {"status": status})
            self.was = {**self.was, **status}

    def _aged(self, condition: Condition) -> Obj:
        value = "True" if condition.holds else "False"
        known = self._conditions.get(condition.type, {})
        since = known["lastTransitionTime"] if known.get("status") == value else now()
        return {
            "type": condition.type,
            "status": value,
            "observedGeneration": self.generation,
            "lastTransitionTime": since,
            "reason": condition.reason,
            "message": condition.message[:1000],
        }
