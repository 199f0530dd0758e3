"""Writes an object's status, which `kubectl get` and `describe` show, and handles approvals there.

A proposal stands in the status; a person approves it by an annotation that has its number.
"""

from dataclasses import dataclass, field

from binwright.kubernetes.api import NOT_FOUND, Api
from binwright.kubernetes.objects import DOMAIN, Obj, now
from binwright.protocol.errors import BinwrightError, ClusterRefused, UserError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log

STATUS_UNWRITTEN = LogEvent.warning(
    "status.unwritten", "The status of a ConsumerGroup could not be written."
)

APPROVE_ANNOTATION = f"{DOMAIN}/approve"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the status."""

    type: str
    holds: bool
    reason: str
    message: str = ""


@dataclass
class Approvals:
    """The proposal in one object's status, and the last approval that was handled."""

    proposal: Obj | None = None
    seen: str | None = None  # the annotation's value; in the status, so that it is handled once

    def fields(self) -> Obj:
        """Return the status fields; None removes a field."""
        return {"proposal": self.proposal, "approvalSeen": self.seen}

    def number(self, obj: Obj | None, what: str) -> int | None:
        """Return the number that the object's annotation approves; None: it has none that is new.

        Args:
            obj: The object; None: it is gone.
            what: What has numbers, as in "plan".

        Raises:
            UserError: It is not a number; from now on it counts as handled.
        """
        value = _annotation(obj)
        if value is None or value == self.seen:
            return None
        if not (value.isascii() and value.isdigit()):
            self.seen = value
            expected = f"expected a {what}'s number, as in status.proposal"
            raise UserError(f"{APPROVE_ANNOTATION}: {expected}, got {value!r}")
        return int(value)

    def handled(self, obj: Obj | None) -> None:
        """Remember that the object's annotation was handled."""
        self.seen = _annotation(obj)


def _annotation(obj: Obj | None) -> str | None:
    value: str | None = (
        (obj or {"metadata": {}})["metadata"].get("annotations", {}).get(APPROVE_ANNOTATION)
    )
    return value


@dataclass
class StatusWriter:
    """Writes one object's status when it changes."""

    api: Api
    path: str  # of the object
    generation: int
    was: Obj  # the status as last read or written
    approvals: Approvals = field(init=False)
    _conditions: dict[str, Obj] = field(init=False)

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
            **self.approvals.fields(),
            "observedGeneration": self.generation,
            "conditions": [self._conditions[name] for name in sorted(self._conditions)],
        }
        if any(self.was.get(key) != value for key, value in status.items()):
            await self.api.merge(f"{self.path}/status", {"status": status})
            self.was = {**self.was, **status}

    async def write_or_log(self, numbers: Obj, *conditions: Condition) -> None:
        """Write like `write`; a failure is logged, unless the object was deleted."""
        try:
            await self.write(numbers, *conditions)
        except BinwrightError as exc:
            if not (isinstance(exc, ClusterRefused) and exc.status == NOT_FOUND):
                log(STATUS_UNWRITTEN, path=self.path, reason=str(exc))

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
