"""Builds and writes an object's status, which `kubectl get` and `describe` show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from binwright.controller.decide.states import State
from binwright.controller.fleets.kubernetes.trouble import Trouble
from binwright.controller.group_objects.approvals import Approvals
from binwright.kubernetes.api import NOT_FOUND, Api, Obj, now
from binwright.protocol.errors import BinwrightError, ClusterRefused
from binwright.protocol.model import Slot

log = structlog.get_logger()

SIGNIFICANT = 2  # digits of a rate: fewer changes of the status


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the status."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def group_status(state: State, time: float) -> tuple[Obj, Condition, Condition]:
    """Return the status fields of a group, and the conditions Ready and Measured.

    Args:
        state: The machine's state.
        time: Now, seconds, of the event loop's clock.
    """
    group = state.group
    loads = group.loads()
    living = [slot for slot, member in group.members.items() if member.epoch is not None]
    unread = sum(at.slot is None for at in group.partitions.values())
    unready = [slot for slot in living if not group.members[slot].usable]
    fresh = group.measured_at is not None and time - group.measured_at <= group.config.stale_s
    numbers = {
        "state": type(state).__name__,
        "consumers": len(living),
        "partitions": len(group.partitions),
        "bytesPerSecond": rounded(sum(loads.values())),
    }
    if unread or not group.partitions:
        text = f"{unread} of {len(group.partitions)} partitions are read by no consumer"
        ready = Condition("Ready", holds=False, reason="PartitionsUnread", message=text)
    elif unready:
        text = f"consumers {', '.join(map(str, sorted(unready)))} are not ready yet"
        ready = Condition("Ready", holds=False, reason="ConsumersUnready", message=text)
    else:
        ready = Condition("Ready", holds=True, reason="AllRead")
    measured = (
        Condition("Measured", holds=True, reason="Fresh")
        if fresh
        else Condition(
            "Measured",
            holds=False,
            reason="Stale",
            message="no monitor publishes rates of these topics: does one run, do they exist?",
        )
    )
    return numbers, ready, measured


def health_condition(troubles: Mapping[Slot, Trouble], refusals: Sequence[str]) -> Condition:
    """Return the condition Healthy: whether all desired pods run."""
    texts = [f"slot {slot}: {t.reason}: {t.message}" for slot, t in sorted(troubles.items())]
    if not texts and not refusals:
        return Condition("Healthy", holds=True, reason="PodsRun")
    reason = "Refused" if refusals else next(iter(troubles.values())).reason
    return Condition("Healthy", holds=False, reason=reason, message="; ".join([*refusals, *texts]))


def rounded(rate: float) -> int:
    """Return a rate, bytes/s, rounded to two significant digits."""
    return int(float(f"{rate:.{SIGNIFICANT}g}"))


@dataclass
class StatusWriter:
    """Writes one object's status when it changes."""

    api: Api
    path: str  # of the object
    generation: int
    was: Obj  # the status as last read or written
    plan: Obj | None = None  # the last plan
    approvals: Approvals = field(default_factory=Approvals)
    _conditions: dict[str, Obj] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take over the conditions and approvals of the status."""
        self.approvals = Approvals(self.was.get("proposal"), self.was.get("approvalSeen"))
        self._conditions = {c["type"]: c for c in self.was.get("conditions") or ()}

    async def write(self, numbers: Obj, *conditions: Condition) -> None:
        """Write the status if it has changed; raise an `ExternalError` if that fails."""
        for condition in conditions:
            self._conditions[condition.type] = self._dated(condition)
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

    async def write_or_log(self, numbers: Obj, *conditions: Condition) -> None:
        """Write like `write`; a failure is logged, unless the object was deleted."""
        try:
            await self.write(numbers, *conditions)
        except BinwrightError as exc:
            if not (isinstance(exc, ClusterRefused) and exc.status == NOT_FOUND):
                log.warning("status.unwritten", path=self.path, reason=str(exc))

    def _dated(self, condition: Condition) -> Obj:
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
