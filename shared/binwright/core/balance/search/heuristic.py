"""The heuristic as a solver: the order of its steps."""

from binwright.core.balance.search.draft import Draft
from binwright.core.balance.search.fewest import fewest
from binwright.core.balance.search.problem import Problem
from binwright.core.balance.search.repair import repair
from binwright.core.balance.search.seed import Places, seeded
from binwright.core.balance.search.solution import Solution
from binwright.core.balance.search.tabu import improved
from binwright.core.balance.search.undo import undo


class Heuristic:
    """Finds placements for clusters of any size; proves nothing."""

    def place(self, problem: Problem) -> Solution:
        """Return a placement within the limits that copies few bytes. See `Solver`."""
        return _solution(searched(problem, problem.homes))

    def fewest(self, problem: Problem) -> Solution:
        """Return a placement on few brokers that copies few bytes. See `Solver`."""
        return fewest(problem, lambda left, start: _solution(searched(left, start)))


def searched(problem: Problem, start: Places) -> Draft:
    """Return the best draft that is found from a start."""
    draft = seeded(problem, start)
    repair(draft)
    undo(draft)
    return improved(draft)


def _solution(draft: Draft) -> Solution:
    return Solution(draft.at, draft.is_complete() and not draft.overloaded())
