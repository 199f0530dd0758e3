"""What a person wants of one scaled group, and the bounds that hold at certain times."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, Field, model_validator

from binwright.protocol.section import Positive, Seconds, Section
from binwright.scaler.decide.lags import StartsAt
from binwright.scaler.decide.learning import Estimate, Learnt
from binwright.scaler.decide.paper_algorithms import Algorithm1, Algorithm2
from binwright.scaler.decide.policy import Policy, ReplicaCapacity
from binwright.scaler.decide.sla_packing import SlaPacking

DAY_MINUTES = 24 * 60
SHORTEST_S, SHORTEST_WINDOW_S = 1.0, 5.0
WINDOW_SLAS = 10.0
"""Rates are those of so many SLAs, where that is less than usual."""
LEARNT = frozenset({"start_s", "commit_interval_s", "burst_s"})
"""What a group shows of itself."""
UP, DOWN = 0.9, 0.8
"""Share of a replica that may be filled before there is one more, and into which all must fit
before one goes."""
Mode = Literal["observe", "approve", "act"]
PolicyName = Literal["sla-packing", "algorithm-1", "algorithm-2"]

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Replicas = Annotated[int, Field(ge=0, le=10_000)]


def _group_name(name: str) -> str:
    """Strip what surrounds a name, such as the newline of a Secret's file."""
    if not (stripped := name.strip()).isprintable():
        raise ValueError(f"the name of a group has characters that cannot be shown: {name!r}")
    return stripped


def _topic_name(name: str) -> str:
    stripped = name.strip()
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", stripped) or stripped in {".", ".."}:
        raise ValueError(f"no topic can have the name {name!r}")
    return stripped


ConsumerGroupName = Annotated[str, AfterValidator(_group_name), Field(min_length=1, max_length=249)]
ReadTopic = Annotated[str, AfterValidator(_topic_name)]


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        if not available_timezones():
            raise ValueError(
                f"there is no time zone data to look {name!r} up in: install the package tzdata"
            ) from exc
        raise ValueError(f"no such time zone: {name!r}") from exc
    return name


def _time(text: str) -> str:
    time = re.fullmatch(r"(\d\d):(\d\d)", text)
    if time is None or int(time[2]) >= 60 or int(time[1]) * 60 + int(time[2]) > DAY_MINUTES:  # noqa: PLR2004
        raise ValueError(f"expected a time of day such as 08:30, got {text!r}")
    return text


TimeZone = Annotated[str, AfterValidator(_zone)]
TimeOfDay = Annotated[str, AfterValidator(_time)]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The fewest and the most replicas.

    Raises:
        ValueError: They are negative, or the wrong way round.
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        """Check the order."""
        if not 0 <= self.least <= self.most:
            raise ValueError(f"0 <= min <= max must hold, got {self.least} and {self.most}")

    def clamp(self, replicas: int) -> int:
        """Return the number within the bounds that is next to this one."""
        return max(self.least, min(self.most, replicas))


class ScheduleSettings(Section):
    """Bounds for a part of some days."""

    days: Annotated[tuple[Literal[DAYS], ...], Field(min_length=1)] = DAYS  # type: ignore[valid-type]
    """The days on which it begins: mon, tue, wed, thu, fri, sat, sun."""
    start: TimeOfDay = "00:00"
    """Time of day at which it begins."""
    end: TimeOfDay = "24:00"
    """Time of day at which it ends; before `start`: on the next day."""
    time_zone: TimeZone = "UTC"
    """The zone of these times, such as Europe/Paris."""
    min_replicas: Replicas | None = None
    """Fewest replicas meanwhile; unset: the group's own."""
    max_replicas: Replicas | None = None
    """Most replicas meanwhile; unset: the group's own."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.min_replicas is not None and self.max_replicas is not None:
            Bounds(self.min_replicas, self.max_replicas)
        return self

    def holds(self, wall_s: float) -> bool:
        """Return whether it holds at this time, seconds since 1970.

        A part of a day that ends before it begins ends on the next day.
        """
        local = datetime.fromtimestamp(wall_s, ZoneInfo(self.time_zone))
        begin, end, now = _minutes(self.start), _minutes(self.end), local.hour * 60 + local.minute
        today, yesterday = (DAYS[(local.weekday() - ago) % 7] in self.days for ago in (0, 1))
        if begin < end:
            return today and begin <= now < end
        return (today and now >= begin) or (yesterday and now < end)

    def bounds(self, own: Bounds) -> Bounds:
        """Return the bounds while it holds; one alone moves the other along if it must."""
        least = own.least if self.min_replicas is None else self.min_replicas
        most = own.most if self.max_replicas is None else self.max_replicas
        if self.max_replicas is None:
            return Bounds(least, max(least, most))
        return Bounds(min(least, most) if self.min_replicas is None else least, most)


def _minutes(time: str) -> int:
    hours, minutes = time.split(":")
    return int(hours) * 60 + int(minutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Of a group, seconds: as a person has set them, as it shows them, or else by default."""

    burst_s: float  # between two arrivals of records in a batch; counts with an SLA
    start_s: float  # from the order of a replica until it reads; 0: not known
    rebalance_s: float  # how long a rebalance leaves partitions unread; counts with an SLA
    commit_interval_s: float  # younger records are not lag
    cooldown_up_s: float  # from the last change until replicas are added
    cooldown_down_s: float  # from the last change until replicas are taken away


