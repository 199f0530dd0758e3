"""What is wanted of a group, and the bounds that hold at certain times of the week."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from binwright.protocol.errors import SettingsError
from binwright.scaler.decide.bin_pack import Algorithm1, Algorithm2
from binwright.scaler.decide.config import LEARNT, Bounds, PolicyName, ScaledGroup, Schedule
from binwright.scaler.decide.learning import Estimate, Learnt
from binwright.scaler.decide.sla_packing import SlaPacking

OWN = Bounds(1, 10)
WORKDAYS = frozenset(range(5))
OFFICE = Schedule(days=WORKDAYS, begin_min=9 * 60, end_min=17 * 60, zone=UTC, least=4, most=20)
NIGHT = Schedule(days=frozenset({4}), begin_min=22 * 60, end_min=6 * 60, zone=UTC, most=2)


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
    zone = ZoneInfo("Europe/Paris")
    office = Schedule(days=WORKDAYS, begin_min=9 * 60, end_min=17 * 60, zone=zone, least=4)

    assert office.holds(datetime(2026, 1, 5, 8, tzinfo=UTC).timestamp())
    assert not office.holds(datetime(2026, 7, 6, 15, tzinfo=UTC).timestamp())


def test_the_first_schedule_that_holds_counts() -> None:
    always = Schedule(days=frozenset(range(7)), begin_min=0, end_min=0, zone=UTC, least=2)

    config = ScaledGroup(group="orders", bounds=OWN, schedules=(OFFICE, always))

    assert config.bounds_at(at(0, 12)) == Bounds(4, 20)
    assert config.bounds_at(at(5, 12)) == Bounds(2, 10)
    assert replace(config, schedules=(OFFICE,)).bounds_at(at(5, 12)) == OWN


def test_a_bound_alone_moves_the_other_along() -> None:
    lower = Schedule(days=WORKDAYS, begin_min=0, end_min=0, zone=UTC, most=0)
    higher = Schedule(days=WORKDAYS, begin_min=0, end_min=0, zone=UTC, least=15)

    assert lower.bounds(OWN) == Bounds(0, 0)
    assert higher.bounds(OWN) == Bounds(15, 15)


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(SettingsError, match="0 <= min <= max"):
        Bounds(2, 1)


def test_a_number_is_clamped_to_the_bounds() -> None:
    assert [OWN.clamp(n) for n in (0, 5, 11)] == [1, 5, 10]


LEARNS = ScaledGroup(group="orders", sla_s=2.0, learns=LEARNT)


def test_what_a_group_shows_takes_the_place_of_a_default() -> None:
    shown = Learnt(start_s=Estimate((4.0,) * 3), burst_s=Estimate((1.0,)))
    found = LEARNS.with_learnt(shown)
    assert (found.start_s, found.burst_s, found.commit_interval_s) == (4.0, 0.0, 5.0)


def test_what_a_person_has_set_is_not_learnt() -> None:
    shown = Learnt(start_s=Estimate((4.0,) * 3))
    assert replace(LEARNS, start_s=9.0, learns=LEARNT - {"start_s"}).with_learnt(shown).start_s == 9


@pytest.mark.parametrize(
    ("sla_s", "period_s", "window_s"),
    [(None, 10.0, 60.0), (0.5, 1.0, 5.0), (4.0, 4.0, 40.0), (60.0, 10.0, 60.0)],
)
def test_a_short_sla_is_looked_at_more_often(
    sla_s: float | None, period_s: float, window_s: float
) -> None:
    group = replace(LEARNS, sla_s=sla_s)
    assert (group.period_s(10.0), group.window_s(60.0)) == (period_s, window_s)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sla-packing", SlaPacking), ("algorithm-1", Algorithm1), ("algorithm-2", Algorithm2)],
)
def test_the_policies_of_the_paper_can_decide(name: PolicyName, kind: type) -> None:
    found = replace(LEARNS, policy=name).sizing_policy(100.0, OWN, 4)
    assert type(found) is kind
