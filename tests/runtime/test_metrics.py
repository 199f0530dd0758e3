"""The text that Prometheus reads."""

import pytest

from binwright.runtime.metrics import METRICS, Distribution, Sample, exposition, kind, series

LABELS = {"group": "eu", "topic": "orders"}


def test_a_histogram_counts_upwards_and_a_bound_belongs_to_the_bucket_below_it() -> None:
    took = Distribution("binwright_commit_seconds")
    for seconds in (0.05, 0.1, 5.0, 5.5, 300.0):
        took.observe(seconds)
    lines = exposition([Sample("binwright_commit_seconds", took, LABELS)]).splitlines()
    assert lines[1] == "# TYPE binwright_commit_seconds histogram"
    labels = 'group="eu",topic="orders"'
    for bound, count in (
        ("0.1", 2),
        ("2.5", 2),
        ("5", 3),
        ("7.5", 4),
        ("120", 4),
        ("300", 5),
        ("+Inf", 5),
    ):
        assert f'binwright_commit_seconds_bucket{{{labels},le="{bound}"}} {count}' in lines
    assert f"binwright_commit_seconds_sum{{{labels}}} 310.65" in lines
    assert f"binwright_commit_seconds_count{{{labels}}} 5" in lines


def test_a_histogram_without_values_is_all_zero() -> None:
    """So that the first value is an increase to Prometheus."""
    empty = Distribution("binwright_move_pause_seconds")
    lines = exposition([Sample("binwright_move_pause_seconds", empty, {"group": "eu"})])
    numbers = {line.rsplit(" ", 1)[1] for line in lines.splitlines() if line[0] != "#"}
    assert numbers == {"0"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (123_456_789, "123456789"),
        (1_234_567.5, "1234567.5"),
        (True, "1"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
        (1e-7, "1e-07"),
    ],
)
def test_a_number_is_written_in_full(value: float, text: str) -> None:
    """With six digits a counter of millions of rows would stand for minutes, then jump."""
    page = exposition([Sample("binwright_table_rows_total", value, LABELS)])
    assert (
        page.splitlines()[-1] == f'binwright_table_rows_total{{group="eu",topic="orders"}} {text}'
    )


def test_buckets_ascend_and_the_help_needs_no_escape() -> None:
    for name, metric in METRICS.items():
        assert list(metric.bounds) == sorted(set(metric.bounds)), name
        assert not set(metric.help) & {"\\", "\n"}, name


def test_the_names_in_a_query_are_those_of_the_kind() -> None:
    assert kind("binwright_staging_seconds") == "histogram"
    assert series("binwright_staging_seconds") == (
        "binwright_staging_seconds_bucket",
        "binwright_staging_seconds_sum",
        "binwright_staging_seconds_count",
    )
    assert series("binwright_up") == ("binwright_up",)
