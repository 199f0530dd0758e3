"""Tables, figures and notes of what was timed."""

import csv
from dataclasses import replace
from pathlib import Path

from binwright.lab.report.contents import Cell
from binwright.lab.report.files import write_section
from binwright.lab.timings.capacity import StagedBytes, capacity
from binwright.lab.timings.events import ConsumerStart, PlanTrigger, StateChange
from binwright.lab.timings.outcome import Timings, shortfalls
from binwright.lab.timings.report import section
from binwright.lab.timings.steps import RateStep
from binwright.lab.timings.tables import capacities, durations, events, notes
from binwright.protocol.model import Slot

CAPACITIES = [
    found
    for name, every_s in (("test 1", 0.1), ("test 2", 0.125))
    if (found := capacity(name, 32, [StagedBytes(n * every_s, "a", 10**6) for n in range(80)]))
]
FOUND = Timings(
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


def test_the_papers_percentiles_stand_beside_ours() -> None:
    found = row("measurement to plan")
    assert (found["events"], found["p50, s"], found["max, s"]) == (2, 0.4, 1.2)
    assert (found["paper's events"], found["paper's p50, s"]) == (1_345, 0.59)


def test_a_kind_without_an_event_has_no_row() -> None:
    labels = [each[1] for each in durations(FOUND).rows]
    assert "its process: Hello to ready" not in labels
    assert "the same, with a start" in labels
    assert durations(Timings()).rows == []


def test_every_event_is_in_the_table_of_events() -> None:
    kinds = [each[0] for each in events(FOUND).rows]
    assert kinds == [
        *("step-90", "step-99", "trigger", "trigger", "ready", "change", "change-after-ready")
    ]


def test_capacities_stand_beside_the_papers() -> None:
    table = capacities(CAPACITIES)
    rows = [dict(zip(table.columns, each, strict=True)) for each in table.rows]
    assert [each["mean, MB/s"] for each in rows] == [10.0, 8.0]
    assert [each["paper's mean, MB/s"] for each in rows] == [2.42, 2.31]


def test_the_remarks_have_the_differences() -> None:
    text = " ".join(notes(FOUND))
    assert "median 0.40 s, 0.68 of the paper's 0.59 s" in text
    assert "50% of the triggers took 1 s at most" in text
    assert "2 plans were replaced" in text
    assert "7 records of the range are compacted away" in text
    assert "mean rates differ by 20.0%, the paper's by 4.6%" in text


def test_nothing_timed_gives_no_remark() -> None:
    assert list(notes(Timings())) == []


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


def test_a_part_that_was_not_run_has_neither_table_nor_figure() -> None:
    found = section(replace(FOUND, steps=(), capacities=()), "a system")
    assert [table.name for table in found.tables] == ["timings", "timings-events"]
    assert [chart.name for chart in found.charts] == [
        *("timings-delta-2-trigger", "timings-delta-3-ready", "timings-delta-4-change")
    ]


def test_a_distribution_with_too_few_events_is_named() -> None:
    found = replace(FOUND, wanted={1: 1, 2: 3, 3: 2, 4: 1})

    assert [(short.delta, short.events, short.wanted) for short in shortfalls(found)] == [
        *((2, 2, 3), (3, 1, 2))
    ]
    text = " ".join(notes(found))
    assert "Δt2, measurement to plan: 2 events of 3 that were wanted" in text


def test_a_distribution_without_an_event_is_named_too() -> None:
    none = Timings(wanted={1: 1})
    assert [short.label for short in shortfalls(none)] == ["monitor: 90 % of a step"]
