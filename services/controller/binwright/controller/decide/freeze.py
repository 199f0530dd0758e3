"""What a freeze takes away from a plan that is being carried out."""

from dataclasses import replace

from binwright.controller.decide.moves import goal_for
from binwright.controller.decide.states import Manage
from binwright.group.budgets import uncount_moves
from binwright.group.ownership import Owned


def without_moves(state: Manage) -> Manage:
    """Return the state without the moves that have not begun.

    Those off consumers that are asked to end, or whose nodes go, stay. The others do not count for
    the budget of the hour.
    """
    group, goal = state.group, state.goal
    staying = {
        p: at.slot
        for p in goal.misplaced
        if isinstance(at := group.members.partitions.get(p), Owned) and not group.departs(at.slot)
    }
    if staying:
        people = uncount_moves(group.people, staying.keys() & state.moves)
        group = replace(group, people=people)
        goal = goal_for(group, {**goal.target, **staying})
    return replace(state, group=group, goal=goal, frozen=True)
