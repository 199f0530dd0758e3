"""A report as numbers."""

import pytest

from binwright.consumer.decode.decoders import DecodingTotals
from binwright.consumer.report_metrics import consumer_samples
from binwright.protocol.metadata import (
    MeasuredCapacity,
    Report,
    TableCompaction,
    TableOperation,
    TableRegistration,
    TableReport,
)
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.tables.targets import Target

P = TopicPartition("orders", 0)
TYPED = Target("orders", "orders_typed")


def test_a_consumer_reports_metrics_of_itself_and_of_the_tables_it_writes() -> None:
    table = TableReport(
        state="refused", committed={P: 7}, age_s=4.0, rows=3, fault="no", newest_ms=10_000
    )
    report = Report(
        slot=Slot(2),
        epoch=1,
        term=0,
        ready=True,
        reading={P: 8},
        writing={"orders": table},
        staged_bytes=5,
        lost_offsets=6,
        capacity=MeasuredCapacity(bytes_per_s=BytesPerSecond(8.0), spread=0, used=1, seconds=30),
        faults={"orders": "stands"},
    )
    totals = DecodingTotals(
        seconds={TYPED: 0.5},
        bad={(TYPED, "malformed"): 2, (TYPED, "incompatible"): 1},
        versions={TYPED: 4},
        requests={"failed": 3},
        schema_faults={TYPED: 9},
    )
    samples = list(consumer_samples("eu", report, 12_000, totals))
    found = {(s.name, s.labels.get("slot", s.labels.get("topic"))): s.value for s in samples}
    assert found["binwright_consumer_staged_bytes", "2"] == 5
    assert found["binwright_consumer_lost_offsets_total", "2"] == 6
    assert found["binwright_consumer_stuck_topics", "2"] == 1
    assert found["binwright_consumer_capacity_bytes_per_second", "2"] == 8
    assert found["binwright_consumer_registry_requests_total", "2"] == 3
    assert found["binwright_consumer_decoding_seconds_total", "2"] == 0.5
    assert found["binwright_consumer_schema_version", "2"] == 4
    assert found["binwright_consumer_schema_faults_total", "2"] == 9
    bad = {s.labels["kind"]: s.value for s in samples if "kind" in s.labels}
    assert bad == {"malformed": 2, "incompatible": 1}
    assert found["binwright_table_age_seconds", "orders"] == 4.0
    assert found["binwright_table_freshness_seconds", "orders"] == 2.0
    assert found["binwright_table_refused", "orders"] == 1
    assert found["binwright_table_landing", "orders"] == 0
    tables = {s.name: s.labels["table"] for s in samples if "table" in s.labels}
    assert tables["binwright_consumer_decoding_seconds_total"] == "orders_typed"
    assert tables["binwright_table_refused"] == "orders"


@pytest.mark.parametrize(("fault", "lands"), [("", 1), ("Spark does not answer", 0)])
def test_a_table_that_waits_for_spark_does_not_land(fault: str, lands: int) -> None:
    table = TableReport(state="landing", committed={}, fault=fault)
    report = Report(
        slot=Slot(0), epoch=1, term=0, ready=True, reading={}, writing={"orders": table}
    )
    samples = consumer_samples("eu", report, 0, DecodingTotals())
    assert {s.value for s in samples if s.name == "binwright_table_landing"} == {lands}


def test_a_table_has_numbers_of_its_small_files_where_they_are_merged() -> None:
    merged = TableCompaction(
        small_files=5, small_bytes=500, seconds=1.5, files_read=90, bytes_read=900, files_written=1
    )
    tables = {
        "orders": TableReport(state="landing", committed={}, compaction=merged),
        "clicks": TableReport(state="landing", committed={}),
    }
    report = Report(slot=Slot(2), epoch=1, term=0, ready=True, reading={}, writing=tables)
    samples = list(consumer_samples("eu", report, 0, DecodingTotals()))
    found = {
        s.name.removeprefix("binwright_table_"): s.value
        for s in samples
        if "small" in s.name or "compaction" in s.name
    }
    assert found == {
        "small_files": 5,
        "small_bytes": 500,
        "compaction_seconds_total": 1.5,
        "compaction_read_files_total": 90,
        "compaction_read_bytes_total": 900,
        "compaction_written_files_total": 1,
        "compaction_written_bytes_total": 0,
    }
    assert {s.labels["table"] for s in samples if "small" in s.name} == {"orders"}


def test_a_table_that_is_to_be_registered_has_a_metric_of_it() -> None:
    names = {"orders": True, "clicks": False}
    tables = {
        table: TableReport(
            state="landing",
            committed={},
            registration=TableRegistration(name=f"s.{table}", registered=done),
        )
        for table, done in names.items()
    }
    tables["raw"] = TableReport(state="landing", committed={})
    report = Report(slot=Slot(2), epoch=1, term=0, ready=True, reading={}, writing=tables)
    samples = consumer_samples("eu", report, 0, DecodingTotals())
    registered = {
        s.labels["table"]: s.value for s in samples if s.name == "binwright_table_registered"
    }
    assert registered == names


def test_a_table_of_which_nothing_has_landed_has_no_freshness() -> None:
    table = TableReport(state="landing", committed={})
    report = Report(
        slot=Slot(2), epoch=1, term=0, ready=True, reading={}, writing={"orders": table}
    )
    names = {s.name for s in consumer_samples("eu", report, 12_000, DecodingTotals())}
    assert "binwright_table_age_seconds" in names
    assert "binwright_table_freshness_seconds" not in names


def test_the_work_on_a_table_is_measured() -> None:
    operation = TableOperation(
        id="1",
        work="replay",
        by="ann",
        state="running",
        fault="Spark is away",
        moved={"malformed": 2, "incompatible": 3},
        left={"malformed": 4},
        skipped=1,
    )
    table = TableReport(state="landing", committed={}, operation=operation)
    report = Report(
        slot=Slot(2), epoch=1, term=0, ready=True, reading={}, writing={"orders": table}
    )
    samples = [s for s in consumer_samples("eu", report, 0, DecodingTotals()) if "work" in s.labels]
    found = {(s.name, s.labels.get("outcome")): s.value for s in samples}
    assert found["binwright_table_operation_running", None] == 1
    assert found["binwright_table_operation_failed", None] == 1
    records = {outcome: value for (_, outcome), value in found.items() if outcome}
    assert records == {"moved": 5, "left": 4, "skipped": 1, "masked": 0}
