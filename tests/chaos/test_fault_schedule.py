"""What chaos draws."""

from itertools import islice

from tests.chaos.fault_schedule import (
    EACH_KIND,
    EVOLUTION_KINDS,
    EVOLUTION_MODES,
    EVOLUTION_STEPS,
    SPLIT_KINDS,
    SPLIT_MODES,
    SPLIT_STEPS,
    STEPS,
    SYSTEM_WIDE_KINDS,
    ConcurrentFaults,
    Kind,
    chosen_schedule,
    evolution_schedule,
    random_schedule,
    short_evolution,
    short_schedule,
    split_schedule,
)


def scenes(seed: int, number: int, *, aimed_only: bool = False) -> list[ConcurrentFaults]:
    return list(islice(random_schedule(seed, aimed_only=aimed_only), number))


def test_a_seed_draws_the_same_faults_again() -> None:
    assert scenes(3, 200) == scenes(3, 200) != scenes(4, 200)


def test_a_schedule_contains_every_kind_and_step() -> None:
    faults = [fault for scene in scenes(1, 600) for fault in scene]
    assert {fault.kind for fault in faults} == set(Kind)
    assert {(f.service, f.step, f.moment) for f in faults if f.step} == set(STEPS)


def test_what_cannot_be_done_here_is_left_out() -> None:
    drawn = islice(random_schedule(1, [Kind.DISK_FULL]), 300)
    assert all(fault.kind is not Kind.DISK_FULL for scene in drawn for fault in scene)


def test_faults_in_pairs_exclude_those_of_all_processes() -> None:
    pairs = [scene for scene in scenes(2, 400) if len(scene) > 1]
    assert pairs
    assert not any(fault.kind in SYSTEM_WIDE_KINDS for pair in pairs for fault in pair)


def test_only_aimed_faults_where_only_those_are_wanted() -> None:
    drawn = scenes(1, 50, aimed_only=True)
    assert all(len(scene) == 1 and scene[0].kind is Kind.AIMED for scene in drawn)


def test_a_lasting_fault_takes_as_long_as_is_asked() -> None:
    drawn = islice(random_schedule(1, lasting_s={Kind.SPARK_AWAY: 600.0}), 200)
    faults = [fault for scene in drawn for fault in scene]
    assert {fault.duration_s for fault in faults if fault.kind is Kind.SPARK_AWAY} == {600}


def test_a_short_run_has_few_faults_one_at_a_time() -> None:
    drawn = list(short_schedule())
    assert 3 <= len(drawn) <= 4
    assert all(len(scene) == 1 for scene in drawn)


def test_a_hundred_faults_hit_every_process_at_each_step_of_an_evolution_once() -> None:
    faults = [fault for scene in islice(evolution_schedule(1), 100) for fault in scene]
    aimed = [(f.service, f.step, f.moment, f.failure_mode) for f in faults if f.step]
    assert sorted(aimed) == sorted((*step, m) for step in EVOLUTION_STEPS for m in EVOLUTION_MODES)
    others = [fault.kind for fault in faults if not fault.step]
    assert sorted(others) == sorted([*EVOLUTION_KINDS] * EACH_KIND)
    assert [*islice(evolution_schedule(1), 100)] == [*islice(evolution_schedule(1), 100)]
    assert [*islice(evolution_schedule(2), 100)] != [*islice(evolution_schedule(1), 100)]


def test_a_short_evolution_has_four_faults_at_its_steps() -> None:
    faults = [fault for scene in short_evolution() for fault in scene]
    assert len(faults) == 4
    assert all((f.service, f.step, f.moment) in EVOLUTION_STEPS for f in faults)
    assert {fault.failure_mode for fault in faults} == {*EVOLUTION_MODES}


def test_a_split_partition_meets_every_fault_at_each_of_its_steps_once() -> None:
    number = len(SPLIT_STEPS) * len(SPLIT_MODES) + 4 + len(SPLIT_KINDS)
    faults = [fault for scene in islice(split_schedule(1), number) for fault in scene]
    aimed = [(f.service, f.step, f.moment, f.failure_mode) for f in faults if f.step]
    consumers = sorted(each for each in aimed if each[0] == "consumer")
    assert consumers == sorted((*step, m) for step in SPLIT_STEPS for m in SPLIT_MODES)
    assert {each[:2] for each in aimed if each not in consumers} == {
        ("controller", "split-reading")
    }
    assert sorted(fault.kind for fault in faults if not fault.step) == sorted(SPLIT_KINDS)


def test_requested_kinds_take_turns() -> None:
    kinds = [Kind.STAGED_LOST, Kind.AIMED]
    drawn = list(islice(chosen_schedule(1, kinds), 4))
    assert [fault.kind for (fault,) in drawn] == kinds * 2
    assert all(fault.step for (fault,) in drawn if fault.kind is Kind.AIMED)
