"""The summary of a demo."""

from rich.console import Console

from binwright.audit.audit import AuditResult
from binwright.audit.row_ages import Freshness
from binwright.local.summary import DemoResult, show
from binwright.protocol.model import Slot, TopicPartition
from binwright.recordings.load import LoadResult
from binwright.views.group_view import GroupView, Move


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


def test_the_json_has_the_same_figures_with_units() -> None:
    figures = result().to_json()
    assert figures["commits_per_min"] == {"orders": 12.0}
    assert (figures["writer_changes"], figures["gaps"]) == (0, 0)
    assert figures["row_age_s"]["orders"] == {"p50": 3.0, "p99": 6.5, "max": 7.0}
