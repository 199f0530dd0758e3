"""Which monitor is followed: one for each topic, and another when it falls silent.

Two monitors may run, so that the death of one costs nothing. Their windows differ (one may just
have started), and switching between them would look like a change of load: a topic follows one
monitor for as long as that one publishes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from immutables import Map

from binwright.protocol.metrics import Measurement

SILENT_AFTER_PASSES = 3
MIN_SILENT_AFTER_S = 5.0
"""A monitor is silent after this many passes, and not before this many seconds."""


@dataclass(frozen=True, slots=True)
class MonitorSeen:
    """When a monitor last published: anything, or of one topic."""

    monitor: str
    number: int  # of its last pass
    seen_at: float
    silent_after_s: float

    def silent(self, now: float) -> bool:
        """Whether its next measurement is overdue."""
        return now - self.seen_at > self.silent_after_s


@dataclass(frozen=True, slots=True)
class Monitors:
    """The monitors that publish, and the one that each topic follows."""

    seen: Mapping[str, MonitorSeen] = field(default_factory=dict)  # monitor -> its last measurement
    followed: Map[str, MonitorSeen] = field(default_factory=Map)  # topic -> followed monitor


def accept_measurement(
    known: Monitors, now: float, measurement: Measurement
) -> tuple[Monitors, bool, bool]:
    """Apply a measurement; return whether it is accepted, and whether its monitor is new.

    Accepted are measurements of the monitor that the topic follows, and of another one once the
    followed one is silent about the topic. A pass older than the last accepted one is not.
    """
    silent_after_s = max(MIN_SILENT_AFTER_S, SILENT_AFTER_PASSES * measurement.interval_s)
    latest = MonitorSeen(measurement.monitor, measurement.number, now, silent_after_s)
    new = measurement.monitor not in known.seen
    seen = {**known.seen, measurement.monitor: latest}
    followed = known.followed.get(measurement.topic)
    if followed is not None:
        if followed.monitor == measurement.monitor:
            if measurement.number < followed.number:
                return Monitors(seen, known.followed), False, new
        elif not followed.silent(now):
            return Monitors(seen, known.followed), False, new
    return Monitors(seen, known.followed.set(measurement.topic, latest)), True, new


def drop_silent(known: Monitors, now: float) -> tuple[Monitors, tuple[MonitorSeen, ...]]:
    """Return the monitors without those that are silent by now, and these, sorted by name."""
    silent = [monitor for monitor in known.seen.values() if monitor.silent(now)]
    if not silent:
        return known, ()
    seen = {name: monitor for name, monitor in known.seen.items() if not monitor.silent(now)}
    return replace(known, seen=seen), tuple(sorted(silent, key=lambda one: one.monitor))