class ScaledGroupSettings(Section):
    """How one consumer group is scaled."""

    group: ConsumerGroupName
    """Kafka's name of the consumer group."""
    topics: tuple[ReadTopic, ...] = ()
    """Topics that count; unset: all that the group has committed offsets of."""
    starts_at: StartsAt | None = None
    """Where members begin without a commit, as `auto.offset.reset`; unset: not known.

    Unset, a group that has not committed counts from the first end seen, and gets a replica where
    records are.
    """
    min_replicas: Replicas = 1
    """Fewest replicas; 0: none while there is nothing to read."""
    max_replicas: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Most replicas; never more than there are partitions."""
    records_per_s: Positive | None = None
    """Records/s that one replica serves; unset: measured while the group is behind."""
    catch_up_s: Seconds = 60.0
    """Time within which lag is to be worked off."""
    sla_s: Seconds | None = None
    """Time from a record's arrival to its commit; takes the place of `catch_up_s`."""
    sla_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the records that are to keep `sla_s` at any time; fewer replicas do for less."""
    burst_s: NotNegative | None = None
    """Time between two batches of records; 0: they come one by one. With `sla_s`; unset: learnt."""
    start_s: NotNegative | None = None
    """Time from a replica's order until it reads, by which a rising rate is extrapolated.

    Unset: learnt with `sla_s`, else 0.
    """
    rebalance_s: NotNegative | None = None
    """How long a rebalance leaves partitions unread; counts with `sla_s`. Unset: 0, and as measured
    where it is asked whether an assignment is worth one.
    """
    commit_interval_s: NotNegative | None = None
    """The group's commit interval: younger records are no lag.

    Unset: learnt with `sla_s`, else 5.
    """
    cooldown_up_s: NotNegative | None = None
    """Time from a change until replicas are added; unset: 30, or less for a short `sla_s`."""
    cooldown_down_s: NotNegative | None = None
    """Time from a change until replicas are taken away; unset: 300, or less for a short `sla_s`."""
    idle_s: NotNegative = 300.0
    """Time without lag and without records until a group goes to zero."""
    idle_lag: Annotated[int, Field(ge=0)] = 0
    """Lag of a partition that is none while no records arrive; 1 for markers of transactions."""
    schedules: tuple[ScheduleSettings, ...] = ()
    """Other bounds at certain times; the first that holds counts."""
    before_replicas: NotNegative | None = None
    """Replicas that the group had on average before: what it saves since counts against them."""
    policy: PolicyName = "sla-packing"
    """How the number is decided: binwright's policy, or an algorithm of Ezzeddine, Baude, Huet."""
    assigns: bool = False
    """Decide which member reads what, too; the members need binwright's assignor."""
    mode: Mode = "act"
    """Changes are only shown, wait for approval, or are made."""
    paused: bool = False
    """Change nothing for now."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        Bounds(self.min_replicas, self.max_replicas)
        return self

    @property
    def bounds(self) -> Bounds:
        """The bounds while no schedule holds."""
        return Bounds(self.min_replicas, self.max_replicas)

    @property
    def learns(self) -> frozenset[str]:
        """The fields that take what the group has shown, in place of a default."""
        learns = LEARNT if self.sla_s is not None else ()
        return frozenset(name for name in learns if getattr(self, name) is None)

    def times(self, learnt: Learnt) -> Times:
        """Return the group's times, given what it has shown."""
        up_s, down_s = 30.0, 300.0
        if self.sla_s is not None:
            up_s = min(up_s, max(2.0, 10 * self.sla_s))
            down_s = min(down_s, max(10.0, 20 * self.sla_s))
        shown = learnt if self.sla_s is not None else Learnt()
        return Times(
            burst_s=_first(self.burst_s, shown.burst_s, 0.0),
            start_s=_first(self.start_s, shown.start_s, 0.0),
            rebalance_s=self.rebalance_s or 0.0,
            commit_interval_s=_first(self.commit_interval_s, shown.commit_interval_s, 5.0),
            cooldown_up_s=up_s if self.cooldown_up_s is None else self.cooldown_up_s,
            cooldown_down_s=down_s if self.cooldown_down_s is None else self.cooldown_down_s,
        )

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

    def sizing_policy(
        self, records_per_s: float, bounds: Bounds, partitions: int, times: Times
    ) -> Policy:
        """Return what decides on the number of replicas; see `packing_policy` for the arguments.

        The paper's algorithms have its f_up and f_down, and leave the bounds to who asks them.
        """
        packing = self.packing_policy(records_per_s, bounds, partitions, times)
        if self.policy == "sla-packing":
            return packing
        first = Algorithm1(
            capacity=packing.capacity, cooldown_s=times.cooldown_up_s, reassigns=False
        )
        if self.policy == "algorithm-1":
            return first
        return Algorithm2(
            capacity=first.capacity,
            cooldown_s=first.cooldown_s,
            reassigns=False,
            rebalance_s=times.rebalance_s,
        )

    def packing_policy(
        self, records_per_s: float, bounds: Bounds, partitions: int, times: Times
    ) -> SlaPacking:
        """Return how the group's partitions are packed.

        Args:
            records_per_s: That one replica serves.
            bounds: That hold now.
            partitions: That the group has; more replicas would have nothing to read.
            times: Of the group.
        """
        sla_s = self.sla_s or self.catch_up_s
        return SlaPacking(
            capacity=ReplicaCapacity(rate=records_per_s, sla_s=sla_s, burst_s=times.burst_s),
            up=UP,
            down=DOWN,
            # Lag that is gone before a new replica reads needs none.
            catch_up_s=max(sla_s, times.start_s),
            rebalance_s=times.rebalance_s if self.sla_s else 0.0,
            cooldown_up_s=times.cooldown_up_s,
            cooldown_down_s=times.cooldown_down_s,
            least=min(max(1, bounds.least), partitions),
            most=min(max(1, bounds.most), partitions),
            sla_share=self.sla_share,
            steers=False,
        )


def _first(own: float | None, shown: Estimate, default: float) -> float:
    return shown.known(default) if own is None else own
