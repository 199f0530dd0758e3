"""Eq. 16 to 27, consumer by consumer."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.lab.latency.queues import GroupQueues, LatencyModel
from binwright.lab.latency.samples import Line, Samples
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

MODEL = LatencyModel()
A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
ZERO, ONE = Slot(0), Slot(1)


def group(*intervals: tuple[dict[TopicPartition, float], dict[TopicPartition, Slot]]) -> Samples:
    """Add intervals; the owners before the first are those of the first."""
    queues, before = GroupQueues(MODEL), intervals[0][1]
    for rates, owners in intervals:
        queues.add({p: BytesPerSecond(rate) for p, rate in rates.items()}, before, owners)
        before = owners
    return queues.samples()


# --- one consumer ------------------------------------------------------------------------------


def test_a_fixed_queue_below_the_limit_is_never_late() -> None:
    (line,) = MODEL.lines(100, 0, 0)
    assert (line.first, line.count) == (0, 3000)
    assert line.slope < 0


def test_a_fixed_queue_above_the_limit_is_ever_later() -> None:
    """The paper's example: byte x is read at x / C', but was written at x / w."""
    (line,) = MODEL.lines(266, 0, 0)
    assert line == Line(0, 1 / 133 - 1 / 266, 30 * 266)
    assert line.last == pytest.approx(30, rel=0.001)  # twice the limit: as late as it is long


def test_a_rebalanced_queue_is_late_by_the_rebalance_time_and_catches_up() -> None:
    (line,) = MODEL.lines(0, 100, 99)
    assert line == Line(5, 1 / 133 - 1 / 100, 3000)
    assert line.last == 0


def test_a_fixed_queue_beside_a_rebalanced_one_keeps_its_latency() -> None:
    """It is read as fast as it is written; what is left of the limit is for the other."""
    fixed, rebalanced = MODEL.lines(33, 50, 2)
    assert fixed == Line(2, 0, 990)
    assert rebalanced == Line(5, 1 / 100 - 1 / 50, 1500)


def test_a_rebalanced_queue_without_a_rate_waits_for_the_next_interval() -> None:
    """The equations divide by zero here: the least that these bytes can wait stands for it."""
    fixed, rebalanced = MODEL.lines(150, 50, 0)
    assert fixed == Line(0, 1 / 133 - 1 / 150, 4500)
    assert rebalanced == Line(30, 1 / 133 - 1 / 50, 1500)


def test_a_byte_is_written_only_when_it_is_whole() -> None:
    assert [line.count for line in MODEL.lines(0.1, 0.05, 0)] == [3, 1]
    assert list(MODEL.lines(0.03, 0.03, 0)) == []


@given(st.floats(0.01, 1), st.floats(0.01, 200), st.floats(0, 29), st.floats(0.01, 1))
def test_a_capacity_of_the_papers_share_lets_every_consumer_catch_up(
    share: float, limit: float, rebalance_s: float, use: float
) -> None:
    """C <= C' (1 - t_reb / T): whatever of it moves, the last byte is read without latency."""
    model = LatencyModel(limit=limit, rebalance_s=rebalance_s)
    capacity = use * limit * (1 - rebalance_s / model.interval_s)
    lines = list(model.lines((1 - share) * capacity, share * capacity, 0))

    for line in lines[1 if share < 1 else 0 :]:
        # The last whole byte may be up to two before the end of the interval.
        assert line.last <= 2 * abs(line.slope) + 1e-9


def test_a_larger_capacity_does_not() -> None:
    (enough,), (too_much,) = (MODEL.lines(0, 133 * 25 / 30 * by, 0) for by in (1, 1.01))

    assert enough.last <= 2 * abs(enough.slope)
    assert too_much.last > 0.2


@pytest.mark.parametrize(
    "wrong",
    [{"limit": 0}, {"limit": nan}, {"interval_s": 0}, {"interval_s": inf}, {"rebalance_s": -1}],
)
def test_numbers_that_are_no_model_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="the latency model needs"):
        LatencyModel(**wrong)


# --- a group -----------------------------------------------------------------------------------


def test_a_partition_that_moves_is_rebalanced_and_the_others_are_fixed() -> None:
    owners = {A: ZERO, B: ZERO}
    samples = group(({A: 40, B: 60}, owners), ({A: 40, B: 60}, {A: ZERO, B: ONE}))

    assert samples.total == 6000
    assert samples.max_s == 5
    assert samples.above_zero == pytest.approx(5 / (1 / 60 - 1 / 133), abs=1)


def test_a_partition_with_its_first_owner_is_rebalanced() -> None:
    samples = group(({A: 10}, {A: ZERO}), ({A: 10, B: 10}, {A: ZERO, B: ZERO}))

    assert samples.max_s == 5


def test_the_latency_of_one_interval_is_where_the_next_one_begins() -> None:
    """30 s at 266 make it 30 s late; at 66.5 a second brings it nearer by one second."""
    late, catching_up = {A: 266.0}, {A: 66.5}
    samples = group((late, {A: ZERO}), (catching_up, {A: ZERO}), (catching_up, {A: ZERO}))

    assert samples.max_s == pytest.approx(30, rel=0.001)
    assert samples.above_zero == pytest.approx(30 * 266 + 2 * 30 * 66.5, rel=0.01)


def test_a_consumers_latency_survives_an_interval_without_load() -> None:
    """As in the paper, where it is kept by the consumer's number."""
    idle = ({A: 0.0}, {A: ZERO})
    after_late = group(({A: 266.0}, {A: ZERO}), idle, ({A: 133.0}, {A: ZERO}))
    alone = group(idle, ({A: 133.0}, {A: ZERO}))

    assert after_late.above(29) > 30 * 133
    assert alone.above_zero == 0


def test_bytes_without_a_rate_are_counted() -> None:
    queues = GroupQueues(MODEL)
    queues.add({A: BytesPerSecond(150), B: BytesPerSecond(10)}, {A: ZERO}, {A: ZERO, B: ZERO})

    assert queues.unread == 300
