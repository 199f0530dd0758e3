"""Improves a draft of a small cluster: a tabu search that may exceed limits on its way.

A limit that is exceeded costs, and costs more the longer it stays so; all prices fall while every
limit holds. So the search swings around the border of what is feasible, where the cheapest
placements are. See Yagiura, Ibaraki and Glover, "An ejection chain approach for the generalized
assignment problem" (2004), for prices that adapt.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from binwright.balancer.decide.search.draft import PlacementDraft, undo
from binwright.balancer.decide.search.problem import PlacementProblem, Vector

LARGEST = 1_000
"""Pairs of replica and broker in one search; larger clusters are not improved."""
STEPS, EVALUATIONS = 1_000, 400_000
"""Steps of a search at most, and changes that all of them evaluate together."""
PRICE = 2.0
"""What a load above a limit costs at first, in units of the bytes that moving it copies."""
DEARER, CHEAPER = 2.0, 0.7
"""Factors on prices after each step, where a limit is exceeded and where all hold."""
AWAY, STAYS = 9, 4
"""Steps for which a replica does not return to a broker, and does not leave it again."""
LEADER = 1e-7
"""What a leader move costs, in the same units: it only breaks ties."""


class TabuStep(NamedTuple):
    """A change of one partition and what it costs; the least is taken."""

    cost: float
    partition: int
    source: int
    target: int
    leads: bool  # only the leadership goes from source to target


def is_small(problem: PlacementProblem) -> bool:
    """Return whether the search improves placements of a problem."""
    return sum(problem.counts) * len(problem.brokers) <= LARGEST


def improved(draft: PlacementDraft) -> PlacementDraft:
    """Return the best draft that is met; the one given where it is large, or nothing is better."""
    if not draft.at or not draft.is_complete() or not is_small(draft.problem):
        return draft
    if not any(_rank(draft)):
        return draft  # as it is today, and within every limit
    pairs = sum(draft.problem.counts) * len(draft.loads)
    search, step = _TabuSearch(draft), 0
    while step < min(STEPS, EVALUATIONS // pairs) and search.advance(step):
        step += 1
    return search.best


class _TabuSearch:
    """One tabu search: a draft, prices, what is forbidden until when, and the best so far."""

    def __init__(self, draft: PlacementDraft) -> None:
        problem = draft.problem
        self.best, self._rank = draft, _rank(draft)
        self._draft = PlacementDraft(problem, draft.at)
        self._prices = [[PRICE] * 4 for _ in draft.loads]
        copied = sum(s * n for s, n in zip(problem.sizes, problem.counts, strict=True))
        unit = copied / len(draft.loads) or 1.0
        self._sizes = [size / unit for size in problem.sizes]
        self._forbidden: dict[tuple[int, int], int] = {}  # a target, until a step
        self._bound: dict[tuple[int, int], int] = {}  # a source, until a step
        self._exceeds = [0.0] * len(draft.loads)

    def advance(self, now: int) -> bool:
        """Take the best step that is allowed, and adapt the prices; whether there was one."""
        draft = self._draft
        self._exceeds = [self._priced(b, (0.0, 0.0, 0.0, 0.0), 1) for b in range(len(draft.loads))]
        step = min(self._steps(now), default=None)
        if step is None:
            return False
        _, p, b, c, leads = step
        (draft.lead(p, c) if leads else draft.shift(p, b, c))
        self._forbidden[p, b] = now + AWAY + (now * 7 + p) % 5
        self._bound[p, c] = now + STAYS + (now * 3 + p) % 3
        self._adapt()
        return True

    def _adapt(self) -> None:
        """Keep the draft if it is the best; make exceeded limits dearer, or all cheaper."""
        draft, feasible = self._draft, True
        for prices, load, limit in zip(self._prices, draft.loads, draft.limits, strict=True):
            for place in range(4):
                if load[place] > limit[place]:
                    prices[place] *= DEARER
                    feasible = False
        if not feasible:
            return
        for prices in self._prices:
            prices[:] = [CHEAPER * price for price in prices]
        if _rank(draft) < self._rank:
            best = PlacementDraft(draft.problem, draft.at)
            undo(best)
            self.best, self._rank = best, _rank(best)

    def _steps(self, now: int) -> Iterator[TabuStep]:
        """Yield every allowed step."""
        draft, problem = self._draft, self._draft.problem
        for p, replicas in enumerate(draft.at):
            if problem.fixed[p]:
                continue
            for b in replicas:
                if b not in problem.pins[p] and self._bound.get((p, b), -1) < now:
                    yield from self._shifts(p, b, now)
            if len(replicas) > 1 and problem.leads[p] != problem.follows[p]:
                yield from self._leads(p, replicas, now)

    def _shifts(self, p: int, b: int, now: int) -> Iterator[TabuStep]:
        """Yield where the replica of a broker could go."""
        draft, size, homes = self._draft, self._sizes[p], self._draft.problem.homes[p]
        needs = draft.needed(p, b)
        saved = self._exceeds[b] - self._priced(b, needs, -1) + (0.0 if b in homes else size)
        for c in range(len(draft.loads)):
            if self._forbidden.get((p, c), -1) < now and draft.may_hold(p, c, b):
                cost = self._priced(c, needs, 1) - self._exceeds[c] - saved
                yield TabuStep(cost if c in homes else cost + size, p, b, c, leads=False)

    def _leads(self, p: int, replicas: Sequence[int], now: int) -> Iterator[TabuStep]:
        """Yield which follower could lead."""
        more, b, home = self._draft.leader_extra(p), replicas[0], self._draft.problem.homes[p][0]
        saved = self._exceeds[b] - self._priced(b, more, -1) + (0.0 if b == home else LEADER)
        for c in replicas[1:]:
            if self._forbidden.get((p, c), -1) < now:
                cost = self._priced(c, more, 1) - self._exceeds[c] - saved
                yield TabuStep(cost if c == home else cost + LEADER, p, b, c, leads=True)

    def _priced(self, b: int, needs: Vector, sign: int) -> float:
        """Return what a broker's excess costs with needs added or taken away."""
        total = 0.0
        draft = self._draft
        rows = zip(draft.loads[b], needs, draft.limits[b], self._prices[b], strict=True)
        for load, need, limit, price in rows:
            exceeded = load + sign * need - limit
            if exceeded > 0:
                total += price * exceeded
        return total


def _rank(draft: PlacementDraft) -> tuple[float, int, int]:
    """Return what makes a draft better than another: less excess, fewer bytes, fewer leaders."""
    excess = sum(draft.excess(b) for b in range(len(draft.loads)))
    return excess, draft.copied(), draft.led_elsewhere()
