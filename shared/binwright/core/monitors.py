"""Which monitor is believed: one for each topic, and another when it falls silent of it.

Two monitors may run, so that the death of one costs nothing. Their windows differ (one may just
have begun), and rates that jump from one to the other would look like load that jumps: of each
topic one monitor is followed for as long as it speaks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from immutables import Map

from binwright.core.events import Say
from binwright.core.messages import Measurement

PATIENCE_PASSES = 3
PATIENCE_S = 5.0
"""A monitor is silent after this many passes, and not before so many seconds."""


@dataclass(frozen=True, slots=True)
class Voice:
    """A monitor that was heard: of anything, or of one topic."""

    monitor: str
    number: int  # of its last pass
    heard_at: float
    patience_s: float

    def silent(self, now: float) -> bool:
        """Whether it should have spoken again by now."""
        return now - self.heard_at > self.patience_s


@dataclass(frozen=True, slots=True)
class Monitors:
    """Who speaks, and who is believed of which topic."""

    voices: Mapping[str, Voice] = field(default_factory=dict)  # monitor -> when it last spoke
    followed: Map[str, Voice] = field(default_factory=Map)  # topic -> who is believed


def take(known: Monitors, now: float, said: Measurement) -> tuple[Monitors, bool, tuple[Say, ...]]:
    """Hear a measurement; return whether it counts, and what people should be told.

    One counts that comes from the monitor followed, or from another once that one is silent of
    the topic. A pass that is older than the last one counted does not.
    """
    patience_s = max(PATIENCE_S, PATIENCE_PASSES * said.interval_s)
    voice = Voice(said.monitor, said.number, now, patience_s)
    tell: tuple[Say, ...] = ()
    if said.monitor not in known.voices:
        tell = (Say("monitor.heard", {"monitor": said.monitor}),)
    voices = {**known.voices, said.monitor: voice}
    followed = known.followed.get(said.topic)
    if followed is not None:
        if followed.monitor == said.monitor:
            if said.number < followed.number:
                return Monitors(voices, known.followed), False, tell
        elif not followed.silent(now):
            return Monitors(voices, known.followed), False, tell
    return Monitors(voices, known.followed.set(said.topic, voice)), True, tell


def listen(known: Monitors, now: float) -> tuple[Monitors, tuple[Say, ...]]:
    """Let time pass; return what should be told of monitors that fell silent."""
    gone = [voice for voice in known.voices.values() if voice.silent(now)]
    if not gone:
        return known, ()
    voices = {name: voice for name, voice in known.voices.items() if not voice.silent(now)}
    tell = tuple(
        Say(
            "monitor.silent",
            {
                "monitor": voice.monitor,
                "seconds": round(now - voice.heard_at, 1),
                "others": len(voices),
                "effect": "another is followed" if voices else "the assignment stays as it is",
            },
        )
        for voice in sorted(gone, key=lambda voice: voice.monitor)
    )
    return replace(known, voices=voices), tell
