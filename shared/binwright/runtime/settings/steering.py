"""Settings of the steering of ordinary consumer groups."""

from typing import Annotated, Literal

from pydantic import Field

from binwright.runtime.settings.section import Positive, Seconds, Section


class SteeredGroupSettings(Section):
    """One Kafka consumer group whose members have binwright's assignor."""

    records_per_s: Positive
    """Records/s that one member serves."""
    sla_s: Seconds = 60.0
    """Time within which a record is to be served."""
    policy: Literal["sticky", "least-loaded", "least-loaded-lag"] = "sticky"
    """Even loads by few moves, or Algorithm 1 or 2 of the paper (docs/design/assignor.md)."""
    pause_s: Seconds = 3.0
    """How long a partition that moves is not read: about the members' `heartbeat.interval.ms`."""
    payback_s: Seconds = 60.0
    """Time within which a rebalance must spare more late records than it makes."""
    cooldown_s: Seconds = 30.0
    """Least time from one rebalance that is asked for to the next."""


class SteeringSettings(Section):
    """Which ordinary consumer groups `binwright steer` steers, and by which plans."""

    groups: dict[Annotated[str, Field(min_length=1)], SteeredGroupSettings] = {}  # noqa: RUF012 - pydantic copies it
    """Each group by its name: a table `[steering.groups.NAME]` with what is listed below."""
    topic: str = "binwright.plans"
    """Topic to which plans are published; the assignors read it."""
    interval_s: Seconds = 10.0
    """Interval at which a group is looked at."""
    valid_s: Seconds = 600.0
    """For how long assignors follow a plan that is not repeated; it is, three times as often."""
