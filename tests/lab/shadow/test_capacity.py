"""What a member sustains, as far as a recording shows it."""

import pytest

from binwright.lab.shadow.capacity import Capacity, CapacityMeter, FastestMember
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Work
from binwright.scaler.decide.policy import PartitionLoad

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
EACH = (frozenset({P}), frozenset({Q}))
ONE = (frozenset({P, Q}),)


def work(p: int, q: int, lag: float = 0.0, missing: int = 0) -> Work:
    loads = {P: PartitionLoad(10.0, lag), Q: PartitionLoad(10.0, lag)}
    return Work(loads=loads, committed={P: p, Q: q}, missing=missing)


def metered(*looks: Work, members: tuple[frozenset[TopicPartition], ...] = EACH) -> CapacityMeter:
    meter = CapacityMeter()
    for number, look in enumerate(looks):
        meter = meter.observe(20.0 * number, look, members, 5.0)
    return meter


def test_a_group_that_is_behind_shows_what_a_member_sustains() -> None:
    meter = metered(work(0, 0, 9_000), work(2_000, 4_000, 9_000), work(4_000, 8_000, 9_000))
    assert meter.capacity == Capacity(150.0, "measured")


def test_a_group_that_keeps_up_shows_the_most_that_one_member_has_read() -> None:
    meter = metered(work(0, 0), work(200, 800), work(500, 1_000))
    assert meter.capacity == Capacity(40.0, "seen")


def test_a_group_of_which_a_part_is_behind_shows_a_lower_bound() -> None:
    behind = {P: PartitionLoad(10.0, 9_000), Q: PartitionLoad(10.0)}
    looks = [Work(loads=behind, committed={P: at, Q: at}) for at in (0, 1_200)]
    assert metered(*looks).capacity == Capacity(60.0, "seen")


def test_a_member_reads_all_its_partitions() -> None:
    assert metered(work(0, 0), work(200, 800), members=ONE).capacity == Capacity(50.0, "seen")


def test_a_group_that_reads_nothing_shows_nothing() -> None:
    assert metered(work(7, 7), work(7, 7)).capacity is None
    assert metered().capacity is None


def test_what_is_not_known_measures_nothing() -> None:
    looks = [work(at, at, 9_000, missing=1) for at in (0, 2_000)]
    assert metered(*looks).capacity == Capacity(100.0, "seen")


@pytest.mark.parametrize(
    ("reads", "fastest"),
    [
        ((EACH, EACH, EACH), 50.0),
        ((EACH, ONE, ONE), 50.0),  # from the change on
        ((EACH, EACH, ONE), 0.0),  # too short
        ((EACH, (), EACH), 0.0),  # a rebalance
    ],
)
def test_a_member_is_followed_as_long_as_it_reads_the_same(
    reads: tuple[tuple[frozenset[TopicPartition], ...], ...], fastest: float
) -> None:
    found = FastestMember()
    times, committed = (0.0, 10.0, 30.0), (0, 500, 1_500)
    for now_s, at, owned in zip(times, committed, reads, strict=True):
        found = found.observe(now_s, {P: at}, owned)
    assert found.records_per_s == fastest


def test_a_partition_without_a_commit_counts_for_nothing() -> None:
    found = FastestMember().observe(0.0, {P: 0}, ONE).observe(20.0, {P: 100, Q: 9_000}, ONE)
    assert found.records_per_s == 5.0
    assert found.observe(40.0, {Q: 9_020}, ONE).records_per_s == 5.0
