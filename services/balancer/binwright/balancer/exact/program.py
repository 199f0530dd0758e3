"""The integer program of a placement: fewest bytes copied within all limits.

Variables: x[p, b] = 1 where broker b holds partition p, y[p, b] = 1 where it leads it; z[t, b] = 1
where it holds topic t of an anti-colocation group; o[b] = 1 where it holds anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from binwright.balancer.decide.search.problem import Problem

OPTIMAL, TIME_OUT, NO_SOLUTION = 0, 1, 2
"""Statuses of scipy's result."""
LEADER_SHARE = 1e-4
"""What all leader moves together cost, in units of the smallest replica: they only break ties."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What the program says: the best placement, or None; and whether that is proved."""

    at: Sequence[Sequence[int]] | None
    proved: bool


class Program:
    """The variables, rows and costs of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._n, self._m = len(problem.names), len(problem.brokers)
        in_groups = {(t, g) for t, g in zip(problem.topics, problem.groups, strict=True) if g >= 0}
        self._topics = sorted(in_groups)
        self._rows: list[tuple[dict[int, float], float, float]] = []
        self._rows.extend(self._replicas())
        self._rows.extend(self._loads())
        self._rows.extend(self._racks())
        self._rows.extend(self._groups())

    # --- variables -----------------------------------------------------------------------------

    def _x(self, p: int, b: int) -> int:
        return p * self._m + b

    def _y(self, p: int, b: int) -> int:
        return (self._n + p) * self._m + b

    def _z(self, t: int, b: int) -> int:
        return (2 * self._n + t) * self._m + b

    def _o(self, b: int) -> int:
        return (2 * self._n + len(self._topics)) * self._m + b

    @property
    def _size(self) -> int:
        return (2 * self._n + len(self._topics) + 1) * self._m

    # --- rows ----------------------------------------------------------------------------------

    def _replicas(self) -> Iterator[tuple[dict[int, float], float, float]]:
        """Each partition has its replicas and one leader, which is one of them."""
        brokers = range(self._m)
        for p, count in enumerate(self._problem.counts):
            yield {self._x(p, b): 1.0 for b in brokers}, count, count
            yield {self._y(p, b): 1.0 for b in brokers}, 1.0, 1.0
            for b in brokers:
                yield {self._y(p, b): 1.0, self._x(p, b): -1.0}, -np.inf, 0.0

    def _loads(self) -> Iterator[tuple[dict[int, float], float, float]]:
        """A broker's load is within its limits, and nothing where it is not open."""
        problem = self._problem
        for b in range(self._m):
            for place, limit in enumerate(problem.limits[b]):
                row = {}
                for p in range(self._n):
                    follow, lead = problem.follows[p][place], problem.leads[p][place]
                    row[self._x(p, b)] = follow
                    row[self._y(p, b)] = lead - follow
                row = {column: number for column, number in row.items() if number}
                if row and limit < np.inf:
                    yield {**row, self._o(b): -limit}, -np.inf, 0.0
            yield (
                {self._x(p, b): 1.0 for p in range(self._n)} | {self._o(b): -float(self._n)},
                -np.inf,
                0.0,
            )

    def _racks(self) -> Iterator[tuple[dict[int, float], float, float]]:
        """No rack holds more replicas of a partition than it may."""
        problem = self._problem
        for p, most in enumerate(problem.most):
            if most < problem.counts[p] and not problem.fixed[p]:
                for rack in sorted(set(problem.racks)):
                    there = [b for b in range(self._m) if problem.racks[b] == rack]
                    if len(there) > most:
                        yield {self._x(p, b): 1.0 for b in there}, -np.inf, most

    def _groups(self) -> Iterator[tuple[dict[int, float], float, float]]:
        """A broker holds one topic of a group."""
        number = {topic: t for t, (topic, _) in enumerate(self._topics)}
        for b in range(self._m):
            for p, group in enumerate(self._problem.groups):
                if group >= 0:
                    z = self._z(number[self._problem.topics[p]], b)
                    yield {self._x(p, b): 1.0, z: -1.0}, -np.inf, 0.0
            for group in sorted({g for _, g in self._topics}):
                members = [t for t, (_, g) in enumerate(self._topics) if g == group]
                yield {self._z(t, b): 1.0 for t in members}, -np.inf, 1.0

    # --- costs and bounds ----------------------------------------------------------------------

    def _bytes(self) -> np.ndarray:
        """Return what each variable copies, in units of the largest size."""
        problem, costs = self._problem, np.zeros(self._size)
        unit = max(1, *problem.sizes) if problem.sizes else 1
        least = min((size for size in problem.sizes if size), default=1)
        for p, homes in enumerate(problem.homes):
            for b in range(self._m):
                costs[self._x(p, b)] = 0.0 if b in homes else problem.sizes[p] / unit
                if b != homes[0]:
                    costs[self._y(p, b)] = LEADER_SHARE * least / unit / self._n
        return costs

    def _bounds(self) -> Bounds:
        """Fix what is fixed, pinned, or not allowed."""
        problem, lower, upper = self._problem, np.zeros(self._size), np.ones(self._size)
        for p, homes in enumerate(problem.homes):
            for b in range(self._m):
                held = b in homes if problem.fixed[p] else b in problem.pins[p]
                allowed = b in homes if problem.fixed[p] else problem.allowed[p][b]
                lower[self._x(p, b)], upper[self._x(p, b)] = held, allowed
            if problem.fixed[p]:
                lower[self._y(p, homes[0])] = 1.0
        return Bounds(lower, upper)

    # --- solving -------------------------------------------------------------------------------

    def fewest_bytes(self, limit_s: float, brokers: int | None = None) -> Solved:
        """Return the placement that copies least, on at most so many brokers."""
        if brokers is None:
            return self._solved(self._bytes(), limit_s)
        opened = {self._o(b): 1.0 for b in range(self._m)}
        return self._solved(self._bytes(), limit_s, (opened, 0.0, float(brokers)))

    def fewest_brokers(self, limit_s: float) -> Solved:
        """Return a placement on the fewest brokers."""
        costs = np.zeros(self._size)
        costs[self._o(0) : self._o(0) + self._m] = 1.0
        return self._solved(costs, limit_s)

    def _solved(
        self, costs: np.ndarray, limit_s: float, *more: tuple[dict[int, float], float, float]
    ) -> Solved:
        if (self._bounds().lb > self._bounds().ub).any():
            return Solved(None, proved=True)
        found = milp(
            costs,
            integrality=np.ones(self._size),
            bounds=self._bounds(),
            constraints=_matrix([*self._rows, *more], self._size),
            options={"time_limit": limit_s, "mip_rel_gap": 1e-6},
        )
        if found.x is None:
            return Solved(None, found.status == NO_SOLUTION)
        return Solved(self._at(found.x), found.status == OPTIMAL)

    def _at(self, values: np.ndarray) -> list[list[int]]:
        """Return the brokers of each partition: the leader, those of today, then new ones."""
        found = []
        for p, homes in enumerate(self._problem.homes):
            x = values[self._x(p, 0) : self._x(p, 0) + self._m]
            leader = int(values[self._y(p, 0) : self._y(p, 0) + self._m].argmax())
            held = [b for b in range(self._m) if x[b] > 1 / 2]
            order = {b: place for place, b in enumerate(homes)}
            held.sort(key=lambda b: (b != leader, order.get(b, len(order)), b))
            found.append(held)
        return found


def _matrix(rows: Sequence[tuple[dict[int, float], float, float]], size: int) -> LinearConstraint:
    """Return rows of coefficients with their bounds as one constraint."""
    numbers, at, columns = [], [], []
    for place, (row, _, _) in enumerate(rows):
        for column, number in row.items():
            numbers.append(number)
            at.append(place)
            columns.append(column)
    matrix = coo_array((numbers, (at, columns)), (len(rows), size))
    return LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows])
