"""What the fleets that keep looking have in common, wherever their consumers run."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from binwright.core.errors import WorldError
from binwright.core.model import Slot
from binwright.shell.gauges import Sample
from binwright.shell.pauses import until_set

log = structlog.get_logger()

Order = Coroutine[Any, Any, None]

FIRST_REST_S, LONGEST_REST_S = 1.0, 10.0  # after a look that failed


def within(desired: Collection[Slot], max_slots: int, whose: str = "allowed") -> frozenset[Slot]:
    """Return what is desired; raise `WorldError` if there is no room for some of it."""
    if beyond := sorted(slot for slot in desired if slot >= max_slots):
        raise WorldError(f"slots {beyond} are beyond the {max_slots} {whose}")
    return frozenset(desired)


async def keep(
    look: Callable[[], Awaitable[None]],
    changed: asyncio.Event,
    *,
    group: str,
    every_s: float,
    gather_s: float = 0.0,
) -> None:
    """Look for ever: when something changed and every so often; after failures with longer rests.

    Args:
        look: Puts right what is not as it should be.
        changed: Set by whoever knows of a reason to look.
        group: Whose fleet it is, for the log.
        every_s: The longest time from one look to the next.
        gather_s: How long the changes that follow the first one are waited for.
    """
    rest_s = FIRST_REST_S
    while True:
        await until_set(changed, every_s)  # then look although nothing is known to change
        await asyncio.sleep(gather_s)
        changed.clear()
        try:
            await look()
            rest_s = FIRST_REST_S
        except WorldError as exc:
            log.warning("fleet.failed", group=group, reason=str(exc), rest_s=rest_s)
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, LONGEST_REST_S)
            changed.set()


async def all_of(orders: Collection[Order]) -> None:
    """Do all of it at the same time, to the end; then raise what went wrong first."""
    for outcome in await asyncio.gather(*orders, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


@dataclass
class Refusals:
    """What is not done for us, slot by slot; each is told once, however often it is tried again.

    Attributes:
        tell: Tells people of an event: its name, its text and the slot; None is all slots.
    """

    tell: Callable[[str, str, Slot | None], None]
    _reasons: dict[Slot | None, str] = field(default_factory=dict)

    def note(self, event: str, reason: str, slot: Slot | None) -> None:
        """Remember what was refused."""
        if self._reasons.get(slot) != reason:
            self.tell(event, reason, slot)
        self._reasons[slot] = reason

    def clear(self, slot: Slot | None) -> None:
        """It is done after all, or nobody wants it any more."""
        self._reasons.pop(slot, None)

    def keep(self, slots: Collection[Slot]) -> None:
        """Forget all slots but these."""
        self._reasons = {s: why for s, why in self._reasons.items() if s is None or s in slots}

    def why(self, slot: Slot | None) -> str:
        """Return the reason of what is refused."""
        return self._reasons[slot]

    @property
    def reasons(self) -> list[str]:
        """Return the reasons, in words, each once."""
        return sorted(set(self._reasons.values()))


class Readiness:
    """Whose processes are ready, by their own word, and have stayed so.

    That a container runs says little: its image may be one that never says Hello.
    """

    def __init__(self, steady_s: float) -> None:
        """Take for steady who has been ready for `steady_s` seconds."""
        self._steady_s = steady_s
        self._since: Mapping[Slot, float] = {}
        self._begun: dict[Slot, float] = {}  # when we began a slot anew: older words do not count
        self._steady: frozenset[Slot] = frozenset()

    def begun(self, slot: Slot) -> None:
        """Take note that the slot's process is being replaced."""
        self._begun[slot] = self._now()

    def notice(self, ready: Mapping[Slot, float]) -> bool:
        """Fit `Fleet.notice`; return whether others are steady now."""
        self._since = dict(ready)
        before, self._steady = self._steady, frozenset(filter(self.steady, ready))
        return before != self._steady

    def steady(self, slot: Slot) -> bool:
        """Whether the slot's process has been ready for long enough."""
        since = self._since.get(slot)
        if since is None or since <= self._begun.get(slot, -math.inf):
            return False
        return self._now() - since >= self._steady_s

    def forget(self) -> None:
        """Know nothing any more."""
        self._since, self._begun, self._steady = {}, {}, frozenset()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def samples(
    group: str, wanted: int, refusals: int, troubles: Mapping[Slot, str]
) -> Iterator[Sample]:
    """Yield a fleet's numbers; `troubles` is what keeps slots from running, in one word each."""
    labels = {"group": group}
    yield Sample("binwright_slots_wanted", wanted, labels)
    yield Sample("binwright_fleet_refusals", refusals, labels)
    for slot, reason in sorted(troubles.items()):
        told = {**labels, "slot": str(slot), "reason": reason}
        yield Sample("binwright_slot_trouble", 1, told)
