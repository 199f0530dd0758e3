"""How the monitor measures."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from binwright.shell.settings.section import Seconds, Section, TopicPattern


class MonitorSettings(Section):
    """How the monitor measures."""

    interval_s: Seconds = 1.0
    """From one measurement to the next."""
    window_s: Seconds = 30.0
    """What a rate is averaged over; at least two intervals."""
    topic: str = "binwright.metrics"
    """Where measurements go."""
    pattern: TopicPattern | None = None
    """Measure also topics whose whole name fits this expression, though no group lands them."""
    groups: bool = True
    """Measure also what groups' controllers ask for; else only what these settings name."""
    answer_s: Seconds = 2.0
    """How long a pass waits for a broker; partitions of one that is late are stale meanwhile."""
    sizes_per_pass: Annotated[int, Field(gt=0)] = 20_000
    """Of more partitions than this the sizes are asked in turns, the offsets always."""

    @model_validator(mode="after")
    def _window_holds_passes(self) -> Self:
        if self.window_s < 2 * self.interval_s:
            raise ValueError(
                f"window_s ({self.window_s}) must be at least twice interval_s ({self.interval_s})"
            )
        return self
