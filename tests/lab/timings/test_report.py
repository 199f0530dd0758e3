"""Tables and figures of what was timed, and the paper's values beside ours."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from binwright.lab.report.contents import Cell
from binwright.lab.report.files import write_section
from binwright.lab.timings.capacity import StagedBytes, capacity
from binwright.lab.timings.events import ConsumerStart, PlanTrigger, StateChange
from binwright.lab.timings.outcome import TimedParts, shortfalls
from binwright.lab.timings.report import section
from binwright.lab.timings.steps import RateStep
from binwright.lab.timings.tables import comparisons, durations
from binwright.protocol.model import Slot

CAPACITIES = [
    found
    for name, every_s in (("test 1", 0.1), ("test 2", 0.125))
    if (found := capacity(name, 32, [StagedBytes(n * every_s, "a", 10**6) for n in range(80)]))
]
FOUND = TimedParts(
    steps=[RateStep(partition=0, begun_s=10.0, rate=1e4, ninety_s=27.6, whole_s=30.1)],
    triggers=[PlanTrigger(at_s=20.0, seconds=0.4), PlanTrigger(at_s=30.0, seconds=1.2)],
    starts=[ConsumerStart(at_s=21.0, slot=Slot(1), seconds=0.9, process_s=None)],
    changes=[StateChange(at_s=21.1, seconds=1.0, partitions=3, started=1, after_ready_s=0.1)],
    capacities=CAPACITIES,
    unfinished=2,
    missing=7,
)


def row(label: str) -> dict[str, Cell]:
    table = durations(FOUND)
    rows = (dict(zip(table.columns, each, strict=True)) for each in table.rows)
    return next(found for found in rows if found["event"] == label)


def test_each_kind_of_event_has_its_percentiles() -> None:
    found = row("measurement to plan")
    assert (found["events"], found["p50, s"], found["max, s"]) == (2, 0.4, 1.2)


def test_the_papers_values_stand_beside_ours() -> None:
    found = {one.what: one for one in comparisons(FOUND)}
    plan = found["Δt2, measurement to plan: p50"]
    assert (plan.figure, plan.published, plan.ours) == ("Figure 15", 0.59, 0.4)
    assert found["Δt3, plan to ready consumer: p50"].remark == "upper end of a bin"
    mean = found["test 1: mean"]
    assert (mean.figure, mean.ours) == ("Table VI", 10.0)
    assert mean.published == pytest.approx(2.42, abs=0.01)
    spread = found["difference of the lowest mean from the highest"]
    assert spread.published == pytest.approx(4.6, abs=0.05)
    assert spread.ours == pytest.approx(20.0)
    assert comparisons(TimedParts()) == []


def test_the_section_is_written_the_same_each_time(tmp_path: Path) -> None:
    made = [write_section(section(FOUND, "a system"), tmp_path / name) for name in "ab"]
    for one, other in zip(*made, strict=True):
        assert one.read_bytes() == other.read_bytes()
    names = {file.name for file in made[0]}
    assert {"timings.csv", "timings-events.csv", "timings-fig13-capacity.svg"} < names
    assert {f"timings-delta-{n}" for n in range(1, 5)} == {
        name[: len("timings-delta-1")] for name in names if name.startswith("timings-delta")
    }
    rows = list(csv.reader((tmp_path / "a" / "timings-events.csv").open()))
    assert len(rows) == 8


def test_a_distribution_with_too_few_events_is_named() -> None:
    found = replace(FOUND, wanted={1: 1, 2: 3, 3: 2, 4: 1})

    assert [(short.delta, short.events, short.wanted) for short in shortfalls(found)] == [
        *((2, 2, 3), (3, 1, 2))
    ]
