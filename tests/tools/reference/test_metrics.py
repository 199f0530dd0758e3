"""Every metric that is reported is on the page, with its labels; and no other is."""

from pathlib import Path

from tools.reference.metrics import declared

from binwright.consumer.decode.decoders import DecodingTotals
from binwright.consumer.report_metrics import consumer_samples
from binwright.controller.group_objects.admission import NamespaceLimits
from binwright.controller.settings import ControllerProgramSettings
from binwright.fleets.reconcile import samples
from binwright.look.page.metrics import group_samples
from binwright.look.status import ConsumerStatus, Status
from binwright.look.table_status import TableStatus
from binwright.protocol.metadata import (
    MeasuredCapacity,
    Report,
    TableCompaction,
    TableOperation,
    TableRegistration,
    TableReport,
)
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import Savings, SimulatedCost
from binwright.protocol.ports.fleet import Disruption
from binwright.runtime.health import Health
from binwright.runtime.metrics import Sample
from binwright.tables.targets import Target

P = TopicPartition("orders", 0)
SLOT = Slot(0)

TARGET = Target("orders", "orders")
NAMED = TableRegistration(name="sales.orders")
CAPACITY = MeasuredCapacity(bytes_per_s=BytesPerSecond(1.0), spread=0.0, used=1.0, seconds=30.0)
OPERATION = TableOperation(id="1", work="replay", by="ann", state="done")
WRITES = TableReport(
    state="landing",
    committed={P: 7},
    newest_ms=5,
    compaction=TableCompaction(),
    registration=NAMED,
    operation=OPERATION,
)
REPORT = Report(
    slot=SLOT,
    epoch=1,
    term=0,
    ready=True,
    reading={P: 8},
    capacity=CAPACITY,
    writing={"orders": WRITES},
)

TOTALS = DecodingTotals(
    seconds={TARGET: 1.0},
    bad={(TARGET, "malformed"): 1},
    versions={TARGET: 1},
    requests={"failed": 1},
    schema_faults={TARGET: 1},
    new_fields={TARGET: {"new": 1}},
)

STATUS = Status(
    group="eu",
    state="steady",
    term=3,
    controller="c1",
    consumers=(ConsumerStatus(SLOT, "ready", (P,), 1.0, 1.0, 0, 0.0, capacity=CAPACITY),),
    partitions=1,
    unread=(),
    load=1.0,
    staging=1.0,
    lag=0,
    moves=(),
    plan=None,
    tables=(
        TableStatus(
            *("orders", "orders", SLOT, "landing", 0, WRITES),
            freshness_s=1.0,
            topics=("orders",),
        ),
    ),
    savings=Savings(
        from_ms=0,
        until_ms=1,
        sla_s=5.0,
        own=SimulatedCost(rule="binwright", replica_minutes=1.0, within_sla=1.0),
    ),
)


def _limited() -> NamespaceLimits:
    limits = NamespaceLimits(ControllerProgramSettings())
    meta = {"name": "eu", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"}
    limits.apply(limits.admissions([{"metadata": meta, "spec": {}}]))
    return limits


def reported() -> dict[str, list[Sample]]:
    return {
        "service": [s for s in Health(120.0, Path("client.pem")).samples() if not s.labels],
        "fleet": [
            *samples("eu", 1, 0, {SLOT: "Unschedulable"}, {SLOT: Disruption("roll", "a change")}),
            *_limited().samples(),
        ],
        "consumer": list(consumer_samples("eu", REPORT, 7, TOTALS)),
        "group": list(group_samples(STATUS)),
    }


def test_every_reported_metric_has_the_labels_and_the_source_of_its_entry() -> None:
    for source, found in reported().items():
        assert {(sample.name, tuple(sample.labels)) for sample in found} == {
            (name, metric.labels)
            for name, metric in declared().items()
            if source in metric.where.split(", ") and not metric.bounds
        }, source
