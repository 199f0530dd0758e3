"""What chaos draws."""

from itertools import islice

from tests.chaos.draw import SERVERS, STEPS, Kind, Scene, chosen_plan, plan, short_plan


def scenes(seed: int, number: int, *, aimed_only: bool = False) -> list[Scene]:
    return list(islice(plan(seed, aimed_only=aimed_only), number))


def test_a_seed_draws_the_same_faults_again() -> None:
    assert scenes(3, 200) == scenes(3, 200) != scenes(4, 200)


def test_every_kind_and_every_step_comes() -> None:
    faults = [fault for scene in scenes(1, 600) for fault in scene]
    assert {fault.kind for fault in faults} == set(Kind)
    assert {(f.whose, f.step, f.moment) for f in faults if f.step} == set(STEPS)


def test_what_cannot_be_done_here_is_left_out() -> None:
    drawn = islice(plan(1, [Kind.DISK_FULL]), 300)
    assert all(fault.kind is not Kind.DISK_FULL for scene in drawn for fault in scene)


def test_two_at_once_never_meet_a_fault_that_everybody_feels() -> None:
    pairs = [scene for scene in scenes(2, 400) if len(scene) > 1]
    assert pairs
    assert not any(fault.kind in SERVERS for pair in pairs for fault in pair)


def test_only_aimed_faults_where_only_those_are_wanted() -> None:
    drawn = scenes(1, 50, aimed_only=True)
    assert all(len(scene) == 1 and scene[0].kind is Kind.AIMED for scene in drawn)


def test_spark_is_away_for_as_long_as_is_asked() -> None:
    drawn = [fault for scene in islice(plan(1, away_s=600), 200) for fault in scene]
    assert {fault.hold_s for fault in drawn if fault.kind is Kind.SPARK_AWAY} == {600}


def test_a_short_run_has_few_faults_one_at_a_time() -> None:
    drawn = list(short_plan())
    assert 3 <= len(drawn) <= 4
    assert all(len(scene) == 1 for scene in drawn)


def test_kinds_that_are_asked_for_come_in_turn() -> None:
    kinds = [Kind.STAGED_LOST, Kind.AIMED]
    drawn = list(islice(chosen_plan(1, kinds), 4))
    assert [fault.kind for (fault,) in drawn] == kinds * 2
    assert all(fault.step for (fault,) in drawn if fault.kind is Kind.AIMED)
