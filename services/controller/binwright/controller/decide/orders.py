"""Ends people's orders in time, and publishes what they hold back."""

import re
from dataclasses import replace

from binwright.controller.decide.events import Publish, Update
from binwright.controller.decide.replacements import roll_held
from binwright.group.budgets import affords
from binwright.group.group import Group
from binwright.group.plans import order_triggers, overload, overloaded, reader_triggers
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.metadata import Held
from binwright.protocol.orders import MAX_SHOWN, MAX_TEXT, signed

ORDER_EXPIRED = LogEvent.info(
    "order.expired", "The time of a person's order is over: it holds nothing back any more."
)
PLAN_HELD = LogEvent.info(
    "plan.held", "Orders or settings hold a plan back, or cannot be followed; `reasons` says which."
)
PLAN_RELEASED = LogEvent.info(
    "plan.released", "What orders or settings held back (`was`) is held back no more."
)

PERCENTAGE = re.compile(r"[\d.]+%")


def refresh_controls(group: Group, wall_ms: int) -> Update:
    """Return the group at this time, ms since 1970: some orders have ended, hours have begun."""
    before = group.people.controls
    group = replace(group, people=group.people.at(wall_ms, group.config))
    if before is group.people.controls:
        return group, ()
    ended = (order for order in before.orders if order not in group.people.controls.orders)
    return group, tuple(Log(ORDER_EXPIRED, {"order": signed(order)}) for order in ended)


# --- what is held back ---------------------------------------------------------------------------


def held_reasons(group: Group) -> tuple[str, ...]:
    """Return what orders and settings hold back at present, a sentence each."""
    reasons = [*group.people.controls.ignored]
    if group.people.controls.frozen:
        waiting = (*reader_triggers(group), *_approved(group))
        reasons += [f"{group.people.controls.frozen}; waits: {reason}" for reason in waiting]
    elif group.settings.mode == "observe":
        reasons += [f"the group only observes; waits: {reason}" for reason in order_triggers(group)]
    else:
        reasons += group.people.over_budget
        reasons += [f"{plan}: its moves exceed controller.moves_per_hour" for plan in _over(group)]
        reasons += _overloads(group)
    reasons += roll_held(group)
    return tuple(text[:MAX_TEXT] for text in reasons[:MAX_SHOWN])


def _approved(group: Group) -> list[str]:
    """Return the plan that is approved and waits, if there is one."""
    if (proposal := group.people.proposal) is None or not proposal.approved:
        return []
    return [f"plan {proposal.number}, which is approved"]


def _over(group: Group) -> list[str]:
    fits = group.people.proposal is None or affords(group, group.people.proposal)
    return [] if fits else _approved(group)


def _overloads(group: Group) -> list[str]:
    """Return which consumers a number of consumers, or pins, leave above their limit."""
    rules, overloads = group.people.controls.rules, list[str]()
    if rules.consumers is None and not rules.pins:
        return overloads
    for slot, share in overloaded(group):
        own, text = group.members.partitions.owned_by(slot), overload(slot, share)
        if all(rules.pin(p) == slot for p in own):
            overloads.append(f"{text}: all of it is pinned there")
        elif rules.consumers is not None:
            overloads.append(f"{text}: {group.people.controls.scale}")
    return overloads


def _shapes(reasons: tuple[str, ...]) -> list[str]:
    """Return the sentences without percentages, which change with each measurement."""
    return [PERCENTAGE.sub("", reason) for reason in reasons]


def publish_held(group: Group) -> Update:
    """Publish what is held back, where that has changed."""
    reasons, last = held_reasons(group), group.people.held
    if (term := group.term) is None or _shapes(reasons) == _shapes(last):
        return group, ()
    group = replace(group, people=replace(group.people, held=reasons))
    log = Log(PLAN_HELD, {"reasons": reasons}) if reasons else Log(PLAN_RELEASED, {"was": last})
    return group, (log, Publish(Held(term=term, reasons=reasons)))
