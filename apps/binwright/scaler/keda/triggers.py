"""The groups that ScaledObjects' triggers name: targets without a workload of ours.

KEDA's HorizontalPodAutoscaler sets the replicas. What was recommended last stands for them here.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from binwright.kubernetes.objects import field_name
from binwright.protocol.errors import SettingsError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.patterns import compile_patterns
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.members import Members
from binwright.scaler.decide.sizing import WorkloadStatus
from binwright.scaler.keda.messages import ScaledObjectRef
from binwright.scaler.objects.spec import config_from
from binwright.scaler.passes import ScaledTarget, Targets
from binwright.scaler.settings import ScalerSettings

TRIGGER_FORGOTTEN = LogEvent.info(
    "trigger.forgotten",
    "A KEDA trigger has not asked for ten minutes; its group is not looked up any more.",
)
TRIGGER_STARTED = LogEvent.info(
    "trigger.started", "A KEDA trigger asked for a group for the first time."
)

FORGOTTEN_S = 600.0
"""Time without a call after which a trigger is forgotten."""
TRIGGERS = 2_000
"""Most triggers of all namespaces: each is a group that every pass asks brokers about."""
NOT_SET_HERE = {
    *("assigns", "mode", "paused", "minReplicas", "maxReplicas", "schedules", "beforeReplicas")
}
"""The ScaledObject has its own `paused`, min and max."""
METADATA = {field_name(name) for name in ScaledGroupSettings.model_fields} - NOT_SET_HERE
KEDAS = frozenset(
    {"scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsClientCert", "tlsClientKey"}
)
"""Metadata of the connection, which KEDA sends along."""
KEDAS_RESET = "offsetResetPolicy"
"""The name of `startsAt` in KEDA's own trigger for Kafka."""
DEFAULTS = {
    "minReplicas": 0,
    "maxReplicas": 10_000,
    "cooldownUpSeconds": 0,  # the HorizontalPodAutoscaler stabilises, and KEDA waits before zero
    "cooldownDownSeconds": 0,
    "idleSeconds": 0,
}


@dataclass
class Recommendation:
    """The replicas that were recommended last; see `ports.ScaledWorkload`."""

    replicas: int = 0

    def status(self) -> WorkloadStatus:
        """Fit `ScaledWorkload.status`; how many of them are ready is not known."""
        return WorkloadStatus(replicas=self.replicas, ready=0)

    async def replicas_of(self, members: Members) -> dict[str, Replica]:
        """Fit `ScaledWorkload.replicas_of`: who runs them is not known."""
        del members
        return {}

    async def scale(self, replicas: int, ending: Collection[str] = ()) -> None:
        """Fit `ScaledWorkload.scale`: KEDA ends what it likes."""
        del ending
        self.replicas = replicas


@dataclass(eq=False)
class KedaTrigger:
    """One trigger of a ScaledObject.

    Attributes:
        target: Its group.
        asked_s: When it was asked for last.
        changed: Set, and replaced, after each decision.
        whole: Whether all rates were known once, for these metadata.
    """

    target: ScaledTarget
    metadata: dict[str, str]
    recommendation: Recommendation
    asked_s: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    whole: bool = False

    def notify(self, _target: ScaledTarget, _ordered: int | None) -> None:
        """Wake who waits for the next decision."""
        if self.target.verdict is not None and not self.target.verdict.work.missing:
            self.whole = True
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    @property
    def unknown(self) -> str:
        """Return why it is not known what the group needs; empty: it is known.

        Without a rate nothing is known at first: a group that keeps up has no lag to go by. Later,
        what is not known takes no replica away; but that there is none to keep is no knowledge.
        """
        if self.target.problem:
            return self.target.problem
        if self.target.verdict is None or not self.whole:
            return "the rates of the group's partitions are not known yet"
        missing = self.target.verdict.work.missing
        if missing and not self.replicas:
            return f"{missing} partitions of the group have no fresh end or rate"
        return ""

    @property
    def replicas(self) -> int:
        """Return what the group needed when that was decided last."""
        return 0 if self.target.verdict is None else self.target.verdict.wanted


