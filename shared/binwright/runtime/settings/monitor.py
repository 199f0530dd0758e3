"""Settings of the monitor."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from binwright.protocol.section import Seconds, Section, TopicPattern


class MonitorSettings(Section):
    """How the monitor measures."""

    interval_s: Seconds = 1.0
    """Interval between measurements."""
    window_s: Seconds = 30.0
    """Sliding window over which a rate is averaged; at least two intervals."""
    topic: str = "binwright.metrics"
    """Topic to which measurements are published."""
    pattern: TopicPattern | None = None
    """Regular expression: topics whose whole name matches are measured, landed or not."""
    groups: bool = True
    """Whether topics that groups' controllers need are measured, beside those named here."""
    broker_timeout_s: Seconds = 2.0
    """Time that a pass waits for a broker; rates of a late broker's partitions become stale."""
    follower_fetching: bool = False
    """Whether brokers let consumers read from a replica of their zone (`replica.selector.class`):
    then partitions count as near where any replica is, else where the preferred leader is."""
    sizes_per_pass: Annotated[int, Field(gt=0)] = 20_000
    """Partitions whose sizes one pass requests; above that they take turns, offsets never do."""

    @model_validator(mode="after")
    def _window_holds_two_intervals(self) -> Self:
        if self.window_s < 2 * self.interval_s:
            raise ValueError(
                f"window_s ({self.window_s}) must be at least twice interval_s ({self.interval_s})"
            )
        return self
