"""When a monitor has measured a step."""

from binwright.lab.timings.steps import Pass, steps
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond

RATE = 1_000.0
WINDOW = 10


def passes(
    seconds: int, begun_s: float = 100.0, late_s: float = 0.25, ended_s: float = 1e9
) -> list[Pass]:
    """Return what a monitor with a window of `WINDOW` s publishes around a step."""
    found = []
    for number in range(90, 90 + seconds):
        since = max(0.0, number - begun_s)
        rate = PartitionRate(
            partition=0,
            rate=BytesPerSecond(RATE * min(since, WINDOW) / WINDOW),
            window_s=WINDOW,
            end=0,
            start=0,
            bytes_per_record=None,
            size=round(RATE * min(since, ended_s - begun_s)),
        )
        measurement = Measurement(
            topic="steps",
            at_ms=1_000 * number,
            monitor="m",
            number=number,
            interval_s=1.0,
            count=1,
            partitions=(rate,),
        )
        found.append(Pass(number + late_s, measurement))
    return found


def test_a_step_lasts_to_the_record_of_the_measurement() -> None:
    (step,) = steps(passes(40), {0: 100.0})
    assert (step.ninety_s, step.whole_s) == (9.25, 10.25)
    assert step.rate == RATE


def test_the_time_behind_the_loads_end_does_not_count() -> None:
    """The log grows no more, so that the rate since the first record falls."""
    (step,) = steps(passes(60, ended_s=120.0), {0: 100.0})
    assert step.rate == RATE
    assert step.ninety_s == 9.25


def test_a_step_that_was_not_measured_to_its_end_is_left_out() -> None:
    assert steps(passes(15), {0: 100.0}) == []


def test_a_partition_without_a_measurement_is_left_out() -> None:
    assert steps(passes(40), {7: 100.0}) == []
    assert steps(passes(5), {0: 100.0}) == []
