"""The summary of a demo."""

from dataclasses import replace
from pathlib import Path

from binwright.cli.terminal import Console
from binwright.inspect.audit import AuditResult, TableAudit
from binwright.inspect.row_ages import Freshness
from binwright.local.summary import DemoResult, explain, next_steps, show
from binwright.look.group_view import GroupView, Move
from binwright.protocol.model import Slot, TopicPartition
from binwright.streams.load import LoadResult


def result() -> DemoResult:
    view = GroupView(moves=[Move(TopicPartition("orders", 0), Slot(0), Slot(1), 0.25)])
    age = Freshness(topic="orders", rows=9, undated=0, p50_s=3.0, p99_s=6.5, max_s=7.0)
    return DemoResult(
        ready_s=9.0,
        landing_s=4.0,
        load_result=LoadResult(elapsed_s=60.0, partitions={}, rows=1, shed_bytes=0),
        view=view,
        counts=(1, 2),
        faults=(),
        audit=AuditResult(tables=()),
        ages=[age],
        commits_per_min={"orders": 12.0},
    )


def test_the_summary_shows_ages_commits_moves_and_the_audit() -> None:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(show(result()))
    page = captured.get()
    assert "p50 3.00 s, p99 6.50 s" in page
    assert "12.0 a minute" in page
    assert "p50 0.25 s, p99 0.25 s" in page
    assert "every record landed exactly once" in page


def test_three_lines_explain_in_plain_words_what_the_figures_mean() -> None:
    landed, sized, moved = explain(result()).splitlines()
    assert landed == "Every record that was written to Kafka is in the Delta tables, once."
    assert sized == "1 to 2 consumers ran, as many as the load needed at the time."
    assert moved.startswith("A partition that changed its consumer paused for 0.25 s (median);")
    unchecked = TableAudit(
        topic="a", name="a", path="a", exists=True, partitions=(), unchecked="why"
    )
    lost = replace(result(), audit=AuditResult(tables=(unchecked,)))
    assert explain(lost).startswith("Not every record is in the Delta tables once")


def test_the_end_shows_what_to_type_next() -> None:
    assert "binwright demo --keep run" in next_steps(None, result())
    kept = next_steps(Path("run"), result())
    assert kept.startswith("The tables are in run/lake. Query one:")
    assert "DeltaTable('run/lake/orders')" in kept


def test_the_json_has_the_same_figures_with_units() -> None:
    figures = result().to_json()
    assert figures["commits_per_min"] == {"orders": 12.0}
    assert (figures["writer_changes"], figures["gaps"]) == (0, 0)
    assert figures["row_age_s"]["orders"] == {"p50": 3.0, "p99": 6.5, "max": 7.0}
