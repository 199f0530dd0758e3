"""What Prometheus reads."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.exposition import value

from binwright.runtime.metrics import METRICS, Sample, Samples, histogram, kind, series

LABELS = {"group": "eu", "topic": "orders", "table": "orders"}


def test_a_histogram_without_values_is_all_zero_and_has_no_series_of_its_creation() -> None:
    """So that the first value is an increase to Prometheus."""
    registry = CollectorRegistry()
    histogram("binwright_commit_seconds", registry).labels(**LABELS)
    text = generate_latest(registry).decode()
    for bound in ("0.1", "5.0", "300.0", "+Inf"):
        assert value(text, "commit_seconds_bucket", **LABELS, le=bound) == 0
    assert value(text, "commit_seconds_sum", **LABELS) == 0
    assert value(text, "commit_seconds_count", **LABELS) == 0
    assert "_created" not in text


def test_samples_of_a_metric_stand_together_wherever_they_are_from() -> None:
    """Prometheus takes each metric once."""
    samples = [
        Sample("binwright_table_rows_total", 123_456_789, LABELS),
        Sample("binwright_up", 1),
        Sample("binwright_table_rows_total", 1, {**LABELS, "table": "b"}),
    ]
    registry = CollectorRegistry()
    registry.register(Samples(lambda: samples))
    text = generate_latest(registry).decode()
    assert text.count("# TYPE binwright_table_rows_total counter\n") == 1
    assert text.count("# TYPE binwright_up gauge\n") == 1
    assert value(text, "table_rows_total", **LABELS) == 123_456_789
    assert value(text, "table_rows_total", **{**LABELS, "table": "b"}) == 1
    assert value(text, "up") == 1


def test_a_sample_has_the_labels_of_its_metric() -> None:
    registry = CollectorRegistry()
    registry.register(Samples(lambda: [Sample("binwright_table_rows_total", 1, {"group": "eu"})]))
    with pytest.raises(KeyError, match="topic"):
        generate_latest(registry)


def test_buckets_ascend() -> None:
    for name, metric in METRICS.items():
        assert list(metric.bounds) == sorted(set(metric.bounds)), name


def test_the_names_in_a_query_are_those_of_the_kind() -> None:
    assert kind("binwright_staging_seconds") == "histogram"
    assert series("binwright_staging_seconds") == (
        "binwright_staging_seconds_bucket",
        "binwright_staging_seconds_sum",
        "binwright_staging_seconds_count",
    )
    assert series("binwright_up") == ("binwright_up",)
