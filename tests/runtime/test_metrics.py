"""What Prometheus reads."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.exposition import value
from tools.reference.metrics import declared

from binwright.consumer.metrics import COMMIT_SECONDS, STAGING_SECONDS
from binwright.runtime.exposition import Samples, histogram
from binwright.runtime.group_metrics import TABLE_ROWS_TOTAL
from binwright.runtime.metrics import UP, Metric, Sample

LABELS = {"group": "eu", "topic": "orders", "table": "orders"}


def test_a_histogram_without_values_is_all_zero_and_has_no_series_of_its_creation() -> None:
    """So that the first value is an increase to Prometheus."""
    registry = CollectorRegistry()
    histogram(COMMIT_SECONDS, registry).labels(**LABELS)
    text = generate_latest(registry).decode()
    for bound in ("0.1", "5.0", "300.0", "+Inf"):
        assert value(text, "commit_seconds_bucket", **LABELS, le=bound) == 0
    assert value(text, "commit_seconds_sum", **LABELS) == 0
    assert value(text, "commit_seconds_count", **LABELS) == 0
    assert "_created" not in text


def test_samples_of_a_metric_stand_together_wherever_they_are_from() -> None:
    """Prometheus takes each metric once."""
    samples = [
        Sample(TABLE_ROWS_TOTAL, 123_456_789, LABELS),
        Sample(UP, 1),
        Sample(TABLE_ROWS_TOTAL, 1, {**LABELS, "table": "b"}),
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
    registry.register(Samples(lambda: [Sample(TABLE_ROWS_TOTAL, 1, {"group": "eu"})]))
    with pytest.raises(KeyError, match="topic"):
        generate_latest(registry)


def test_buckets_ascend() -> None:
    for metric in declared().values():
        assert list(metric.bounds) == sorted(set(metric.bounds)), metric.name


def test_two_programs_cannot_declare_a_metric_of_one_name() -> None:
    assert Metric(UP.name, UP.help, UP.labels, UP.where) == UP, "a module may be read twice"
    with pytest.raises(ValueError, match="binwright_up"):
        Metric(UP.name, "something else", UP.labels, UP.where)


def test_the_names_in_a_query_are_those_of_the_kind() -> None:
    assert STAGING_SECONDS.kind == "histogram"
    assert STAGING_SECONDS.series == (
        "binwright_staging_seconds_bucket",
        "binwright_staging_seconds_sum",
        "binwright_staging_seconds_count",
    )
    assert UP.series == ("binwright_up",)
