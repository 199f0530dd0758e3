"""Brings leaders into the racks in which their consumers run: that copies nothing."""

from collections import defaultdict
from itertools import islice

from binwright.balancer.decide.search.draft import PlacementDraft

PARTNERS = 12
"""Partitions that a leader is exchanged with, at most, before it stays where it is."""

Waiting = defaultdict[tuple[int, int], dict[int, None]]
"""The broker that leads and one that may -> partitions, in the order in which they were tried."""


def bring_near(draft: PlacementDraft) -> None:
    """Let replicas in the racks of a partition's readers lead, the most read first.

    Where that is too much for a broker, two partitions that want to go the other way change
    leaders. No broker gets more above its limits than it was.
    """
    leads = draft.problem.leads
    far = [p for p in range(len(leads)) if _is_far(draft, p)]
    waiting: Waiting = defaultdict(dict)
    for p in sorted(far, key=lambda p: (-leads[p][2], p)):
        if not _lead_near(draft, p) and not _exchange(draft, p, waiting):
            for c in _wanted(draft, p):
                waiting[draft.at[p][0], c][p] = None


def _is_far(draft: PlacementDraft, p: int) -> bool:
    """Whether the racks of a partition's readers are known, and its leader is in none of them."""
    near = draft.problem.near[p]
    return bool(near) and not draft.problem.fixed[p] and draft.at[p][0] not in near


def _wanted(draft: PlacementDraft, p: int) -> list[int]:
    """Return the brokers that could lead a partition near its readers."""
    return [c for c in draft.at[p][1:] if c in draft.problem.near[p]]


def _lead_near(draft: PlacementDraft, p: int) -> bool:
    """Let the emptiest broker lead that is near and has room; whether one has."""
    more = draft.leader_extra(p)
    fitting = [(draft.fill(c, more), c) for c in _wanted(draft, p) if draft.fits(c, more)]
    if fitting:
        draft.lead(p, min(fitting)[1])
    return bool(fitting)


def _exchange(draft: PlacementDraft, p: int, waiting: Waiting) -> bool:
    """Let a waiting partition lead where this one does, and this one there; whether one did."""
    here = draft.at[p][0]
    for c in _wanted(draft, p):
        before = draft.excess(here) + draft.excess(c)
        for q in islice(waiting[c, here], PARTNERS):
            draft.lead(p, c)
            draft.lead(q, here)
            if draft.excess(here) + draft.excess(c) <= before:
                for other in draft.at[q]:
                    waiting[c, other].pop(q, None)
                return True
            draft.lead(q, c)
            draft.lead(p, here)
    return False
