"""Until when nothing can change: the ticks before that need not be sent.

A tick changes nothing while no command waits for its reply, every consumer is ready, no consumer is
overloaded and no deadline has passed. All of that is known beforehand: rates are known functions
of time. A tick too many is harmless, so every bound here is on the early side; a test compares
decisions with those of a controller that ticks every second.
"""

from math import floor, inf

from binwright.controller.decide.catch_up import SLACK_S
from binwright.controller.decide.moves import wanted_writers
from binwright.controller.decide.states import Manage, Sentinel, State
from binwright.group.group import Group
from binwright.group.ownership import Owned, PendingCommand
from binwright.lab.simulation.fluid.arrivals import FluidLoad
from binwright.lab.simulation.scenario import TICK_S, Scenario, first_overload
from binwright.protocol.model import Slot

NO_BACKLOG_S = SLACK_S / 2
"""What is written in this time is less than what a partition may be behind by: half is to spare."""


def next_tick(state: State, now: float, scenario: Scenario, *, behind: bool = False) -> float:
    """Return the first tick after the one at `now` that may do something, seconds.

    Args:
        state: Of the machine after the tick at `now`; ticks are `TICK_S` apart.
        now: Of a tick.
        scenario: Gives the rates that are measured.
        behind: Whether anything that was written is not read yet.
    """
    group = state.group
    counts = bool(group.settings.catch_up_s)  # backlogs do, and they are not known beforehand
    if _unsettled(group) or (counts and behind) or group.settings.frozen_hours:
        return now + TICK_S
    config = group.config
    match state:
        case Manage(since=since):
            partitions = group.members.partitions
            sent = (partitions[p] for p in partitions.pending)
            replies = [at.sent_at for at in sent if isinstance(at, PendingCommand)]
            due = min(
                [
                    since + config.settings.plan_timeout_s,
                    *(s + config.settings.command_retry_s for s in replies),
                ]
            )
            return max(_tick_at(due, now), now + TICK_S)
        case Sentinel(since=since) if not _wants_plan(group):
            last = _tick_at(since + config.settings.replan_interval_s, now) + TICK_S
            if counts:
                last = min(last, _tick_at(now + NO_BACKLOG_S, now))
            owned = _shared(group, scenario.load)
            limits = {slot: config.limits.for_slot(slot) for slot in owned}
            return first_overload(scenario, owned, limits, now, last)
        case _:
            return now + TICK_S


def _tick_at(time: float, now: float) -> float:
    """Return the last tick that is not after `time`, on the grid of the tick at `now`."""
    return now + floor((time - now) / TICK_S) * TICK_S


def awaits_reports(group: Group) -> bool:
    """Whether a table's writer changes, or does not report its table yet."""
    writers = group.members.writers
    if writers.pending or writers.released:
        return True
    return any(
        not group.members.get(at.slot).tables_of(topic)
        for topic, at in writers.items()
        if isinstance(at, Owned)
    )


def _unsettled(group: Group) -> bool:
    """Whether a consumer starts or ends, or a table's writer changes, or will once none starts."""
    if group.term is None or awaits_reports(group):
        return True
    writers = {t: at.slot for t, at in group.members.writers.items() if isinstance(at, Owned)}
    if wanted_writers(group, inf) != writers:
        return True
    living = (member for member in group.members.by_slot.values() if member.epoch is not None)
    return any(not member.usable for member in living)


def _wants_plan(group: Group) -> bool:
    """Whether the next tick finds a reason for a plan, whatever the rates are."""
    partitions = group.members.partitions
    wanted = min(group.settings.min_slots, len(partitions))
    unowned = partitions.pending or partitions.released or group.gone_partitions()
    return bool(unowned) or len(partitions.slots) < wanted or group.people.proposal is not None


def _shared(group: Group, load: FluidLoad) -> dict[Slot, list[int]]:
    """Return what each consumer reads; one with a single partition is never overloaded."""
    partitions = group.members.partitions
    owned = {slot: partitions.owned_by(slot) for slot in sorted(partitions.slots)}
    return {slot: [load.index[p] for p in ps] for slot, ps in owned.items() if len(ps) > 1}
