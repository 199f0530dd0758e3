"""Takes back moves that no constraint needs any more."""

from binwright.balancer.decide.search.draft import Draft
from binwright.balancer.decide.search.leaders import difference


def undo(draft: Draft) -> None:
    """Return replicas and leaders to their brokers of today while every limit holds.

    The most bytes first, until a pass returns nothing.
    """
    again = True
    while again:
        again = _return_replicas(draft)
    _return_leaders(draft)


def _return_replicas(draft: Draft) -> bool:
    """Return replicas home; whether any went."""
    problem, any_returned = draft.problem, False
    moved = [p for p, at in enumerate(draft.at) if not problem.fixed[p] and _away(draft, p, at)]
    for p in sorted(moved, key=lambda p: (-problem.sizes[p], p)):
        for c in _away(draft, p, draft.at[p]):
            for home in problem.homes[p]:
                needs = draft.needed(p, c)
                fits = draft.may_leave(p, c) and draft.may_hold(p, home, c)
                if fits and draft.fits(home, needs):
                    draft.shift(p, c, home)
                    any_returned = True
                    break
    return any_returned


def _away(draft: Draft, p: int, at: list[int]) -> list[int]:
    """Return the brokers that would copy a partition."""
    homes = draft.problem.homes[p]
    return [b for b in at if b not in homes]


def _return_leaders(draft: Draft) -> None:
    """Let the leaders of today lead again where they still have a replica, and room."""
    for p, at in enumerate(draft.at):
        leader = draft.problem.homes[p][0]
        is_follower = at and at[0] != leader and leader in at
        if is_follower and draft.fits(leader, difference(draft, p)):
            draft.lead(p, leader)
