"""Where a view and the controller differ in what plans are made by."""

from collections.abc import Iterator
from dataclasses import replace

from binwright.controller.decide.states import Sentinel, State
from binwright.group.group import Group
from binwright.group.plans import has_fresh_measurements, packing_request, triggers
from binwright.look.group_view import GroupView
from binwright.packing.zones import NO_ZONES


def settled(state: State, seen: Group) -> bool:
    """Whether a controller compares, and no command is under way.

    Commands are not in the topics that a view reads. A new leader waits for measurements; what was
    measured before it began, a view knows.
    """
    group = state.group
    return (
        isinstance(state, Sentinel)
        and has_fresh_measurements(group, state.since, state.since)
        and set(seen.load.rates.names) <= set(group.load.rates.names)
        and not group.members.partitions.pending
        and not group.members.writers.pending
        and group.members.splits == seen.members.splits
    )


def differences(state: State, view: GroupView, now_ms: int) -> list[str]:
    """Return where a view that has read all records differs from the controller that leads."""
    return [] if state.group.term is None else [*_differences(state, view, now_ms)]


def _differences(state: State, view: GroupView, now_ms: int) -> Iterator[str]:
    group, seen = state.group, view.at(now_ms)
    pairs: dict[str, tuple[object, object]] = {
        "limits": (group.config.limits, seen.config.limits),
        "capacities": (group.config.capacities, seen.config.capacities),
        "rates": (dict(group.load.rates), {p: seen.load.rates.get(p) for p in group.load.rates}),
        "catch_up": (dict(group.load.catch_up), dict(seen.load.catch_up)),
        "controls": (group.people.controls, seen.people.controls),
        "usable": (group.members.usable(), seen.members.usable()),
    }
    if settled(state, seen):
        pairs |= {
            "owners": (group.members.assignment(), seen.members.assignment()),
            "unread": (group.unread(), seen.unread()),
            "gone": (group.gone_partitions(), seen.gone_partitions()),
            "loads": (group.loads(), seen.loads()),
            "left": (group.capacities, seen.capacities),
            "triggers": (triggers(group), triggers(seen)),
            "request": (_asked(group, view), _asked(seen, view)),
        }
    return (f"{name}: {ours} {theirs}" for name, (ours, theirs) in pairs.items() if ours != theirs)


def _asked(group: Group, view: GroupView) -> object:
    """Return what a packing is asked, without how much rates change: that began at other times.

    A new leader may not have seen yet where partitions can be read.
    """
    request = packing_request(group)
    load = replace(request.load, variance=None)
    return replace(request, load=load if view.terms == 1 else replace(load, zones=NO_ZONES))
