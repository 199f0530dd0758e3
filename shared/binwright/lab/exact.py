"""The best there is for one decision, for small groups: an integer program.

The same objective as `sticky`: price x consumers + V(room) + moved speed. V is convex, so tangents
to it, each a linear constraint, stand for it; between them the program takes it a little too low.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import structlog
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from binwright.core.model import Assignment, Rates, Slot, TopicPartition
from binwright.core.packing.capacity import Capacity, PerSlot
from binwright.core.packing.inputs import check
from binwright.core.packing.sticky.board import Costs
from binwright.core.packing.sticky.policy import PRICE, Sticky

log = structlog.get_logger()

LARGEST = 64
"""Partitions with a load; above, sticky answers."""
TANGENTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Where V is touched, in standard deviations of room."""
OPTIMAL = 0
"""scipy's status."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The assignment of least cost; sticky's, and a word about it, where that takes too long."""

    price: float = PRICE  # as of `Sticky`
    limit_s: float = 5.0

    def __post_init__(self) -> None:
        """Refuse a price that is none, as `Sticky` does."""
        Sticky(self.price)

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        change: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Return the new owner of each partition. See `catalogue.Packing`."""
        near = Sticky(self.price)
        capacities = check(rates, capacity)
        costs = near.costs(rates, capacities, change)
        answer = near(rates, capacity, current, change=change)
        program = _Program.of(rates, capacities, current, answer)
        if len(program.names) > LARGEST:
            log.info("packing.approximate", reason=f"more than {LARGEST} partitions")
            return answer
        found = program.solve(costs, self.limit_s)
        if found is None:
            log.info("packing.approximate", reason=f"no proof within {self.limit_s:g} s")
            return answer
        better = {**answer, **found}
        if objective(rates, capacity, current, better, costs) > objective(
            rates, capacity, current, answer, costs
        ):
            return answer  # apart only by what the tangents leave out
        return _accommodated(rates, current, better, set(found.values()))


def objective(
    rates: Rates, capacity: Capacity, current: Assignment, target: Assignment, costs: Costs
) -> float:
    """Return what a decision costs, bytes/s: price x consumers with a load + V(room) + moved."""
    capacities, loads = check(rates, capacity), dict[Slot, float]()
    for p, slot in target.items():
        if rates[p]:
            loads[slot] = loads.get(slot, 0.0) + rates[p]
    moved = sum(rates[p] for p, slot in target.items() if current.get(p, slot) != slot)
    room = sum(costs.value(max(0.0, capacities.of(slot) - load)) for slot, load in loads.items())
    return costs.price * len(loads) + room + moved


def _accommodated(
    rates: Rates, current: Assignment, target: dict[TopicPartition, Slot], there: set[Slot]
) -> dict[TopicPartition, Slot]:
    """Put partitions without a load where somebody is."""
    if not there:
        return target
    homes = {p: current.get(p, slot) for p, slot in target.items() if not rates[p]}
    return target | {p: home if home in there else min(there) for p, home in homes.items()}


@dataclass(frozen=True, slots=True)
class _Program:
    """Partitions that share consumers, and the consumers that there may be."""

    names: Sequence[TopicPartition]
    sizes: Sequence[float]
    homes: Sequence[Slot | None]
    slots: Sequence[Slot]
    rooms: Sequence[float]  # capacities

    @classmethod
    def of(
        cls, rates: Rates, capacities: PerSlot, current: Assignment, answer: Assignment
    ) -> "_Program":
        """Leave out what carries nothing, and what sits alone above its consumer's capacity."""
        alone = {answer[p] for p in answer if rates[p] > capacities.of(answer[p])}
        names = [p for p in answer if rates[p] and answer[p] not in alone]
        used = {current[p] for p in names if p in current} | {answer[p] for p in names}
        fresh = (Slot(n) for n in count() if Slot(n) not in used | alone)
        slots = [*sorted(used - alone), *islice(fresh, 1)]
        return cls(
            names,
            [rates[p] for p in names],
            [current.get(p) for p in names],
            slots,
            [capacities.of(slot) for slot in slots],
        )

    def solve(self, costs: Costs, limit_s: float) -> dict[TopicPartition, Slot] | None:
        """Return the best assignment, or None if it is not proved in time.

        Variables: x[i, j], partition i at consumer j; y[j], it is open; v[j], what its room costs.
        """
        n, m = len(self.names), len(self.slots)
        if not n:
            return {}
        sizes = np.array(self.sizes)
        home = np.array([[at == slot for slot in self.slots] for at in self.homes])
        moving = np.where(home.any(axis=1, keepdims=True) & ~home, sizes[:, None], 0.0)
        found = milp(
            np.concatenate([moving.ravel(), np.full(m, costs.price), np.ones(m)]),
            integrality=np.repeat([1, 1, 0], [n * m, m, m]),
            bounds=Bounds(0.0, np.repeat([1.0, 1.0, np.inf], [n * m, m, m])),
            constraints=[self._placed(), self._held(sizes), *self._valued(sizes, costs)],
            options={"time_limit": limit_s, "mip_rel_gap": 1e-6},
        )
        if found.status != OPTIMAL:
            return None
        at = found.x[: n * m].reshape(n, m).argmax(axis=1)
        return {name: self.slots[at[i]] for i, name in enumerate(self.names)}

    def _placed(self) -> LinearConstraint:
        """Everybody is somewhere, once."""
        n, m = len(self.names), len(self.slots)
        rows = np.repeat(np.arange(n), m)
        matrix = coo_array((np.ones(n * m), (rows, np.arange(n * m))), (n, n * m + 2 * m))
        return LinearConstraint(matrix, 1.0, 1.0)

    def _held(self, sizes: np.ndarray) -> LinearConstraint:
        """The load of a consumer is at most its capacity, and 0 if it is closed."""
        return LinearConstraint(self._loads(sizes, -np.array(self.rooms), 0.0), -np.inf, 0.0)

    def _valued(self, sizes: np.ndarray, costs: Costs) -> list[LinearConstraint]:
        """What a consumer's room costs is nowhere below a tangent of V."""
        value, small = costs.value, costs.value.deviation / 1_000
        found = []
        for touched in TANGENTS:
            room = touched * value.deviation
            slope = (value(room + small) - value(room)) / small
            at_empty = value(room) + slope * (np.array(self.rooms) - room)
            found.append(
                LinearConstraint(self._loads(-slope * sizes, at_empty, -1.0), -np.inf, 0.0)
            )
        return found

    def _loads(self, sizes: np.ndarray, per_open: np.ndarray, per_value: float) -> coo_array:
        """Return rows: sizes . x[:, j] + per_open[j] y[j] + per_value v[j]."""
        n, m = len(self.names), len(self.slots)
        every = np.arange(m)
        rows = np.concatenate([np.tile(every, n), every, every])
        columns = np.concatenate([np.arange(n * m), n * m + every, n * m + m + every])
        numbers = np.concatenate([np.repeat(sizes, m), per_open, np.full(m, per_value)])
        return coo_array((numbers, (rows, columns)), (m, n * m + 2 * m))
