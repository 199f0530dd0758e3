"""What the fleets that reconcile in a loop share: the loop, refusals, readiness and metrics."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from binwright.fleets.metrics import FLEET_REFUSALS, SLOT_DISRUPTION, SLOT_TROUBLE, SLOTS_WANTED
from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption
from binwright.runtime.backoff import Backoff, until_set
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.metrics import Sample

FLEET_REPORTED = LogEvent.info(
    "fleet.reported",
    "Something happened to a consumer's pod; `what` is the name of the Kubernetes Event.",
)
FLEET_WARNED = LogEvent.warning(
    "fleet.reported",
    "Something is wrong with a consumer's pod; `what` is the name of the Kubernetes Event.",
)
FLEET_FAILED = LogEvent.warning(
    "fleet.failed", "The fleet could not do what the controller wants; it is tried again."
)

Operation = Coroutine[Any, Any, None]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0  # after a round that failed


class EventSink(Protocol):
    """Reports an event of a fleet to people: to the log, and to the cluster where there is one."""

    def __call__(self, event: str, text: str, slot: Slot | None, *, warning: bool = False) -> None:
        """Report `event` about a slot; None: about all slots."""


def log_report(group: str, event: str, text: str, slot: Slot | None, *, warning: bool) -> None:
    """Log what a fleet reports; see `EventSink`."""
    reported = FLEET_WARNED if warning else FLEET_REPORTED
    log(reported, what=event, group=group, slot=slot, text=text)


def check_slots(
    desired: Collection[Slot], max_slots: int, limit_name: str = "allowed"
) -> frozenset[Slot]:
    """Return the desired slots; raise `ExternalError` if one is beyond `max_slots`."""
    if beyond := sorted(slot for slot in desired if slot >= max_slots):
        raise ExternalError(f"slots {beyond} are beyond the {max_slots} {limit_name}")
    return frozenset(desired)


async def reconcile_loop(
    reconcile: Callable[[], Awaitable[None]],
    changed: asyncio.Event,
    *,
    group: str,
    every_s: float,
    gather_s: float = 0.0,
) -> None:
    """Call `reconcile` for ever: at changes and every so often; after failures with longer pauses.

    Args:
        reconcile: Brings what runs in line with what is desired.
        changed: Set when there is a reason to reconcile.
        group: The fleet's group, for the log.
        every_s: The longest time from one round to the next.
        gather_s: How long to wait for further changes after the first one.
    """
    pause = Backoff(LONGEST_PAUSE_S, first_s=FIRST_PAUSE_S)
    while True:
        await until_set(changed, every_s)  # or until it is time, in case a change was missed
        await asyncio.sleep(gather_s)
        changed.clear()
        try:
            await reconcile()
            pause.reset()
        except ExternalError as exc:
            rest_s = pause.next()
            log(FLEET_FAILED, group=group, reason=str(exc), rest_s=rest_s)
            await asyncio.sleep(rest_s)
            changed.set()


async def run_all(operations: Collection[Operation]) -> None:
    """Run all at the same time, to the end; then raise the first error there was."""
    for outcome in await asyncio.gather(*operations, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


@dataclass
class Refusals:
    """Why requests for slots are refused; each reason is reported once, not at each retry.

    Attributes:
        report: Called with a new reason. The slot None stands for all slots.
    """

    report: EventSink
    _reasons: dict[Slot | None, str] = field(default_factory=dict)

    def note(self, event: str, reason: str, slot: Slot | None) -> None:
        """Record that a request for the slot was refused."""
        if self._reasons.get(slot) != reason:
            self.report(event, reason, slot, warning=True)
        self._reasons[slot] = reason

    @contextlib.contextmanager
    def noted(
        self, refusal: type[ExternalError], event: str, slot: Slot, subject: str = ""
    ) -> Iterator[None]:
        """Record a refusal in the body as `event` about the `subject`, and raise it again."""
        try:
            yield
        except refusal as exc:
            self.note(event, f"{subject}: {exc}" if subject else str(exc), slot)
            raise

    def clear(self, slot: Slot | None) -> None:
        """Forget a slot: its request succeeded, or it is not desired any more."""
        self._reasons.pop(slot, None)

    def reason(self, slot: Slot | None) -> str:
        """Return why requests for the slot are refused; raise `KeyError` if they are not."""
        return self._reasons[slot]

    @property
    def reasons(self) -> list[str]:
        """Return the reasons, sorted, each once."""
        return sorted(set(self._reasons.values()))


class Readiness:
    """Which slots' processes have reported that they are ready, and have stayed ready.

    A running container is no proof: its image may be one that never sends a Hello.
    """

    def __init__(self, steady_s: float) -> None:
        """Count a process as steady once it has been ready for `steady_s` seconds."""
        self._steady_s = steady_s
        self._since: Mapping[Slot, float] = {}
        self._restarted: dict[Slot, float] = {}  # when; earlier reports are of the old process
        self._steady: frozenset[Slot] = frozenset()

    def mark_restarted(self, slot: Slot) -> None:
        """Note that the slot's process is being replaced."""
        self._restarted[slot] = loop_s()

    def update_ready(self, ready: Mapping[Slot, float]) -> bool:
        """Fit `Fleet.update_ready`; return whether the set of steady slots has changed."""
        self._since = dict(ready)
        before, self._steady = self._steady, frozenset(filter(self.steady, ready))
        return before != self._steady

    def steady(self, slot: Slot) -> bool:
        """Whether the slot's process has been ready for long enough."""
        since = self._since.get(slot)
        if since is None or since <= self._restarted.get(slot, -math.inf):
            return False
        return loop_s() - since >= self._steady_s

    def forget(self) -> None:
        """Forget all slots."""
        self._since, self._restarted, self._steady = {}, {}, frozenset()


def samples(
    group: str,
    wanted: int,
    refusals: int,
    troubles: Mapping[Slot, str],
    disruptions: Mapping[Slot, Disruption],
) -> Iterator[Sample]:
    """Yield a fleet's metrics; `troubles`: why slots do not run, one word for each."""
    labels = {"group": group}
    yield Sample(SLOTS_WANTED, wanted, labels)
    yield Sample(FLEET_REFUSALS, refusals, labels)
    for slot, reason in sorted(troubles.items()):
        yield Sample(SLOT_TROUBLE, 1, {**labels, "slot": str(slot), "reason": reason})
    for slot, disruption in sorted(disruptions.items()):
        kind = {"slot": str(slot), "kind": disruption.kind}
        yield Sample(SLOT_DISRUPTION, 1, {**labels, **kind})
