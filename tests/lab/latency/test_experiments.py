"""The latency experiment: its equations, consumer by consumer, and golden values."""

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.latency.golden import FILE, NAMES, SOURCE, outcome, summary
from tests.lab.latency.written_out import written_out

from binwright.lab.latency import published
from binwright.lab.latency.experiments import GroupQueues, LatencyModel
from binwright.lab.latency.published import (
    Likeness,
    comparisons,
    likeness,
    published_values,
    values,
)
from binwright.lab.latency.samples import LatencyLine, LatencySamples
from binwright.lab.packing.experiments import PackingStream
from binwright.packing.catalogue import PAPER
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.streams import stream_file, streams

RECORDED = Path(__file__).parents[4] / "shared" / "data" / "measurements_5.json"
HALF_A_DIGIT = 5e-4
"""Of the published seconds."""
GOLDEN: dict[str, dict[str, Any]] = json.loads(FILE.read_bytes())


@pytest.fixture(scope="module")
def recorded() -> PackingStream:
    if not RECORDED.exists():
        pytest.skip(f"the paper's recorded stream has no licence and is not here: {RECORDED}")
    found = streams.dump(stream_file.read(RECORDED))
    return PackingStream(label="recorded", delta=5, text=found)


# --- the paper's recorded stream ---------------------------------------------------------------


def test_the_recorded_stream_is_recognised(recorded: PackingStream) -> None:
    assert likeness(recorded, LatencyModel()) is Likeness.SAME
    assert likeness(recorded, LatencyModel(rebalance_s=4)) is Likeness.OTHER


@pytest.mark.parametrize("name", published.KAFKA)
def test_kd_n_is_late_as_published_to_the_digit(recorded: PackingStream, name: str) -> None:
    found = outcome(name, recorded)

    assert found.total == published.TOTAL == 3_946_980
    assert found.consumers == int(name.removeprefix("kd_"))
    assert max(abs(one.difference or 0.0) for one in comparisons([found])) <= HALF_A_DIGIT
    assert {key for key, one in values(found).items() if one is None} == {
        key for key, one in published_values(name).items() if one is None
    }


@pytest.mark.parametrize(
    ("name", "value", "six_digits"),
    [
        ("kd_15", "p90_above_zero_s", 217.325267),
        ("kd_15", "p99_all_s", 364.660961),
        ("kd_15", "max_s", 482.170530),
        ("kd_24", "p90_above_zero_s", 2.695813),
        ("kd_27", "max_s", 37.660534),
        ("kd_30", "p90_above_zero_s", 1.114067),
    ],
)
def test_kd_n_is_late_as_known_to_six_digits(
    recorded: PackingStream, name: str, value: str, six_digits: float
) -> None:
    assert values(outcome(name, recorded))[value] == pytest.approx(six_digits, abs=5e-7)


def test_mwf_is_within_the_published_ranges_of_ties(recorded: PackingStream) -> None:
    mwf = outcome("mwf", recorded)

    assert mwf.total == published.TOTAL
    ranges = [one for one in comparisons([mwf]) if isinstance(one.published, tuple)]
    assert len(ranges) == len(published.MWF_RANGES)
    assert max(abs(one.difference or 0.0) for one in ranges) <= HALF_A_DIGIT


@pytest.mark.parametrize("name", PAPER)
def test_the_twelve_are_near_the_published_means(recorded: PackingStream, name: str) -> None:
    """Means over five ways to break ties, so ours is near, not equal."""
    found, means = outcome(name, recorded), published.PACKINGS[name]
    low, high = published.PACKINGS_P90_S

    assert found.consumers == pytest.approx(means["consumers"], rel=0.02)
    assert found.expected_rscore == pytest.approx(means["expected_rscore"], rel=0.1)
    assert found.share == pytest.approx(means["share"], abs=0.01)
    assert found.all_s[99] == pytest.approx(means["p99_all_s"], rel=0.1)
    assert low <= round(found.above_zero_s[90], 2) <= high


# --- generated streams -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_generated_stream_gives_the_golden_latencies(name: str) -> None:
    """Print them with `python -m tests.lab.latency.golden`; they change with a rule only."""
    assert summary(name) == GOLDEN[name]


@pytest.mark.parametrize("name", ["kd_3", "kd_15", "kd_24", "kd_32", "nf", "bfd", "mwf", "mbfp"])
def test_the_latencies_are_those_of_all_samples_written_out(name: str) -> None:
    found, every = outcome(name), written_out(name, SOURCE)
    late = every[every > 0]

    assert (found.total, found.above_zero) == (len(every), len(late))
    assert found.max_s == every.max()
    for percent, value in found.all_s.items():
        assert value == pytest.approx(np.percentile(every, percent), rel=1e-12)
    assert set(found.above_zero_s) == ({1, 25, 50, 75, 90, 99} if len(late) else set())
    for percent, value in found.above_zero_s.items():
        assert value == pytest.approx(np.percentile(late, percent), rel=1e-12)


def test_each_packing_has_a_sample_for_every_byte_after_the_first_measurement() -> None:
    rates = [sum(row.values()) for row in SOURCE.stream()]

    assert {GOLDEN[name]["total"] for name in NAMES} == {30 * sum(rates[1:])}


def test_a_stream_of_one_measurement_has_no_latency() -> None:
    found = outcome("mwf", PackingStream(label="s", partitions=8, rows=1, delta=5))

    assert (found.total, found.above_zero, found.share) == (0, 0, 0.0)
    assert (found.all_s, found.above_zero_s) == ({}, {})


def test_samples_are_kept_only_where_they_are_wanted() -> None:
    assert outcome("kd_3").samples is None


def test_a_generated_stream_of_the_papers_size_is_alike() -> None:
    assert likeness(SOURCE, LatencyModel()) is Likeness.ALIKE
    smaller = PackingStream(label="s", partitions=31, rows=published.ROWS, delta=published.DELTA)
    assert likeness(smaller, LatencyModel()) is Likeness.OTHER
    one = PackingStream(label="s", text='[{"a": {"0": 60}}]')
    assert likeness(one, LatencyModel()) is Likeness.OTHER


MODEL = LatencyModel()
A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
ZERO, ONE = Slot(0), Slot(1)


def group(
    *intervals: tuple[dict[TopicPartition, float], dict[TopicPartition, Slot]],
) -> LatencySamples:
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
    assert line == LatencyLine(0, 1 / 133 - 1 / 266, 30 * 266)
    assert line.last == pytest.approx(30, rel=0.001)  # twice the limit: as late as it is long


def test_a_rebalanced_queue_is_late_by_the_rebalance_time_and_catches_up() -> None:
    (line,) = MODEL.lines(0, 100, 99)
    assert line == LatencyLine(5, 1 / 133 - 1 / 100, 3000)
    assert line.last == 0


def test_a_fixed_queue_beside_a_rebalanced_one_keeps_its_latency() -> None:
    """It is read as fast as it is written; what is left of the limit is for the other."""
    fixed, rebalanced = MODEL.lines(33, 50, 2)
    assert fixed == LatencyLine(2, 0, 990)
    assert rebalanced == LatencyLine(5, 1 / 100 - 1 / 50, 1500)


def test_a_rebalanced_queue_without_a_rate_waits_for_the_next_interval() -> None:
    """The equations divide by zero here: the least that these bytes can wait stands for it."""
    fixed, rebalanced = MODEL.lines(150, 50, 0)
    assert fixed == LatencyLine(0, 1 / 133 - 1 / 150, 4500)
    assert rebalanced == LatencyLine(30, 1 / 133 - 1 / 50, 1500)


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
