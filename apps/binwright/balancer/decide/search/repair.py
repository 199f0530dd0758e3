"""Brings loads within the limits: leader moves first, as they copy nothing, then cheap replicas."""

from collections.abc import Sequence
from math import inf

from binwright.balancer.decide.search.draft import SLACK, PlacementDraft
from binwright.balancer.decide.search.problem import Vector

ROUNDS, ENOUGH = 30, 0.999
"""Rounds over all overloaded brokers; one that leaves more than this share of the excess is the
last."""
BROKERS, SWAPS, PARTNERS = 16, 60, 12
"""For an exchange: brokers that are tried, swaps with each, replicas that are tried for a swap."""
GAIN = 1e-12
"""A swap lowers the excess by more than this, which is more than the error of a sum."""
TIGHT = 0.02
"""A broker has no room for more of a resource if less than this share of its load is free."""
MISSES = 400
"""Replicas in a row that find no broker, after which the others of a broker are not tried."""


MARGIN = 0.02
"""Brokers pass on this share of their limit more than they must: others can then pass to them."""
SWEEPS = 40
"""Passes over the brokers whose leaders are too much for them."""


def repair(draft: PlacementDraft) -> None:
    """Lower the excess until there is none, or nothing found lowers it further.

    First as if leaders needed no more than followers, then leaders alone: what can be done by
    their moves copies nothing. What is then left needs both.
    """
    limits = draft.limits
    draft.limits = [(disk, into, inf, cpu) for disk, into, _, cpu in limits]
    _unload_all(draft)
    draft.limits = limits
    spread_leaders(draft)
    before, rounds = inf, 0
    while 0 < (total := _total(draft)) < before * ENOUGH and rounds < ROUNDS:
        before, rounds = total, rounds + 1
        _unload_all(draft)
        for b in _by_excess(draft):
            _exchange(draft, b)
        spread_leaders(draft)


def _total(draft: PlacementDraft) -> float:
    return sum(draft.excess(b) for b in range(len(draft.loads)))


def _by_excess(draft: PlacementDraft) -> list[int]:
    """Return the overloaded brokers, the worst first."""
    return sorted(draft.overloaded(), key=lambda b: (-draft.excess(b), b))


# --- replicas ------------------------------------------------------------------------------------


def _unload_all(draft: PlacementDraft) -> None:
    for b in _by_excess(draft):
        _unload(draft, b)


def _unload(draft: PlacementDraft, b: int) -> None:
    """Move replicas away from an overloaded broker to brokers that have room for them."""
    over, misses = _over(draft, b), 0
    candidates = iter(_candidates(draft, b, over))
    targets = _roomy(draft, b)
    while over and misses < MISSES:
        p = next(candidates, None)
        if p is None:
            return
        target = _target(draft, p, b, targets)
        if target < 0:
            misses += 1
            continue
        misses = 0
        draft.shift(p, b, target)
        now = _over(draft, b)
        if now != over:  # another resource decides what is cheap
            over, candidates = now, iter(_candidates(draft, b, now))


def _over(draft: PlacementDraft, b: int) -> tuple[int, ...]:
    """Return the resources of which a broker carries too much."""
    pairs = zip(draft.loads[b], draft.limits[b], strict=True)
    return tuple(place for place, (load, limit) in enumerate(pairs) if load > limit)


def _candidates(draft: PlacementDraft, b: int, over: Sequence[int]) -> list[int]:
    """Return the partitions whose replica at b lowers its excess, the most per byte first."""
    problem, candidates = draft.problem, []
    for p in draft.held[b]:
        if draft.may_leave(p, b):
            needs = draft.needed(p, b)
            gain = 0.0
            for place in over:
                gain += needs[place]
            if gain > 0:
                # What moved here already moves on for nothing.
                cost = problem.sizes[p] if b in problem.homes[p] else 0
                candidates.append((cost / gain, -gain, p))
    candidates.sort()
    return [p for _, _, p in candidates]


def _roomy(draft: PlacementDraft, b: int) -> list[int]:
    """Return the other brokers that are within every limit."""
    return [
        c
        for c, (load, limit) in enumerate(zip(draft.loads, draft.limits, strict=True))
        if c != b
        and load[0] < limit[0]
        and load[1] < limit[1]
        and load[2] < limit[2]
        and load[3] < limit[3]
    ]


def _target(draft: PlacementDraft, p: int, b: int, targets: Sequence[int]) -> int:
    """Return the broker that a replica fits best: a home, else the emptiest; -1: none."""
    needs, homes = draft.needed(p, b), draft.problem.homes[p]
    best, least = -1, (1, 2.0)
    for c in targets:
        if draft.fits(c, needs) and draft.may_hold(p, c, b):
            rank = (0 if c in homes else 1, draft.fill(c, needs))
            if rank < least:
                best, least = c, rank
    return best


# --- exchanges -----------------------------------------------------------------------------------


def _exchange(draft: PlacementDraft, b: int) -> None:
    """Swap replicas of an overloaded broker for others, while that lowers the excess."""
    over = _over(draft, b)
    others = [c for c in range(len(draft.loads)) if c != b]
    others.sort(key=lambda c: (-sum(_slack(draft, c, place) for place in over), c))
    for c in others[:BROKERS]:
        if not draft.excess(b):
            return
        _trade(draft, b, c)


def _slack(draft: PlacementDraft, c: int, place: int) -> float:
    return draft.limits[c][place] - draft.loads[c][place]


