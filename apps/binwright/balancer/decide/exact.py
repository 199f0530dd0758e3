"""The exact solver of small clusters: an integer program for the fewest bytes copied.

Variables: x[p, b] = 1 where broker b holds partition p, y[p, b] = 1 where it leads it; z[t, b] = 1
where it holds topic t of an anti-colocation group; o[b] = 1 where it holds anything.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from binwright.balancer.decide.search.draft import PlacementDraft, undo
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.problem import PlacementProblem, Solution

OPTIMAL, TIME_OUT, NO_SOLUTION = 0, 1, 2
"""Statuses of scipy's result."""
LEADER_SHARE = 1e-4
"""What all leader moves together cost, in units of the smallest replica: they only break ties."""


LARGEST = 1_000
"""Pairs of replica and broker in one program; for more, the search decides."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What the program says: the best placement, or None; and whether that is proved."""

    at: Sequence[Sequence[int]] | None
    proved: bool


class Program:
    """The variables, rows and costs of one problem."""

    def __init__(self, problem: PlacementProblem) -> None:
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
        result = milp(
            costs,
            integrality=np.ones(self._size),
            bounds=self._bounds(),
            constraints=_matrix([*self._rows, *more], self._size),
            options={"time_limit": limit_s, "mip_rel_gap": 1e-6},
        )
        if result.x is None:
            return Solved(None, result.status == NO_SOLUTION)
        return Solved(self._at(result.x), result.status == OPTIMAL)

    def _at(self, values: np.ndarray) -> list[list[int]]:
        """Return the brokers of each partition: the leader, those of today, then new ones."""
        replicas = []
        for p, homes in enumerate(self._problem.homes):
            x = values[self._x(p, 0) : self._x(p, 0) + self._m]
            leader = int(values[self._y(p, 0) : self._y(p, 0) + self._m].argmax())
            held = [b for b in range(self._m) if x[b] > 1 / 2]
            order = {b: place for place, b in enumerate(homes)}
            held.sort(key=lambda b: (b != leader, order.get(b, len(order)), b))
            replicas.append(held)
        return replicas


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


@dataclass(frozen=True, slots=True)
class ExactSolver:
    """Solves by an integer program, and falls back to the search.

    Attributes:
        limit_s: Seconds for one program.
        on_fallback: Called with the reason when the search decides.
    """

    limit_s: float = 20.0
    on_fallback: Callable[[str], None] = lambda _reason: None
    _search: Heuristic = field(default_factory=Heuristic)

    def place(self, problem: PlacementProblem) -> Solution:
        """Return the placement that copies least. See `Solver`."""
        if not self._fits(problem):
            return self._search.place(problem)
        solved = Program(problem).fewest_bytes(self.limit_s)
        if solved.proved:
            return self._proved(problem, solved)
        near = self._search.place(problem)
        return self._approximated([near, *_solutions(solved)], problem)

    def fewest(self, problem: PlacementProblem) -> Solution:
        """Return the placement on the fewest brokers; of these, the one that copies least."""
        if not self._fits(problem):
            return self._search.fewest(problem)
        program = Program(problem)
        first = program.fewest_brokers(self.limit_s)
        second = first if first.at is None else program.fewest_bytes(self.limit_s, _used(first.at))
        if first.proved and second.proved:
            return self._proved(problem, second, fewest=True)
        near = self._search.fewest(problem)
        return self._approximated(
            [near, *_solutions(first), *_solutions(second)], problem, fewest=True
        )

    def _fits(self, problem: PlacementProblem) -> bool:
        """Return whether a problem is small enough for a program."""
        fits = sum(problem.counts) * len(problem.brokers) <= LARGEST
        if not fits:
            self.on_fallback(f"more than {LARGEST} pairs of replica and broker")
        return fits

    def _proved(
        self, problem: PlacementProblem, solved: Solved, *, fewest: bool = False
    ) -> Solution:
        """Return the optimum; where there is no placement, the search's best."""
        if solved.at is not None:
            return Solution(_undone(problem, solved.at, fewest), feasible=True, proved=True)
        return Solution(self._search.place(problem).at, feasible=False, proved=True)

    def _approximated(
        self, solutions: Sequence[Solution], problem: PlacementProblem, *, fewest: bool = False
    ) -> Solution:
        """Return the best of several placements, none of which is proved."""
        self.on_fallback(f"no proof within {self.limit_s:g} s")
        return min(solutions, key=lambda one: (not one.feasible, _rank(problem, one.at, fewest)))


def _undone(
    problem: PlacementProblem, at: Sequence[Sequence[int]], fewest: bool
) -> Sequence[Sequence[int]]:
    """Return an optimum without the moves that no constraint needs.

    Beside large partitions, what moves of small ones and of leaders cost is below the tolerance of
    the program's solver.
    """
    draft = PlacementDraft(problem, at)
    if fewest:  # nothing returns to a broker that is closed
        draft.limits = [
            limit if held else (-inf, -inf, -inf, -inf)
            for limit, held in zip(draft.limits, draft.held, strict=True)
        ]
    undo(draft)
    return draft.at


def _solutions(solved: Solved) -> Iterator[Solution]:
    if solved.at is not None:
        yield Solution(solved.at, feasible=True)


def _used(at: Sequence[Sequence[int]]) -> int:
    """Return how many brokers hold something."""
    return len({b for replicas in at for b in replicas})


def _rank(
    problem: PlacementProblem, at: Sequence[Sequence[int]], fewest: bool
) -> tuple[int, int, int]:
    """Return brokers if they count, bytes, and leader moves: less is better."""
    draft = PlacementDraft(problem, at)
    return _used(at) if fewest else 0, draft.copied(), draft.led_elsewhere()
