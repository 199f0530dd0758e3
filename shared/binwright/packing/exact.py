"""The assignment of least cost for one decision of a small group, by an integer program.

The objective is that of `sticky`: price x consumers + V(spare) + moved load, bytes/s. V is convex;
the program bounds it from below by tangents, each a linear constraint, so between two tangents it
takes V a little too low.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np
import structlog
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from binwright.packing.inputs import Load
from binwright.packing.sticky.draft import Costs
from binwright.packing.sticky.policy import PRICE, Sticky
from binwright.packing.zones import NO_ZONES
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import Assignment, Slot, TopicPartition

PACKING_APPROXIMATED = LogEvent.info(
    "packing.approximated", "The packing `exact` gave up and used the answer of `sticky`."
)

_log = structlog.get_logger()  # noqa: TID251 - below `runtime`

LARGEST = 64
"""Partitions with a load in one program; for more, `sticky` decides."""
TANGENTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Rooms at which a tangent of V is taken, in standard deviations of room."""
OPTIMAL = 0
"""The status of scipy's result when the optimum is proved."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The assignment of least cost; where it cannot be proved in time, that of `sticky`.

    The fallback is logged as `packing.approximated`.

    Attributes:
        price: Of a consumer, as of `Sticky`.
        limit_s: Seconds for one decision.
    """

    price: float = PRICE
    limit_s: float = 5.0

    def __post_init__(self) -> None:
        """Raise `PackingError` for a price that `Sticky` refuses."""
        Sticky(self.price)

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        """Return the new owner of each partition. See `catalogue.Packing`."""
        load = replace(load, zones=NO_ZONES)
        approximate = Sticky(self.price)
        fallback, costs = approximate(load), approximate.costs(load)
        program = _Program.of(load, fallback)
        if len(program.names) > LARGEST:
            _log.info(PACKING_APPROXIMATED, reason=f"more than {LARGEST} partitions")
            return fallback
        optimal = program.solve(costs, self.limit_s)
        if optimal is None:
            _log.info(PACKING_APPROXIMATED, reason=f"no proof within {self.limit_s:g} s")
            return fallback
        better = {**fallback, **optimal}
        if objective(load, better, costs) > objective(load, fallback, costs):
            return fallback  # the two differ by less than the error of the tangents
        return _with_idle_partitions(load, better, set(optimal.values()))


def objective(load: Load, target: Assignment, costs: Costs) -> float:
    """Return what a decision costs, bytes/s: price x consumers with a load + V(spare) + moved."""
    rates, current, capacities = load.rates, load.current, load.checked()
    loads: dict[Slot, float] = {}
    for p, slot in target.items():
        if rates[p]:
            loads[slot] = loads.get(slot, 0.0) + rates[p]
    moved = sum(rates[p] for p, slot in target.items() if current.get(p, slot) != slot)
    spare = sum(
        costs.value(max(0.0, capacities.for_slot(slot) - used)) for slot, used in loads.items()
    )
    return costs.price * len(loads) + spare + moved


def _with_idle_partitions(
    load: Load, target: dict[TopicPartition, Slot], used: set[Slot]
) -> dict[TopicPartition, Slot]:
    """Give partitions without a load to consumers that are in use anyway."""
    if not used:
        return target
    homes = {p: load.current.get(p, slot) for p, slot in target.items() if not load.rates[p]}
    return target | {p: home if home in used else min(used) for p, home in homes.items()}


