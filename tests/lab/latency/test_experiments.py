"""Latencies of packings over the paper's recorded stream, where it is, and over generated ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lab.latency.golden import FILE, NAMES, SOURCE, outcome, summary
from tests.lab.latency.written_out import written_out

from binwright.lab.latency import paper
from binwright.lab.latency.comparison import (
    Likeness,
    kafka_differences,
    likeness,
    outside_ranges,
    published,
    values,
)
from binwright.lab.latency.queues import LatencyModel
from binwright.lab.packing.experiments import StreamSource
from binwright.packing.catalogue import PAPER
from binwright.recordings import stream_file, streams

RECORDED = Path(__file__).parents[4] / "shared" / "data" / "measurements_5.json"
GOLDEN: dict[str, dict[str, Any]] = json.loads(FILE.read_bytes())


@pytest.fixture(scope="module")
def recorded() -> StreamSource:
    if not RECORDED.exists():
        pytest.skip(f"the paper's recorded stream has no licence and is not here: {RECORDED}")
    found = streams.dump(stream_file.read(RECORDED))
    return StreamSource(label="recorded", delta=5, text=found)


# --- the paper's recorded stream ---------------------------------------------------------------


def test_the_recorded_stream_is_recognised(recorded: StreamSource) -> None:
    assert likeness(recorded, LatencyModel()) is Likeness.SAME
    assert likeness(recorded, LatencyModel(rebalance_s=4)) is Likeness.OTHER


@pytest.mark.parametrize("name", paper.KAFKA)
def test_kd_n_is_late_as_published_to_the_digit(recorded: StreamSource, name: str) -> None:
    found = outcome(name, recorded)

    assert found.total == paper.TOTAL == 3_946_980
    assert found.consumers == int(name.removeprefix("kd_"))
    assert set(kafka_differences([found])) == {0.0}
    assert {key for key, one in values(found).items() if one is None} == {
        key for key, one in published(name).items() if one is None
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
    recorded: StreamSource, name: str, value: str, six_digits: float
) -> None:
    assert values(outcome(name, recorded))[value] == pytest.approx(six_digits, abs=5e-7)


def test_mwf_is_within_the_published_ranges_of_ties(recorded: StreamSource) -> None:
    mwf = outcome("mwf", recorded)

    assert mwf.total == paper.TOTAL
    assert outside_ranges(mwf) == []


@pytest.mark.parametrize("name", PAPER)
def test_the_twelve_are_near_the_published_means(recorded: StreamSource, name: str) -> None:
    """Means over five ways to break ties, so ours is near, not equal."""
    found, means = outcome(name, recorded), paper.PACKINGS[name]
    low, high = paper.PACKINGS_P90_S

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
    found = outcome("mwf", StreamSource(label="s", partitions=8, rows=1, delta=5))

    assert (found.total, found.above_zero, found.share) == (0, 0, 0.0)
    assert (found.all_s, found.above_zero_s) == ({}, {})


def test_samples_are_kept_only_where_they_are_wanted() -> None:
    assert outcome("kd_3").samples is None


def test_a_generated_stream_of_the_papers_size_is_alike() -> None:
    assert likeness(SOURCE, LatencyModel()) is Likeness.ALIKE
    smaller = StreamSource(label="s", partitions=31, rows=paper.ROWS, delta=paper.DELTA)
    assert likeness(smaller, LatencyModel()) is Likeness.OTHER
    one = StreamSource(label="s", text='[{"a": {"0": 60}}]')
    assert likeness(one, LatencyModel()) is Likeness.OTHER
