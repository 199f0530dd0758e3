"""A range of a group's history: records in, what was timed in it out."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import merge

from binwright.lab.timings.events import GroupTimings
from binwright.lab.timings.steps import Pass
from binwright.protocol.messages import Inbound
from binwright.protocol.model import PerSlot


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record of metadata partition 0; its time is in s since 1970."""

    at_s: float
    offset: int
    message: Inbound


def timings_since(
    records: Iterable[GroupRecord], passes: Iterable[Pass], limits: PerSlot, since_s: float
) -> GroupTimings:
    """Return what was timed from `since_s` on.

    Args:
        records: In the order of the topic; those before `since_s` only say who reads what.
        passes: In the order of the metrics topic.
        limits: What consumers sustain.
        since_s: Where the range begins, s since 1970.
    """
    found, begun = GroupTimings(limits), False
    # At the same time, the measurement is first: it may be what the plan answers.
    events = merge(_ordered(passes), _ordered(records), key=lambda event: event[0])
    for at_s, event in events:
        if not begun and at_s >= since_s:
            found.forget_events()
            begun = True
        match event:
            case Pass(measurement=measurement):
                found.apply_measurement(at_s, measurement)
            case GroupRecord(offset=offset, message=message):
                found.apply(at_s, offset, message)
    if not begun:
        found.forget_events()
    return found


def _ordered(
    events: Iterable[Pass] | Iterable[GroupRecord],
) -> Iterable[tuple[float, Pass | GroupRecord]]:
    """Yield events with times that never fall: senders' clocks differ, the topic's order counts."""
    latest = 0.0
    for event in events:
        latest = max(latest, event.at_s)
        yield latest, event