class KedaTriggers:
    """All triggers that have asked lately; `current` gives their targets."""

    def __init__(self, request_pass: Callable[[], None], settings: ScalerSettings) -> None:
        """Call `request_pass` when a trigger is new or has changed."""
        self._request_pass, self._settings = request_pass, settings
        self._known: dict[str, KedaTrigger] = {}

    def current(self) -> Targets:
        """Return the targets of triggers that have not been forgotten."""
        now_s = loop_s()
        for key, trigger in list(self._known.items()):
            if now_s - trigger.asked_s > FORGOTTEN_S:
                del self._known[key]
                log(TRIGGER_FORGOTTEN, target=key)
        return {key: trigger.target for key, trigger in self._known.items()}

    def ask(self, ref: ScaledObjectRef) -> KedaTrigger:
        """Return the trigger of a ScaledObject; it is new, or as known.

        Raises:
            SettingsError: Its metadata do not hold; names every fault. Or the group is not its
                namespace's, or there are too many triggers.
        """
        # A value that comes from a Secret's file may end with a newline.
        metadata = {name: value.strip() for name, value in ref.metadata.items()}
        key = f"keda/{ref.namespace}/{ref.name}/{metadata.get('group', '')}"
        trigger = self._known.get(key)
        if trigger is None or trigger.metadata != metadata:
            config = config_from(_spec(metadata), "the trigger's metadata")
            if trigger is None:
                self._check_room(ref.namespace, config.group)
                recommendation = Recommendation()
                target = ScaledTarget(key, config, recommendation, counts_members=True)
                trigger = self._known[key] = KedaTrigger(target, metadata, recommendation)
                target.on_change = trigger.notify
                log(TRIGGER_STARTED, target=key, group=config.group)
            trigger.target.config, trigger.metadata, trigger.whole = config, metadata, False
            self._request_pass()
        trigger.asked_s = loop_s()
        return trigger

    def _check_room(self, namespace: str, group: str) -> None:
        """Raise `SettingsError` if the namespace may not have a trigger for this group."""
        allowed = self._settings.keda_groups
        patterns = compile_patterns(allowed.get(namespace, ()))
        if allowed and not any(pattern.matches(group) for pattern in patterns):
            raise SettingsError(
                f"group {group}: not one of the namespace {namespace} (scaler.keda_groups)"
            )
        most = self._settings.keda_triggers_per_namespace
        if sum(key.startswith(f"keda/{namespace}/") for key in self._known) >= most:
            raise SettingsError(
                f"the namespace {namespace} has {most} triggers already "
                "(scaler.keda_triggers_per_namespace)"
            )
        if len(self._known) >= TRIGGERS:
            raise SettingsError(f"there are {TRIGGERS} triggers already")


def _spec(metadata: dict[str, str]) -> dict[str, object]:
    """Return the spec of a group that metadata name: all of it is text."""
    if unknown := sorted(metadata.keys() - METADATA - KEDAS - {KEDAS_RESET}):
        known = ", ".join(sorted(METADATA))
        raise SettingsError(f"unknown metadata: {', '.join(unknown)}; there is {known}")
    if missing := sorted({"group", "recordsPerSecond"} - metadata.keys()):
        raise SettingsError(f"missing metadata: {', '.join(missing)}")
    spec: dict[str, object] = {n: v for n, v in metadata.items() if n in METADATA}
    if topics := metadata.get("topics"):
        spec["topics"] = topics.split(",")
    if (reset := metadata.get(KEDAS_RESET)) and spec.setdefault("startsAt", reset) != reset:
        raise SettingsError(f"{KEDAS_RESET} is {reset}, and startsAt is {spec['startsAt']}")
    return {**DEFAULTS, **spec}
