"""What one replica serves, by the commits of a group that is behind."""

from collections.abc import Mapping

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Work
from binwright.scaler.decide.policy import PartitionLoad
from binwright.scaler.decide.throughput import Throughput

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def work(lags: Mapping[int, float], done: Mapping[int, int], rate: float = 10) -> Work:
    return Work(
        loads={TopicPartition("t", p): PartitionLoad(rate, lag) for p, lag in lags.items()},
        committed={TopicPartition("t", p): offset for p, offset in done.items()},
    )


def observed(*steps: tuple[float, Work, int]) -> Throughput:
    found = Throughput()
    for now_s, seen, replicas in steps:
        found = found.observe(now_s, seen, replicas, 0.0)
    return found


BEHIND = {0: 9_000.0, 1: 9_000.0}


def test_the_mean_of_replicas_that_are_all_behind_is_measured() -> None:
    found = observed(
        (0, work(BEHIND, {0: 0, 1: 0}), 2), (30, work(BEHIND, {0: 3_000, 1: 6_000}), 2)
    )

    assert (found.per_replica, found.whole) == (150, True)


def test_more_replicas_than_partitions_do_not_count() -> None:
    found = observed(
        (0, work(BEHIND, {0: 0, 1: 0}), 5), (30, work(BEHIND, {0: 3_000, 1: 6_000}), 5)
    )

    assert found.per_replica == 150


def test_a_partition_that_is_behind_alone_gives_a_lower_bound() -> None:
    lags = {0: 9_000.0, 1: 0.0}
    found = observed((0, work(lags, {0: 0, 1: 0}), 2), (30, work(lags, {0: 3_000, 1: 300}), 2))

    assert (found.per_replica, found.whole) == (100, False)


def test_a_lower_bound_never_lowers_what_is_known() -> None:
    lags = {0: 9_000.0, 1: 0.0}
    known = Throughput(per_replica=500.0, whole=True)
    seen = known.observe(0, work(lags, {0: 0, 1: 0}), 2, 0.0)

    assert seen.observe(30, work(lags, {0: 3_000, 1: 300}), 2, 0.0).per_replica == 500


def test_partitions_without_records_need_not_be_behind() -> None:
    idle = Work(
        loads={
            TopicPartition("t", 0): PartitionLoad(10, 9_000),
            TopicPartition("t", 1): PartitionLoad(0, 0),
        },
        committed={TopicPartition("t", 0): 0, TopicPartition("t", 1): 0},
    )
    later = Work(loads=idle.loads, committed={P0: 3_000, P1: 0})

    assert observed((0, idle, 1), (30, later, 1)).whole


def test_a_group_that_keeps_up_shows_nothing() -> None:
    calm = {0: 0.0, 1: 3.0}

    assert observed(
        (0, work(calm, {0: 0, 1: 0}), 2), (30, work(calm, {0: 300, 1: 300}), 2)
    ) == Throughput(began_s=30, committed={P0: 300, P1: 300})


def test_a_change_of_the_replicas_begins_the_measurement_again() -> None:
    found = observed(
        (0, work(BEHIND, {0: 0, 1: 0}), 1), (30, work(BEHIND, {0: 3_000, 1: 6_000}), 2)
    )

    assert (found.per_replica, found.began_s) == (None, 30)


def test_a_short_time_is_waited_out() -> None:
    found = observed(
        (0, work(BEHIND, {0: 0, 1: 0}), 2),
        (10, work(BEHIND, {0: 5_000, 1: 5_000}), 2),
        (30, work(BEHIND, {0: 6_000, 1: 6_000}), 2),
    )

    assert found.per_replica == 200


def test_new_measurements_are_smoothed() -> None:
    found = observed(
        (0, work(BEHIND, {0: 0, 1: 0}), 2),
        (30, work(BEHIND, {0: 3_000, 1: 3_000}), 2),
        (60, work(BEHIND, {0: 9_000, 1: 9_000}), 2),
    )

    assert found.per_replica == 150


def test_a_group_that_reads_nothing_measures_nothing() -> None:
    found = observed((0, work(BEHIND, {0: 0, 1: 0}), 2), (30, work(BEHIND, {0: 0, 1: 0}), 2))

    assert found.per_replica is None


def test_a_partition_without_a_commit_does_not_count() -> None:
    found = observed((0, work(BEHIND, {0: 0}), 2), (30, work(BEHIND, {0: 3_000}), 2))

    assert (found.per_replica, found.whole) == (100, False)
