"""Workloads: one exact, one stand-in, and files."""

from pathlib import Path

import pytest

from binwright.lab.slo.bounds import Optimal, optimal
from binwright.lab.slo.workloads import (
    EVENTS,
    PEAK,
    SECONDS,
    between,
    even,
    first,
    read,
    second,
    skewed,
)
from binwright.protocol.errors import StreamError


def test_workload_1_is_the_papers() -> None:
    """109,053 events in ten minutes, at most 350 a second; Optimal costs 32.72, in 6 steps."""
    workload = first()

    assert (workload.duration_s, sum(workload.events), workload.peak) == (600, 109_053, 350)
    best = optimal(workload)
    assert (round(best.replica_minutes, 2), best.ups, best.downs) == (32.72, 6, 6)


def test_workload_2_has_the_papers_length_events_and_peak() -> None:
    workload = second()

    assert (workload.duration_s, sum(workload.events), workload.peak) == (SECONDS, EVENTS, PEAK)
    assert workload.is_stand_in
    assert min(workload.events) > 0


def test_workload_2_costs_an_optimal_autoscaler_about_as_much() -> None:
    """The true one costs 414.12 replica-minutes in 120 steps up and down."""
    best = optimal(second())

    assert best.replica_minutes == pytest.approx(414.12, rel=0.03)
    assert best.ups == pytest.approx(120, rel=0.2)


def test_a_skewed_workload_has_half_of_its_events_in_two_of_nine_partitions() -> None:
    workload = skewed(first())

    assert sum(workload.shares) == pytest.approx(1)
    assert (len(workload.shares), sum(workload.shares[:2])) == (9, 0.5)


def test_optimal_counts_the_steps_of_each_second() -> None:
    assert optimal(even("w", [84, 85, 100, 10])) == Optimal((1 + 2 + 2 + 1) / 60, 1, 1)


def test_there_is_nothing_behind_the_last_knot() -> None:
    with pytest.raises(ValueError, match="behind the last knot"):
        between(((0, 0), (1, 1)), 1.5)


@pytest.mark.parametrize(
    "text", ["10\n20.4\n30\n", "rate\n10\n20\n30\n", "time,rate\n0,10\n1,20\n\n2,30\n"]
)
def test_a_file_holds_events_per_second(tmp_path: Path, text: str) -> None:
    file = tmp_path / "load.csv"
    file.write_text(text)
    workload = read(file, partitions=4)

    assert workload.events == (10, 20, 30)
    assert workload.shares == (0.25,) * 4
    assert workload.name == "load.csv"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no events"),
        ("rate\n", "has no events"),
        ("0\n0\n", "has no events"),
        ("1\nx\n", "'x' is not a number"),
        ("1\n-2\n", "'-2' is not a number"),
        ("1\nnan\n", "'nan' is not a number"),
    ],
)
def test_a_file_with_something_else_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "load.csv"
    file.write_text(text)

    with pytest.raises(StreamError, match=reason):
        read(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=r"missing\.csv"):
        read(tmp_path / "missing.csv")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StreamError, match="binary"):
        read(tmp_path / "binary")
