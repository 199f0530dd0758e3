"""What is wanted of a group, and the bounds that hold at certain times of the week."""

import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError
from tests.scaler.decide.scaled_groups import changed

from binwright.scaler.decide.config import (
    DAYS,
    LEARNT,
    Bounds,
    PolicyName,
    ScaledGroupSettings,
    ScheduleSettings,
)
from binwright.scaler.decide.learning import Estimate, Learnt
from binwright.scaler.decide.paper_algorithms import Algorithm1, Algorithm2
from binwright.scaler.decide.sla_packing import SlaPacking

OWN = Bounds(1, 10)
WORKDAYS = DAYS[:5]
OFFICE = ScheduleSettings(
    days=WORKDAYS, start="09:00", end="17:00", min_replicas=4, max_replicas=20
)
NIGHT = ScheduleSettings(days=("fri",), start="22:00", end="06:00", max_replicas=2)


def at(day: int, hour: int, minute: int = 0, zone: object = UTC) -> float:
    """Return a time of the week that begins on Monday, 5 January 2026."""
    assert zone is UTC or isinstance(zone, ZoneInfo)
    return datetime(2026, 1, 5 + day, hour, minute, tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ("time", "holds"), [((0, 9), True), ((0, 8, 59), False), ((4, 16, 59), True), ((4, 17), False)]
)
def test_a_part_of_a_day_holds_from_its_beginning_up_to_its_end(
    time: tuple[int, ...], holds: bool
) -> None:
    assert OFFICE.holds(at(*time)) is holds


def test_it_does_not_hold_on_other_days() -> None:
    assert not OFFICE.holds(at(5, 12))


@pytest.mark.parametrize(
    ("time", "holds"),
    [((4, 21), False), ((4, 22), True), ((5, 5), True), ((5, 6), False), ((4, 5), False)],
)
def test_a_part_over_midnight_ends_on_the_next_day(time: tuple[int, ...], holds: bool) -> None:
    assert NIGHT.holds(at(*time)) is holds


def test_times_are_those_of_the_zone_in_summer_and_winter() -> None:
    office = ScheduleSettings(
        days=WORKDAYS, start="09:00", end="17:00", time_zone="Europe/Paris", min_replicas=4
    )

    assert office.holds(datetime(2026, 1, 5, 8, tzinfo=UTC).timestamp())
    assert not office.holds(datetime(2026, 7, 6, 15, tzinfo=UTC).timestamp())


def test_the_first_schedule_that_holds_counts() -> None:
    config = ScaledGroupSettings(
        group="orders", max_replicas=10, schedules=(OFFICE, ScheduleSettings(min_replicas=2))
    )

    assert config.bounds_at(at(0, 12)) == Bounds(4, 20)
    assert config.bounds_at(at(5, 12)) == Bounds(2, 10)
    assert changed(config, schedules=(OFFICE,)).bounds_at(at(5, 12)) == OWN


def test_a_bound_alone_moves_the_other_along() -> None:
    lower = ScheduleSettings(max_replicas=0)
    higher = ScheduleSettings(min_replicas=15)

    assert lower.bounds(OWN) == Bounds(0, 0)
    assert higher.bounds(OWN) == Bounds(15, 15)


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match="0 <= min <= max"):
        Bounds(2, 1)


def test_a_number_is_clamped_to_the_bounds() -> None:
    assert [OWN.clamp(n) for n in (0, 5, 11)] == [1, 5, 10]


# --- times ---------------------------------------------------------------------------------------

LEARNS = ScaledGroupSettings(group="orders", sla_s=2.0)
SHOWN = Learnt(start_s=Estimate((4.0,) * 3), burst_s=Estimate((1.0,)))


def test_what_a_group_shows_takes_the_place_of_a_default() -> None:
    times = LEARNS.times(SHOWN)
    assert (times.start_s, times.burst_s, times.commit_interval_s) == (4.0, 0.0, 5.0)
    assert LEARNS.learns == LEARNT


