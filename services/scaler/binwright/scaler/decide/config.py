"""What a person wants of one scaled group."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from binwright.protocol.errors import SettingsError
from binwright.scaler.decide.policies.capacity import ReplicaCapacity
from binwright.scaler.decide.policies.demand import Demand
from binwright.scaler.decide.policies.sla_packing import SlaPacking
from binwright.scaler.decide.schedules import Bounds, Schedule, bounds_at

Mode = Literal["observe", "approve", "act"]
DEFAULT_BOUNDS = Bounds(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledGroup:
    """One consumer group and the bounds within which its replicas are scaled.

    Raises:
        SettingsError: A value is out of range.
    """

    group: str  # Kafka's name of the consumer group
    topics: frozenset[str] = frozenset()  # empty: all that the group has committed offsets of
    bounds: Bounds = DEFAULT_BOUNDS
    schedules: tuple[Schedule, ...] = ()
    capacity: float | None = None  # records/s that one replica serves; None: it is measured
    catch_up_s: float = 60.0  # within which lag is to be worked off, > 0
    sla_s: float | None = None  # from a record's arrival to its commit; takes `catch_up_s`'s place
    sla_share: float = 1.0  # of the records that are to keep it at any time, > 0 and <= 1
    burst_s: float = 0.0  # between two arrivals of records in a batch; counts with an SLA
    start_s: float = 0.0  # from the order of a replica until it reads; 0: not known
    rebalance_s: float = 0.0  # how long a rebalance leaves partitions unread; counts with an SLA
    commit_interval_s: float = 5.0  # the group commits so often: its lag is never below that much
    cooldown_up_s: float = 30.0  # from the last change until replicas are added
    cooldown_down_s: float = 300.0  # from the last change until replicas are taken away
    idle_s: float = 300.0  # without lag and without records, until it is scaled to zero
    up: float = 0.9  # share of a replica that may be filled before there is one more
    down: float = 0.8  # share into which all must fit before one goes, < `up`
    mode: Mode = "act"
    paused: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        positive = {"capacity": self.capacity, "catch_up_s": self.catch_up_s, "sla_s": self.sla_s}
        for name, value in positive.items():
            if value is not None and not (isfinite(value) and value > 0):
                raise SettingsError(f"group {self.group}: {name} must be > 0, got {value}")
        for name, value in {"burst_s": self.burst_s, "start_s": self.start_s}.items():
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

    def bounds_at(self, wall_s: float) -> Bounds:
        """Return the bounds at this time, seconds since 1970."""
        return bounds_at(self.bounds, self.schedules, wall_s)

    def policy(self, capacity: float, bounds: Bounds, partitions: int) -> SlaPacking:
        """Return how the group is sized.

        Args:
            capacity: Records/s that one replica serves.
            bounds: That hold now.
            partitions: That the group has; more replicas would have nothing to read.
        """
        sla_s = self.sla_s or self.catch_up_s
        return SlaPacking(
            capacity=ReplicaCapacity(rate=capacity, sla_s=sla_s, burst_s=self.burst_s),
            up=self.up,
            down=self.down,
            # Lag that is gone before a new replica reads needs none.
            catch_up_s=max(sla_s, self.start_s),
            rebalance_s=self.rebalance_s if self.sla_s else 0.0,
            cooldown_up_s=self.cooldown_up_s,
            cooldown_down_s=self.cooldown_down_s,
            least=min(max(1, bounds.least), partitions),
            most=min(max(1, bounds.most), partitions),
            late=1 - self.sla_share,
            steers=False,
        )

    def demand(self, capacity: float, most: int) -> Demand:
        """Return what makes the packing that is shown; see `policy`."""
        policy = self.policy(capacity, Bounds(1, most), most)
        return Demand(
            capacity=policy.capacity,
            catch_up_s=policy.catch_up_s,
            busy=policy.busy,
            least=1,
            most=most,
            late=policy.late,
        )