def _trade(draft: PlacementDraft, b: int, c: int) -> None:
    """Swap replicas of b, rich in what it has too much of, for such of c that are poor in it."""
    signs = [_sign(draft, b, c, place) for place in range(4)]
    gives = sorted((-_score(draft, p, b, signs), p) for p in draft.held[b])
    takes = sorted((_score(draft, q, c, signs), q) for q in draft.held[c])
    offered = [p for _, p in gives if draft.may_leave(p, b) and draft.may_hold(p, c, b)]
    wanted = [q for _, q in takes if draft.may_leave(q, c) and draft.may_hold(q, b, c)][:SWAPS]
    for p in offered[:SWAPS]:
        gains = ((_swap_gain(draft, p, b, q, c), -q) for q in wanted[:PARTNERS])
        gain, q = max(gains, default=(0.0, 0))
        if gain > GAIN and _may_swap(draft, (p, b), (-q, c)):
            draft.shift(p, b, c)
            draft.shift(-q, c, b)
            wanted.remove(-q)
            if not draft.excess(b):
                return


def _may_swap(draft: PlacementDraft, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether two replicas may still change places: swaps before may have brought groups."""
    (p, b), (q, c) = one, other
    return draft.may_hold(p, c, b) and draft.may_hold(q, b, c)


def _sign(draft: PlacementDraft, b: int, c: int, place: int) -> float:
    """Return 1 for what b has too much of, -1 for what c has no room for, 0 for neither or both."""
    lacks = _slack(draft, c, place) < TIGHT * draft.loads[c][place]
    return float(_slack(draft, b, place) < 0) - float(lacks)


def _score(draft: PlacementDraft, p: int, b: int, signs: Sequence[float]) -> float:
    needs = draft.needed(p, b)
    return signs[0] * needs[0] + signs[1] * needs[1] + signs[2] * needs[2] + signs[3] * needs[3]


def _swap_gain(draft: PlacementDraft, p: int, b: int, q: int, c: int) -> float:
    """Return by how much the excess falls when p goes from b to c and q from c to b."""
    gives, takes = draft.needed(p, b), draft.needed(q, c)
    net = (gives[0] - takes[0], gives[1] - takes[1], gives[2] - takes[2], gives[3] - takes[3])
    after = _above(draft, b, net, -1) + _above(draft, c, net, 1)
    return draft.excess(b) + draft.excess(c) - after


def _above(draft: PlacementDraft, b: int, needs: Vector, sign: int) -> float:
    """Return the excess of a broker with needs added (1) or taken away (-1)."""
    rows = zip(draft.loads[b], needs, draft.limits[b], strict=True)
    return sum(max(0.0, load + sign * need - limit) for load, need, limit in rows)


def spread_leaders(draft: PlacementDraft) -> None:
    """Pass leaderships on from brokers with too many, until there is none or no pass helps.

    One may go to a broker that then has too much itself, but less than the giver had: it passes
    others on in the next sweep.
    """
    passed, sweeps = 1, 0
    while passed and sweeps < SWEEPS:
        shares = [_led_share(draft, b) for b in range(len(draft.loads))]
        # Brokers that are nearly full pass on as well, to make room for those above.
        full = [b for b, share in enumerate(shares) if share > 1 - MARGIN and max(shares) > 1]
        full.sort(key=lambda b: (-shares[b], b))
        passed, sweeps = sum(_pass_on(draft, b) for b in full), sweeps + 1


def evened(draft: PlacementDraft, even: Sequence[Vector]) -> PlacementDraft:
    """Return a draft with leaders spread to tighter limits than its own, if it stays within both.

    Args:
        draft: Within its limits.
        even: What each broker should carry, as far as leaders can do it.
    """
    spread = PlacementDraft(draft.problem, draft.at)
    limits = spread.limits
    spread.limits = [(inf, inf, tight[2] + SLACK, tight[3] + SLACK) for tight in even]
    spread_leaders(spread)
    spread.limits = limits
    return draft if spread.overloaded() else spread


def _led_share(draft: PlacementDraft, b: int) -> float:
    """Return the largest share of a limit that a broker carries, of what leaders need."""
    load, limit = draft.loads[b], draft.limits[b]
    return max(load[2] / limit[2], load[3] / limit[3])


def _pass_on(draft: PlacementDraft, b: int) -> bool:
    """Let followers elsewhere lead instead of a broker; whether any does."""
    problem, any_passed = draft.problem, False
    led = [p for p in draft.held[b] if draft.at[p][0] == b and not problem.fixed[p]]
    # Leaders that came here go back first: that makes fewer moves of leaders.
    led.sort(key=lambda p: (problem.homes[p][0] == b, -problem.leads[p][2], p))
    for p in led:
        if (share := _led_share(draft, b)) <= 1 - MARGIN:
            return any_passed
        more = draft.leader_extra(p)
        shares = ((_share_with(draft, c, more), c) for c in draft.at[p][1:])
        least, c = min(shares, default=(share, b))
        if least < share * (1 - 1e-9) and (share > 1 or least <= 1 - MARGIN):
            draft.lead(p, c)
            any_passed = True
    return any_passed


def _share_with(draft: PlacementDraft, c: int, more: Vector) -> float:
    load, limit = draft.loads[c], draft.limits[c]
    return max((load[2] + more[2]) / limit[2], (load[3] + more[3]) / limit[3])