def test_what_a_person_has_set_is_not_learnt() -> None:
    given = changed(LEARNS, start_s=9.0)
    assert (given.times(SHOWN).start_s, given.learns) == (9.0, LEARNT - {"start_s"})
    assert changed(LEARNS, start_s=0.0).times(SHOWN).start_s == 0.0


def test_a_group_without_an_sla_learns_nothing() -> None:
    free = changed(LEARNS, sla_s=None)
    assert (free.times(SHOWN).start_s, free.learns) == (0.0, frozenset())


@pytest.mark.parametrize(
    ("settings", "up_s", "down_s"),
    [
        ({}, 30.0, 300.0),
        ({"sla_s": 60.0}, 30.0, 300.0),
        ({"sla_s": 1.0}, 10.0, 20.0),
        ({"sla_s": 0.1}, 2.0, 10.0),
        ({"sla_s": 0.1, "cooldown_up_s": 0.0, "cooldown_down_s": 7.0}, 0.0, 7.0),
    ],
)
def test_a_short_sla_shortens_the_times_between_changes(
    settings: dict[str, Any], up_s: float, down_s: float
) -> None:
    times = ScaledGroupSettings(group="orders", **settings).times(Learnt())
    assert (times.cooldown_up_s, times.cooldown_down_s) == (up_s, down_s)


@pytest.mark.parametrize(
    ("sla_s", "period_s", "window_s"),
    [(None, 10.0, 60.0), (0.5, 1.0, 5.0), (4.0, 4.0, 40.0), (60.0, 10.0, 60.0)],
)
def test_a_short_sla_is_looked_at_more_often(
    sla_s: float | None, period_s: float, window_s: float
) -> None:
    group = changed(LEARNS, sla_s=sla_s)
    assert (group.period_s(10.0), group.window_s(60.0)) == (period_s, window_s)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sla-packing", SlaPacking), ("algorithm-1", Algorithm1), ("algorithm-2", Algorithm2)],
)
def test_the_policies_of_the_paper_can_decide(name: PolicyName, kind: type) -> None:
    found = changed(LEARNS, policy=name).sizing_policy(100.0, OWN, 4, LEARNS.times(Learnt()))
    assert type(found) is kind


# --- what is refused ------------------------------------------------------------------------------


@pytest.fixture
def no_zone_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No time zone data, neither of the system nor of a package."""
    before = zoneinfo.TZPATH
    for name in {"tzdata", *(name for name in sys.modules if name.startswith("tzdata."))}:
        monkeypatch.setitem(sys.modules, name, None)
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(to=before)
    zoneinfo.ZoneInfo.clear_cache()


@pytest.mark.usefixtures("no_zone_data")
def test_missing_time_zone_data_are_no_wrong_name() -> None:
    with pytest.raises(ValidationError, match="install the package tzdata"):
        ScheduleSettings(time_zone="Europe/Paris")


def test_a_time_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValidationError, match="no such time zone: 'Europe/Pariss'"):
        ScheduleSettings(time_zone="Europe/Pariss")


def test_names_are_stripped_and_checked() -> None:
    group = ScaledGroupSettings(group=" orders\n", topics=("clicks\n",))
    assert (group.group, group.topics) == ("orders", ("clicks",))
    for wrong in ({"group": "\n"}, {"group": "a\x1bb"}, {"group": "a", "topics": ("b c",)}):
        with pytest.raises(ValidationError):
            ScaledGroupSettings.model_validate(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"records_per_s": 0.0}, "greater than 0"),
        ({"catch_up_s": float("inf")}, "finite"),
        ({"burst_s": -1.0}, "greater than or equal to 0"),
        ({"start_s": float("nan")}, "finite"),
        ({"sla_share": 0.0}, "greater than 0"),
        ({"min_replicas": 3, "max_replicas": 2}, "0 <= min <= max must hold, got 3 and 2"),
        ({"schedules": [{"start": "8:30"}]}, "expected a time of day such as 08:30"),
        ({"schedules": [{"end": "24:01"}]}, "expected a time of day such as 08:30"),
        ({"schedules": [{"min_replicas": 3, "max_replicas": 2}]}, "got 3 and 2"),
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScaledGroupSettings(group="orders", **wrong)
