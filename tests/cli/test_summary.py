"""What a demo came to, at a glance."""

from rich.console import Console

from binwright.cli.summary import Outcome, show, sparkline
from binwright.core.model import Slot, TopicPartition
from binwright.lab.audit import AuditResult
from binwright.lab.freshness import Freshness
from binwright.lab.load import Played
from binwright.lab.picture import Move, Picture


def outcome() -> Outcome:
    picture = Picture(moves=[Move(TopicPartition("orders", 0), Slot(0), Slot(1), 0.25)])
    age = Freshness(topic="orders", rows=9, undated=0, p50_s=3.0, p99_s=6.5, max_s=7.0)
    return Outcome(
        ready_s=9.0,
        landing_s=4.0,
        played=Played(elapsed_s=60.0, partitions={}, rows=1, shed_bytes=0),
        picture=picture,
        counts=(1, 2),
        faults=(),
        audit=AuditResult(tables=()),
        ages=[age],
        commits_per_min={"orders": 12.0},
    )


def test_it_tells_ages_commits_moves_and_the_audit() -> None:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(show(outcome()))
    page = captured.get()
    assert "p50 3.00 s, p99 6.50 s" in page
    assert "12.0 a minute" in page
    assert "p50 0.25 s, p99 0.25 s" in page
    assert "every record landed exactly once" in page


def test_programs_get_the_same_with_units() -> None:
    facts = outcome().facts()
    assert facts["commits_per_min"] == {"orders": 12.0}
    assert (facts["writer_changes"], facts["gaps"]) == (0, 0)
    assert facts["row_age_s"]["orders"] == {"p50": 3.0, "p99": 6.5, "max": 7.0}


def test_consumers_over_time_are_drawn_to_their_peak() -> None:
    assert sparkline([1, 2, 4, 2]) == "▂▄█▄"


def test_a_long_time_is_drawn_by_the_highest_of_each_stretch() -> None:
    assert sparkline([0, 8, 4, 4], width=2) == "█▄"


def test_no_time_is_no_line() -> None:
    assert sparkline([]) == ""
