"""The heuristic as a solver: the order of its steps."""

from binwright.balancer.decide.search.draft import Draft
from binwright.balancer.decide.search.fewest import fewest
from binwright.balancer.decide.search.problem import Problem
from binwright.balancer.decide.search.repair import repair
from binwright.balancer.decide.search.seed import Places, seeded
from binwright.balancer.decide.search.solution import Solution
from binwright.balancer.decide.search.tabu import improved
from binwright.balancer.decide.search.undo import undo


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
