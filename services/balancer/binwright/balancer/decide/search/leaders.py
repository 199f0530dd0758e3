"""Spreads the leaderships of partitions over their replicas, which copies nothing."""

from collections.abc import Sequence
from math import inf

from binwright.balancer.decide.search.draft import SLACK, Draft
from binwright.balancer.decide.search.problem import Vector

MARGIN = 0.02
"""Brokers pass on this share of their limit more than they must: others can then pass to them."""
SWEEPS = 40
"""Passes over the brokers whose leaders are too much for them."""


def difference(draft: Draft, p: int) -> Vector:
    """Return what a leader needs more than a follower."""
    lead, follow = draft.problem.leads[p], draft.problem.follows[p]
    return (
        lead[0] - follow[0],
        lead[1] - follow[1],
        lead[2] - follow[2],
        lead[3] - follow[3],
    )


def spread_leaders(draft: Draft) -> None:
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


def evened(draft: Draft, even: Sequence[Vector]) -> Draft:
    """Return a draft with leaders spread to tighter limits than its own, if it stays within both.

    Args:
        draft: Within its limits.
        even: What each broker should carry, as far as leaders can do it.
    """
    found = Draft(draft.problem, draft.at)
    limits = found.limits
    found.limits = [(inf, inf, tight[2] + SLACK, tight[3] + SLACK) for tight in even]
    spread_leaders(found)
    found.limits = limits
    return draft if found.overloaded() else found


def _led_share(draft: Draft, b: int) -> float:
    """Return the largest share of a limit that a broker carries, of what leaders need."""
    load, limit = draft.loads[b], draft.limits[b]
    return max(load[2] / limit[2], load[3] / limit[3])


def _pass_on(draft: Draft, b: int) -> bool:
    """Let followers elsewhere lead instead of a broker; whether any does."""
    problem, any_passed = draft.problem, False
    led = [p for p in draft.held[b] if draft.at[p][0] == b and not problem.fixed[p]]
    # Leaders that came here go back first: that makes fewer moves of leaders.
    led.sort(key=lambda p: (problem.homes[p][0] == b, -problem.leads[p][2], p))
    for p in led:
        if (share := _led_share(draft, b)) <= 1 - MARGIN:
            return any_passed
        more = difference(draft, p)
        shares = ((_share_with(draft, c, more), c) for c in draft.at[p][1:])
        least, c = min(shares, default=(share, b))
        if least < share * (1 - 1e-9) and (share > 1 or least <= 1 - MARGIN):
            draft.lead(p, c)
            any_passed = True
    return any_passed


def _share_with(draft: Draft, c: int, more: Vector) -> float:
    load, limit = draft.loads[c], draft.limits[c]
    return max((load[2] + more[2]) / limit[2], (load[3] + more[3]) / limit[3])
