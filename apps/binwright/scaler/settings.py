"""Settings of the scaler: groups of ordinary consumers, and where their replicas run."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, Field, model_validator

from binwright.kubernetes.settings import KubernetesSettings, check_namespaces
from binwright.protocol.errors import SettingsError
from binwright.protocol.section import (
    Positive,
    Seconds,
    Section,
    TopicPatterns,
    check_distinct,
)
from binwright.runtime.addresses import is_loopback
from binwright.runtime.settings.programs import ProgramSettings
from binwright.scaler.decide.config import (
    DAY_MINUTES,
    LEARNT,
    Bounds,
    Mode,
    PolicyName,
    ScaledGroup,
    Schedule,
)
from binwright.scaler.decide.lags import StartsAt

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
REPLICA = "{replica}"
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

    def schedule(self) -> Schedule:
        """Return it as the value that decides."""
        return Schedule(
            days=frozenset(map(DAYS.index, self.days)),
            begin_min=_minutes(self.start),
            end_min=_minutes(self.end),
            zone=ZoneInfo(self.time_zone),
            least=self.min_replicas,
            most=self.max_replicas,
        )


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


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
    """How long a rebalance leaves partitions unread; counts with `sla_s`. Unset: 0."""
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
        try:
            self.config()
        except SettingsError as exc:
            raise ValueError(str(exc)) from exc
        return self

    def config(self) -> ScaledGroup:
        """Return it as the value that decides; raise `SettingsError`."""
        same = {each.name for each in fields(ScaledGroup)} & ScaledGroupSettings.model_fields.keys()
        values = {n: value for n in same if (value := getattr(self, n)) is not None}
        if self.sla_s is not None:
            values["learns"] = LEARNT - values.keys()
            values.setdefault("cooldown_up_s", min(30.0, max(2.0, 10 * self.sla_s)))
            values.setdefault("cooldown_down_s", min(300.0, max(10.0, 20 * self.sla_s)))
        values |= {
            "topics": frozenset(self.topics),
            "bounds": Bounds(self.min_replicas, self.max_replicas),
            "schedules": tuple(each.schedule() for each in self.schedules),
        }
        return ScaledGroup(**values)


class LocalGroupSettings(ScaledGroupSettings):
    """A scaled group whose replicas are processes of this machine, or somebody else's."""

    command: tuple[str, ...] = ()
    """A replica's command line; `{replica}` in it stands for its number, from 0. Unset, with
    `assigns`: somebody else runs the members, and only what they read is decided."""
    environment: tuple[Annotated[str, Field(pattern=r"^[^=]+=")], ...] = ()
    """Variables `NAME=VALUE` of replicas. Of the scaler's own they see a few, such as PATH."""
    pass_on: tuple[str, ...] = ()
    """Further variables of the scaler's own that replicas see."""
    logs: Path | None = None
    """Directory for the replicas' output (`consumer-N.log`); unset: the scaler's own output."""
    grace_s: Seconds = 30.0
    """Time from SIGTERM to SIGKILL."""

    @model_validator(mode="after")
    def _command_names_the_replica(self) -> Self:
        if self.assigns and not self.command:
            return self
        if not any(REPLICA in part for part in self.command):
            raise ValueError(
                f"group {self.group}: needs a command with {REPLICA}, by which the replicas' "
                "processes are told apart; or assigns = true, if somebody else runs them"
            )
        return self


class ScalerSettings(Section):
    """The scaler of ordinary consumer groups: its passes, and where groups are described."""

    period_s: Seconds = 10.0
    """Interval between passes over all groups."""
    rate_window_s: Seconds = 60.0
    """Time over which rates are taken, of topics that no monitor follows."""
    zero_poll_s: Seconds = 2.0
    """Interval between looks at the topics of groups at zero."""
    broker_timeout_s: Seconds = 2.0
    """Time that a pass waits for a broker."""
    objects: bool = False
    """Scale the workloads of ScaledGroup objects, in the namespaces of `[kubernetes]`."""
    groups: tuple[LocalGroupSettings, ...] = ()
    """Groups whose replicas run on this machine: a table `[[scaler.groups]]` each."""
    assigned_groups: dict[str, TopicPatterns] = {}  # noqa: RUF012 - pydantic copies it
    """Namespace -> patterns of the groups that its ScaledGroups may assign; unset: any."""
    plans_topic: str = "binwright.plans"
    """Topic to which assignments are published; the members' assignors read it."""
    plans_valid_s: Seconds = 600.0
    """For how long assignors follow what is not repeated; it is, three times as often."""
    keda_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the external scaler for KEDA (gRPC); unset: none is started."""
    keda_address: str = "127.0.0.1"
    """Address of the external scaler; in a pod 0.0.0.0."""
    keda_certificate_file: Path | None = None
    """The external scaler's certificate, PEM; unset: connections are not encrypted."""
    keda_key_file: Path | None = None
    """The key of that certificate, PEM."""
    keda_client_ca_file: Path | None = None
    """Who signs KEDA's own certificate, PEM: other clients are refused; unset: any may ask."""
    keda_allow_any_client: bool = False
    """Let clients ask without a certificate from other machines, too."""
    keda_groups: dict[str, TopicPatterns] = {}  # noqa: RUF012 - pydantic copies it
    """Namespace -> patterns of the groups that its ScaledObjects may name; unset: any."""
    keda_triggers_per_namespace: Annotated[int, Field(ge=1, le=1000)] = 100
    """Most triggers of one namespace."""

    @model_validator(mode="after")
    def _values_fit_together(self) -> Self:
        check_distinct([each.group for each in self.groups], "groups: ")
        if (self.keda_certificate_file is None) != (self.keda_key_file is None):
            raise ValueError("keda_certificate_file and keda_key_file need each other")
        if self.keda_client_ca_file is not None and self.keda_certificate_file is None:
            raise ValueError("keda_client_ca_file needs keda_certificate_file")
        if (
            self.keda_port is not None
            and self.keda_client_ca_file is None
            and not self.keda_allow_any_client
            and not is_loopback(self.keda_address)
        ):
            raise ValueError(
                f"keda_address is {self.keda_address}, where anybody may ask: give "
                "keda_client_ca_file, or set keda_allow_any_client"
            )
        if self.zero_poll_s > self.period_s:
            raise ValueError(
                f"zero_poll_s ({self.zero_poll_s:g}) must not exceed period_s ({self.period_s:g})"
            )
        return self


class ScalerProgramSettings(ProgramSettings):
    """What the scaler reads."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    """Access to the cluster whose workloads are scaled."""
    scaler: ScalerSettings = ScalerSettings()
    """Groups of ordinary consumers that are scaled."""

    @model_validator(mode="after")
    def _namespaces_are_of_objects(self) -> Self:
        check_namespaces(self.kubernetes, self.scaler.objects)
        return self
