"""What a person wants of one scaled group, and the bounds that hold at certain times."""

from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from math import isfinite
from typing import Any, Literal

from binwright.protocol.errors import SettingsError
from binwright.scaler.decide.bin_pack import Algorithm1, Algorithm2
from binwright.scaler.decide.lags import StartsAt
from binwright.scaler.decide.learning import Learnt
from binwright.scaler.decide.policy import Policy, ReplicaCapacity
from binwright.scaler.decide.sla_packing import SlaPacking

DAY_MINUTES = 24 * 60
SHORTEST_S, SHORTEST_WINDOW_S = 1.0, 5.0
WINDOW_SLAS = 10.0
"""Rates are those of so many SLAs, where that is less than usual."""
LEARNT = frozenset({"start_s", "commit_interval_s", "burst_s"})
"""What a group shows of itself."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The fewest and the most replicas.

    Raises:
        SettingsError: They are negative, or the wrong way round.
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        """Check the order."""
        if not 0 <= self.least <= self.most:
            raise SettingsError(f"0 <= min <= max must hold, got {self.least} and {self.most}")

    def clamp(self, replicas: int) -> int:
        """Return the number within the bounds that is next to this one."""
        return max(self.least, min(self.most, replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Bounds for a part of some days; a part that ends before it begins ends on the next day."""

    days: frozenset[int]  # on which it begins: 0 is Monday
    begin_min: int  # minutes since midnight, of local time
    end_min: int  # exclusive
    zone: tzinfo  # in which days and times are meant
    least: int | None = None  # None: the group's own
    most: int | None = None

    def holds(self, wall_s: float) -> bool:
        """Return whether it holds at this time, seconds since 1970."""
        local = datetime.fromtimestamp(wall_s, self.zone)
        day, minute = local.weekday(), local.hour * 60 + local.minute
        if self.begin_min < self.end_min:
            return day in self.days and self.begin_min <= minute < self.end_min
        began_today = day in self.days and minute >= self.begin_min
        return began_today or ((day - 1) % 7 in self.days and minute < self.end_min)

    def bounds(self, own: Bounds) -> Bounds:
        """Return the bounds while it holds; one alone moves the other along if it must."""
        least = own.least if self.least is None else self.least
        most = own.most if self.most is None else self.most
        if self.most is None:
            return Bounds(least, max(least, most))
        return Bounds(min(least, most) if self.least is None else least, most)


