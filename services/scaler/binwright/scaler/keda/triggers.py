"""The groups that ScaledObjects' triggers name: targets without a workload of ours.

KEDA's HorizontalPodAutoscaler sets the replicas. What was recommended last stands for them here.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from binwright.protocol.errors import SettingsError
from binwright.runtime.clock import loop_s
from binwright.scaler.decide.machine import WorkloadSeen
from binwright.scaler.keda.messages import ScaledObjectRef
from binwright.scaler.objects.spec import FIELDS, config_from
from binwright.scaler.targets import Target, Targets

log = structlog.get_logger()

FORGOTTEN_S = 600.0
"""A trigger that has not asked for so long is gone."""
OWN = frozenset({"mode", "pause", "minReplicas", "maxReplicas"})
"""What a trigger does not set here: the ScaledObject has its own `paused`, min and max."""
KEDAS = frozenset(
    {"scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsClientCert", "tlsClientKey"}
)
"""Metadata of the connection, which KEDA sends along."""
DEFAULTS = {
    "min_replicas": 0,
    "max_replicas": 10_000,
    "cooldown_up_s": 0,  # the HorizontalPodAutoscaler stabilises, and KEDA waits before zero
    "cooldown_down_s": 0,
    "idle_s": 0,
}


@dataclass
class Recommendation:
    """The replicas that were recommended last; see `targets.Workload`."""

    replicas: int = 0

    def seen(self) -> WorkloadSeen:
        """Fit `Workload.seen`; how many of them are ready is not known."""
        return WorkloadSeen(replicas=self.replicas, ready=0)

    async def scale(self, replicas: int) -> None:
        """Fit `Workload.scale`."""
        self.replicas = replicas


@dataclass(eq=False)
class Trigger:
    """One trigger of a ScaledObject.

    Attributes:
        target: Its group.
        asked_s: When it was asked for last.
        changed: Set, and replaced, after each decision.
    """

    target: Target
    metadata: dict[str, str]
    recommendation: Recommendation
    asked_s: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _whole: bool = False  # whether all rates were known once

    def notify(self, _target: Target, _ordered: int | None) -> None:
        """Wake who waits for the next decision."""
        if self.target.verdict is not None and not self.target.verdict.work.missing:
            self._whole = True
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    @property
    def unknown(self) -> str:
        """Return why it is not known what the group needs; empty: it is known.

        Without a rate nothing is known at first: a group that keeps up has no lag to go by.
        """
        if self.target.fault:
            return self.target.fault
        return "" if self._whole else "the rates of the group's partitions are not known yet"

    @property
    def replicas(self) -> int:
        """Return what the group needed when that was decided last."""
        return 0 if self.target.verdict is None else self.target.verdict.wanted


class Triggers:
    """All triggers that have asked lately; `current` gives their targets."""

    def __init__(self, hurry: Callable[[], None]) -> None:
        """Call `hurry` when a trigger is new or has changed."""
        self._hurry = hurry
        self._known: dict[str, Trigger] = {}

    def current(self) -> Targets:
        """Return the targets of triggers that have not been forgotten."""
        now_s = loop_s()
        for key, trigger in list(self._known.items()):
            if now_s - trigger.asked_s > FORGOTTEN_S:
                del self._known[key]
                log.info("trigger.forgotten", target=key)
        return {key: trigger.target for key, trigger in self._known.items()}

    def ask(self, ref: ScaledObjectRef) -> Trigger:
        """Return the trigger of a ScaledObject; it is new, or as known.

        Raises:
            SettingsError: Its metadata do not hold; names every fault.
        """
        metadata = dict(ref.metadata)
        key = f"keda/{ref.namespace}/{ref.name}/{metadata.get('group', '')}"
        found = self._known.get(key)
        if found is None or found.metadata != metadata:
            values = _values(metadata)
            config = config_from(values, "the trigger's metadata")
            if found is None:
                recommendation = Recommendation()
                target = Target(key, config, recommendation)
                found = self._known[key] = Trigger(target, metadata, recommendation)
                target.on_change = found.notify
                log.info("trigger.started", target=key, group=config.group)
            found.target.config, found.metadata = config, metadata
            self._hurry()
        found.asked_s = loop_s()
        return found


def _values(metadata: dict[str, str]) -> dict[str, object]:
    """Return settings of a group from metadata: all of it is text."""
    allowed = FIELDS.keys() - OWN
    if unknown := sorted(metadata.keys() - allowed - KEDAS):
        known = ", ".join(sorted(allowed))
        raise SettingsError(f"unknown metadata: {', '.join(unknown)}; there is {known}")
    if missing := sorted({"group", "recordsPerSecond"} - metadata.keys()):
        raise SettingsError(f"missing metadata: {', '.join(missing)}")
    given: dict[str, object] = {FIELDS[n]: v for n, v in metadata.items() if n in allowed}
    if topics := metadata.get("topics"):
        given["topics"] = [topic.strip() for topic in topics.split(",")]
    return {**DEFAULTS, **given}
