"""The plans of a group that its topic still has, and what each partition owes to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.protocol.metadata import Planned
from binwright.protocol.model import Slot, TopicPartition

MAX_PLANS = 50  # that are kept


@dataclass(frozen=True, slots=True)
class PastPlan:
    """A plan that was carried out.

    Attributes:
        number: Its offset in the topic.
        at_ms: Wall clock.
        moves: Partitions -> the owner before (None: none is known) and afterwards.
    """

    number: int
    at_ms: int
    reasons: tuple[str, ...]
    consumers: int
    rscore: float
    moves: Mapping[TopicPartition, tuple[Slot | None, Slot]]


@dataclass(slots=True)
class PlanHistory:
    """The last plans, oldest first, and the last one that gave each partition its owner."""

    plans: list[PastPlan] = field(default_factory=list)
    last_of: dict[TopicPartition, PastPlan] = field(default_factory=dict)
    first_ms: int | None = None
    _targets: Mapping[TopicPartition, Slot] = field(default_factory=dict)

    def apply(self, number: int, at_ms: int, plan: Planned) -> None:
        """Add a plan."""
        before = self._targets
        moves = {p: (before.get(p), new) for p, new in plan.moves.items()}
        if self.first_ms is None:
            self.first_ms = at_ms  # what its owners were before is not known
        else:
            moves |= {p: (None, new) for p, new in plan.targets.items() if p not in before}
        past = PastPlan(number, at_ms, tuple(plan.reasons), plan.consumers, plan.rscore, moves)
        self.plans = [*self.plans[1 - MAX_PLANS :], past]
        self.last_of.update(dict.fromkeys(moves, past))
        self._targets = plan.targets

    def plan(self, number: int | None = None) -> PastPlan | None:
        """Return a plan by its number, the last one without; None: it is not kept."""
        if number is None:
            return self.plans[-1] if self.plans else None
        return next((past for past in self.plans if past.number == number), None)
