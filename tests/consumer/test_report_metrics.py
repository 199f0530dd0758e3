"""A report as numbers."""

from binwright.consumer.report_metrics import consumer_samples
from binwright.protocol.messages import MeasuredCapacity, Report, TableReport
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.runtime.metrics import METRICS

P = TopicPartition("orders", 0)


def test_a_consumer_reports_metrics_of_itself_and_of_the_tables_it_writes() -> None:
    table = TableReport(
        state="refused", committed={P: 7}, age_s=4.0, pending_bytes=9, rows=3, commits=2, fault="no"
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
    samples = list(consumer_samples("eu", report, {"failed": 3}))
    found = {(s.name, s.labels.get("slot", s.labels.get("topic"))): s.value for s in samples}
    assert found["binwright_consumer_staged_bytes", "2"] == 5
    assert found["binwright_consumer_lost_offsets_total", "2"] == 6
    assert found["binwright_consumer_stuck_topics", "2"] == 1
    assert found["binwright_consumer_capacity_bytes_per_second", "2"] == 8
    assert found["binwright_consumer_registry_requests_total", "2"] == 3
    assert found["binwright_table_age_seconds", "orders"] == 4.0
    assert found["binwright_table_refused", "orders"] == 1
    assert found["binwright_table_landing", "orders"] == 0
    assert {s.name for s in samples} <= METRICS.keys()
