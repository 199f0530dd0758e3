"""How the monitor measures."""

import re
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from binwright.shell.settings.section import Seconds, Section


class MonitorSettings(Section):
    """How the monitor measures."""

    interval_s: Seconds = 1.0
    """From one measurement to the next."""
    window_s: Seconds = 30.0
    """What a rate is averaged over; at least two intervals."""
    topic: str = "binwright.metrics"
    """Where measurements go."""
    pattern: str | None = None
    """Measure also every topic whose whole name fits this regular expression; never Kafka's own."""
    answer_s: Seconds = 2.0
    """How long a pass waits for a broker; partitions of one that is late are stale meanwhile."""
    sizes_per_pass: Annotated[int, Field(gt=0)] = 20_000
    """Of more partitions than this the sizes are asked in turns, the offsets always."""

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as exc:
            raise ValueError(f"not a regular expression: {value!r}: {exc}") from exc
        return value

    @model_validator(mode="after")
    def _window_holds_passes(self) -> Self:
        if self.window_s < 2 * self.interval_s:
            raise ValueError(
                f"window_s ({self.window_s}) must be at least twice interval_s ({self.interval_s})"
            )
        return self
