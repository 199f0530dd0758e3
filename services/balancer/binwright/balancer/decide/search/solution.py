"""What a solver returns: a placement by places, and how good it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from binwright.balancer.decide.search.problem import Problem


@dataclass(frozen=True, slots=True)
class Solution:
    """The best placement that a solver found.

    Attributes:
        at: Brokers of each partition by place, the leader first; fewer than asked where no broker
            was found for a replica.
        feasible: Whether it satisfies every constraint of the problem.
        proved: Whether nothing better exists; without `feasible`: whether nothing feasible does.
    """

    at: Sequence[Sequence[int]]
    feasible: bool
    proved: bool = False


class Solver(Protocol):
    """Solves a problem: exactly, or not."""

    def place(self, problem: Problem) -> Solution:
        """Return a placement within the limits that copies few bytes."""

    def fewest(self, problem: Problem) -> Solution:
        """Return a placement on few brokers that copies few bytes."""