@dataclass(frozen=True, slots=True)
class _Program:
    """The integer program over partitions that share consumers."""

    names: Sequence[TopicPartition]
    sizes: Sequence[float]  # rates, bytes/s
    homes: Sequence[Slot | None]  # current owners
    slots: Sequence[Slot]
    spares: Sequence[float]  # capacities of `slots`, bytes/s

    @classmethod
    def of(cls, load: Load, fallback: Assignment) -> "_Program":
        """Leave out partitions without a load, and those alone above their consumer's capacity."""
        rates, current, capacities = load.rates, load.current, load.capacities
        alone = {fallback[p] for p in fallback if rates[p] > capacities.for_slot(fallback[p])}
        names = [p for p in fallback if rates[p] and fallback[p] not in alone]
        used = {current[p] for p in names if p in current} | {fallback[p] for p in names}
        fresh = (Slot(n) for n in count() if Slot(n) not in used | alone)
        slots = [*sorted(used - alone), *islice(fresh, 1)]
        return cls(
            names,
            [rates[p] for p in names],
            [current.get(p) for p in names],
            slots,
            [capacities.for_slot(slot) for slot in slots],
        )

    def solve(self, costs: Costs, limit_s: float) -> dict[TopicPartition, Slot] | None:
        """Return the best assignment, or None if it is not proved within `limit_s` seconds.

        Variables: x[i, j] = 1 where consumer j reads partition i; y[j] = 1 where consumer j is
        used; v[j], the cost of its room, bytes/s.
        """
        n, m = len(self.names), len(self.slots)
        if not n:
            return {}
        sizes = np.array(self.sizes)
        home = np.array([[at == slot for slot in self.slots] for at in self.homes])
        moving = np.where(home.any(axis=1, keepdims=True) & ~home, sizes[:, None], 0.0)
        solution = milp(
            np.concatenate([moving.ravel(), np.full(m, costs.price), np.ones(m)]),
            integrality=np.repeat([1, 1, 0], [n * m, m, m]),
            bounds=Bounds(0.0, np.repeat([1.0, 1.0, np.inf], [n * m, m, m])),
            constraints=[self._one_owner(), self._capacity(sizes), *self._spare_cost(sizes, costs)],
            options={"time_limit": limit_s, "mip_rel_gap": 1e-6},
        )
        if solution.status != OPTIMAL:
            return None
        at = solution.x[: n * m].reshape(n, m).argmax(axis=1)
        return {name: self.slots[at[i]] for i, name in enumerate(self.names)}

    def _one_owner(self) -> LinearConstraint:
        """Each partition has one owner."""
        n, m = len(self.names), len(self.slots)
        rows = np.repeat(np.arange(n), m)
        matrix = coo_array((np.ones(n * m), (rows, np.arange(n * m))), (n, n * m + 2 * m))
        return LinearConstraint(matrix, 1.0, 1.0)

    def _capacity(self, sizes: np.ndarray) -> LinearConstraint:
        """The load of a consumer is at most its capacity, and 0 if it is not used."""
        return LinearConstraint(self._loads(sizes, -np.array(self.spares), 0.0), -np.inf, 0.0)

    def _spare_cost(self, sizes: np.ndarray, costs: Costs) -> list[LinearConstraint]:
        """The cost of a consumer's room is not below any tangent of V."""
        value, small = costs.value, costs.value.deviation / 1_000
        constraints = []
        for touched in TANGENTS:
            spare = touched * value.deviation
            slope = (value(spare + small) - value(spare)) / small
            at_empty = value(spare) + slope * (np.array(self.spares) - spare)
            constraints.append(
                LinearConstraint(self._loads(-slope * sizes, at_empty, -1.0), -np.inf, 0.0)
            )
        return constraints

    def _loads(self, sizes: np.ndarray, per_open: np.ndarray, per_value: float) -> coo_array:
        """Return rows: sizes . x[:, j] + per_open[j] y[j] + per_value v[j]."""
        n, m = len(self.names), len(self.slots)
        every = np.arange(m)
        rows = np.concatenate([np.tile(every, n), every, every])
        columns = np.concatenate([np.arange(n * m), n * m + every, n * m + m + every])
        numbers = np.concatenate([np.repeat(sizes, m), per_open, np.full(m, per_value)])
        return coo_array((numbers, (rows, columns)), (m, n * m + 2 * m))
