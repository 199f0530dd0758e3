"""A greedy plan in the order of Cruise Control's goals, written here for the comparison.

It is ours, not Cruise Control: goals are taken one after the other; for each, brokers above the
upper threshold give replicas away, the largest first, to the brokers with the least, and brokers
below the lower one take some; no action may break a goal that came before. Leaders move first for
the network out and for the number of leaders.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from binwright.balancer.decide.loads import hard_limits
from binwright.balancer.decide.model import Cluster, Placement
from binwright.balancer.decide.search.draft import PlacementDraft
from binwright.balancer.decide.search.heuristic import seeded
from binwright.balancer.decide.search.problem import compiled

REPLICAS, DISK, IN, OUT, LEADERS = range(5)
ALL_GOALS = (REPLICAS, DISK, IN, OUT, LEADERS)
"""In the order of the default goals, of those that count here; racks and capacities before all."""
LOAD_GOALS = (DISK, IN, OUT)
"""Those that the balance of loads is about."""
ROUNDS = 4
"""Passes over the brokers for each goal."""


class Action(NamedTuple):
    """A replica, or only its leadership, that goes from one broker to another."""

    partition: int
    source: int
    target: int
    leads: bool


def goal_order(cluster: Cluster, threshold: float, goals: Sequence[int]) -> Placement:
    """Return the placement of the greedy plan.

    Args:
        cluster: As it is.
        threshold: Upper threshold in units of the mean, as 1.05; the lower one is as far below.
        goals: In their order.
    """
    problem = compiled(cluster, hard_limits(cluster))
    plan = _Greedy(seeded(problem, problem.homes), threshold)
    for goal in goals:
        plan.satisfy(goal)
    return problem.placement(plan.draft.at)


class _Greedy:
    """A draft, the thresholds of each goal, and the goals that were satisfied before."""

    def __init__(self, draft: PlacementDraft, threshold: float) -> None:
        self.draft = draft
        self._usable = [b for b, limit in enumerate(draft.problem.limits) if any(limit)]
        self._leaders = [0] * len(draft.loads)
        for at in draft.at:
            self._leaders[at[0]] += 1
        self._threshold = threshold
        self._before: list[int] = []
        self._mean = [0.0] * 5

    def satisfy(self, goal: int) -> None:
        """Move until each broker is within the thresholds of a goal, or nothing may move."""
        self._mean[goal] = sum(self._load(goal, b) for b in self._usable) / len(self._usable)
        for _ in range(ROUNDS):
            moved = False
            for b in sorted(self._usable, key=lambda b: (-self._load(goal, b), b)):
                if self._load(goal, b) > self._upper(goal):
                    moved |= self._give(goal, b)
            for c in sorted(self._usable, key=lambda c: (self._load(goal, c), c)):
                if self._load(goal, c) < self._lower(goal):
                    moved |= self._take(goal, c)
            if not moved:
                break
        self._before.append(goal)

    def _upper(self, goal: int) -> float:
        return self._mean[goal] * self._threshold

    def _lower(self, goal: int) -> float:
        return self._mean[goal] * (2 - self._threshold)

    def _load(self, goal: int, b: int) -> float:
        if goal == REPLICAS:
            return len(self.draft.held[b])
        return self._leaders[b] if goal == LEADERS else self.draft.loads[b][goal - 1]

    def _amount(self, goal: int, action: Action) -> float:
        """Return by how much an action changes a goal's load."""
        p, b, _, leads = action
        is_leader = self.draft.at[p][0] == b
        if goal == REPLICAS:
            return 0.0 if leads else 1.0
        if goal == LEADERS:
            return float(is_leader)
        needs = self.draft.leader_extra(p) if leads else self.draft.needed(p, b)
        return needs[goal - 1]

    def _actions(self, goal: int, b: int) -> Iterator[tuple[int, bool]]:
        """Yield what a broker could give away, leaderships first where they count, large first."""
        draft = self.draft
        led = [p for p in draft.held[b] if draft.at[p][0] == b]
        by_lead = sorted(led, key=lambda p: (-draft.problem.leads[p][2], p))
        if goal in (OUT, LEADERS):
            yield from ((p, True) for p in by_lead)
        if goal == LEADERS:
            return
        place = max(0, goal - 1)
        whole = sorted(draft.held[b], key=lambda p: (-draft.needed(p, b)[place], p))
        yield from ((p, False) for p in whole if draft.needed(p, b)[place] > 0)

    def _give(self, goal: int, b: int) -> bool:
        """Give away until a broker is within the upper threshold; whether anything moved."""
        moved = False
        for p, leads in list(self._actions(goal, b)):
            if self._load(goal, b) <= self._upper(goal):
                break
            if p not in self.draft.held[b] or (leads and self.draft.at[p][0] != b):
                continue
            targets = self.draft.at[p][1:] if leads else self._usable
            for c in sorted(targets, key=lambda c: (self._load(goal, c), c)):
                if self._do(goal, Action(p, b, c, leads)):
                    moved = True
                    break
        return moved

    def _take(self, goal: int, c: int) -> bool:
        """Take from the brokers with the most until one is within the lower threshold."""
        moved = False
        for b in sorted(self._usable, key=lambda b: (-self._load(goal, b), b)):
            for p, leads in list(self._actions(goal, b)):
                if self._load(goal, c) >= self._lower(goal):
                    return moved
                if self._load(goal, b) <= self._mean[goal]:
                    break
                if not leads or c in self.draft.at[p]:
                    moved |= self._do(goal, Action(p, b, c, leads))
        return moved

    def _do(self, goal: int, action: Action) -> bool:
        """Carry an action out if it is allowed; whether it was."""
        p, b, c, leads = action
        draft = self.draft
        if not leads and not (draft.may_leave(p, b) and draft.may_hold(p, c, b)):
            return False
        needs = draft.leader_extra(p) if leads else draft.needed(p, b)
        if not (draft.fits(c, needs) and self._accepts(goal, action)):
            return False
        led = draft.at[p][0] == b
        self._leaders[b] -= led
        self._leaders[c] += led
        if leads:
            draft.lead(p, c)
        else:
            draft.shift(p, b, c)
        return True

    def _accepts(self, goal: int, action: Action) -> bool:
        """Return whether an action keeps this goal and those before within their thresholds."""
        _, b, c, _ = action
        if self._load(goal, c) + self._amount(goal, action) > self._upper(goal):
            return False
        for before in self._before:
            amount = self._amount(before, action)
            if amount and self._load(before, c) + amount > self._upper(before):
                return False
            left = self._load(before, b)
            if amount and left >= self._lower(before) > left - amount:
                return False
        return True