Mode = Literal["observe", "approve", "act"]
PolicyName = Literal["sla-packing", "algorithm-1", "algorithm-2"]
DEFAULT_BOUNDS = Bounds(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledGroup:
    """One consumer group and the bounds within which its replicas are scaled.

    Raises:
        SettingsError: A value is out of range.
    """

    group: str  # Kafka's name of the consumer group
    topics: frozenset[str] = frozenset()  # empty: all that the group has committed offsets of
    starts_at: StartsAt | None = None  # in partitions without a commit; None: not known
    bounds: Bounds = DEFAULT_BOUNDS
    schedules: tuple[Schedule, ...] = ()
    records_per_s: float | None = None  # that one replica serves; None: it is measured
    catch_up_s: float = 60.0  # within which lag is to be worked off, > 0
    sla_s: float | None = None  # from a record's arrival to its commit; takes `catch_up_s`'s place
    sla_share: float = 1.0  # of the records that are to keep it at any time, > 0 and <= 1
    burst_s: float = 0.0  # between two arrivals of records in a batch; counts with an SLA
    start_s: float = 0.0  # from the order of a replica until it reads; 0: not known
    rebalance_s: float = 0.0  # how long a rebalance leaves partitions unread; counts with an SLA
    commit_interval_s: float = 5.0  # of the group: younger records are not lag
    cooldown_up_s: float = 30.0  # from the last change until replicas are added
    cooldown_down_s: float = 300.0  # from the last change until replicas are taken away
    idle_s: float = 300.0  # without lag and without records, until it is scaled to zero
    idle_lag: int = 0  # of a partition, that is no lag while nothing arrives: transactions' markers
    up: float = 0.9  # share of a replica that may be filled before there is one more
    down: float = 0.8  # share into which all must fit before one goes, < `up`
    learns: frozenset[str] = frozenset()  # fields that are defaults until the group shows them
    policy: PolicyName = "sla-packing"  # by which the number is decided
    assigns: bool = False  # whether binwright also decides which member reads what
    mode: Mode = "act"
    paused: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("records_per_s", "catch_up_s", "sla_s"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise SettingsError(f"group {self.group}: {name} must be > 0, got {value}")
        for name in ("burst_s", "start_s"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise SettingsError(f"group {self.group}: {name} must be >= 0, got {value}")
        if not 0 < self.sla_share <= 1:
            raise SettingsError(
                f"group {self.group}: sla_share must be > 0 and <= 1, got {self.sla_share}"
            )
        if not 0 < self.down < self.up <= 1:
            raise SettingsError(
                f"group {self.group}: 0 < down < up <= 1 must hold, got {self.down} and {self.up}"
            )

    def with_learnt(self, learnt: Learnt) -> "ScaledGroup":
        """Return this with what the group has shown, in place of the defaults."""
        known: dict[str, Any] = {n: getattr(learnt, n).known(getattr(self, n)) for n in self.learns}
        return replace(self, **known)

    def period_s(self, usual_s: float) -> float:
        """Return how often the group is looked at: a shorter SLA asks for more than usual."""
        return usual_s if self.sla_s is None else min(usual_s, max(SHORTEST_S, self.sla_s))

    def window_s(self, usual_s: float) -> float:
        """Return over which time its rates are taken."""
        if self.sla_s is None:
            return usual_s
        return min(usual_s, max(SHORTEST_WINDOW_S, WINDOW_SLAS * self.sla_s))

    def bounds_at(self, wall_s: float) -> Bounds:
        """Return the bounds at this time, seconds since 1970, by the first schedule that holds."""
        schedule = next((each for each in self.schedules if each.holds(wall_s)), None)
        return self.bounds if schedule is None else schedule.bounds(self.bounds)

    def sizing_policy(self, records_per_s: float, bounds: Bounds, partitions: int) -> Policy:
        """Return what decides on the number of replicas; see `packing_policy` for the arguments.

        The paper's algorithms have its f_up and f_down, and leave the bounds to who asks them.
        """
        packing = self.packing_policy(records_per_s, bounds, partitions)
        if self.policy == "sla-packing":
            return packing
        first = Algorithm1(
            capacity=packing.capacity, cooldown_s=self.cooldown_up_s, reassigns=False
        )
        if self.policy == "algorithm-1":
            return first
        return Algorithm2(
            capacity=first.capacity,
            cooldown_s=first.cooldown_s,
            reassigns=False,
            rebalance_s=self.rebalance_s,
        )

    def packing_policy(self, records_per_s: float, bounds: Bounds, partitions: int) -> SlaPacking:
        """Return how the group's partitions are packed.

        Args:
            records_per_s: That one replica serves.
            bounds: That hold now.
            partitions: That the group has; more replicas would have nothing to read.
        """
        sla_s = self.sla_s or self.catch_up_s
        return SlaPacking(
            capacity=ReplicaCapacity(rate=records_per_s, sla_s=sla_s, burst_s=self.burst_s),
            up=self.up,
            down=self.down,
            # Lag that is gone before a new replica reads needs none.
            catch_up_s=max(sla_s, self.start_s),
            rebalance_s=self.rebalance_s if self.sla_s else 0.0,
            cooldown_up_s=self.cooldown_up_s,
            cooldown_down_s=self.cooldown_down_s,
            least=min(max(1, bounds.least), partitions),
            most=min(max(1, bounds.most), partitions),
            sla_share=self.sla_share,
            steers=False,
        )
