"""The exact solver of small clusters; where no optimum is proved in time, the best one known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import structlog

from binwright.balancer.decide.search.draft import Draft
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.problem import Problem
from binwright.balancer.decide.search.solution import Solution
from binwright.balancer.decide.search.undo import undo
from binwright.balancer.exact.program import Program, Solved

log = structlog.get_logger()

LARGEST = 1_000
"""Pairs of replica and broker in one program; for more, the search decides."""


@dataclass(frozen=True, slots=True)
class Exact:
    """Solves by an integer program, and falls back to the search: logged as `plan.approximated`.

    Attributes:
        limit_s: Seconds for one program.
    """

    limit_s: float = 20.0
    _search: Heuristic = field(default_factory=Heuristic)

    def place(self, problem: Problem) -> Solution:
        """Return the placement that copies least. See `Solver`."""
        if not _fits(problem):
            return self._search.place(problem)
        solved = Program(problem).fewest_bytes(self.limit_s)
        if solved.proved:
            return self._proved(problem, solved)
        near = self._search.place(problem)
        return self._approximated([near, *_found(solved)], problem)

    def fewest(self, problem: Problem) -> Solution:
        """Return the placement on the fewest brokers; of these, the one that copies least."""
        if not _fits(problem):
            return self._search.fewest(problem)
        program = Program(problem)
        first = program.fewest_brokers(self.limit_s)
        second = first if first.at is None else program.fewest_bytes(self.limit_s, _used(first.at))
        if first.proved and second.proved:
            return self._proved(problem, second, fewest=True)
        near = self._search.fewest(problem)
        return self._approximated([near, *_found(first), *_found(second)], problem, fewest=True)

    def _proved(self, problem: Problem, solved: Solved, *, fewest: bool = False) -> Solution:
        """Return the optimum; where there is no placement, the search's best."""
        if solved.at is not None:
            return Solution(_undone(problem, solved.at, fewest), feasible=True, proved=True)
        return Solution(self._search.place(problem).at, feasible=False, proved=True)

    def _approximated(
        self, found: Sequence[Solution], problem: Problem, *, fewest: bool = False
    ) -> Solution:
        """Return the best of several placements, none of which is proved."""
        log.info("plan.approximated", reason=f"no proof within {self.limit_s:g} s")
        return min(found, key=lambda one: (not one.feasible, _rank(problem, one.at, fewest)))


def _undone(problem: Problem, at: Sequence[Sequence[int]], fewest: bool) -> Sequence[Sequence[int]]:
    """Return an optimum without the moves that no constraint needs.

    Beside large partitions, what moves of small ones and of leaders cost is below the tolerance of
    the program's solver.
    """
    draft = Draft(problem, at)
    if fewest:  # nothing returns to a broker that is closed
        draft.limits = [
            limit if held else (-inf, -inf, -inf, -inf)
            for limit, held in zip(draft.limits, draft.held, strict=True)
        ]
    undo(draft)
    return draft.at


def _found(solved: Solved) -> Iterator[Solution]:
    if solved.at is not None:
        yield Solution(solved.at, feasible=True)


def _fits(problem: Problem) -> bool:
    """Return whether a problem is small enough for a program; log it if not."""
    pairs = sum(problem.counts) * len(problem.brokers)
    if pairs > LARGEST:
        log.info("plan.approximated", reason=f"more than {LARGEST} pairs of replica and broker")
    return pairs <= LARGEST


def _used(at: Sequence[Sequence[int]]) -> int:
    """Return how many brokers hold something."""
    return len({b for replicas in at for b in replicas})


def _rank(problem: Problem, at: Sequence[Sequence[int]], fewest: bool) -> tuple[int, int, int]:
    """Return brokers if they count, bytes, and leader moves: less is better."""
    draft = Draft(problem, at)
    return _used(at) if fewest else 0, draft.copied(), draft.led_elsewhere()
