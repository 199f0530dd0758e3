"""What `apply` prints."""

from dataclasses import replace
from io import StringIO

from binwright.balancer.commands.apply import ProgressLines, line
from binwright.balancer.decide.reassignment import (
    ClusterObservation,
    CopyLimits,
    NextActions,
    decide,
)
from binwright.balancer.decide.throttles import Throttles
from binwright.balancer.ports import ClusterState, Disk, PartitionState, Reassignment
from binwright.cli.terminal import Console
from binwright.protocol.model import TopicPartition

P0 = TopicPartition("orders", 0)
COPYING = ClusterState(
    {1: None, 2: None, 3: None},
    {P0: PartitionState(1, (3, 2, 1), frozenset({1, 2}))},
    {P0: Reassignment((3, 2, 1), (3,), (1,))},
)
DISKS = {1: Disk(9, 9, {P0: 200}), 3: Disk(9, 9, {P0: 50})}


def decided(slow: str | None = None) -> tuple[NextActions, ClusterObservation]:
    seen = ClusterObservation(COPYING, Throttles(), DISKS, slow)
    return decide({P0: (3, 2)}, CopyLimits(), seen), seen


def test_a_copy_is_shown_with_the_share_that_is_there() -> None:
    assert line(*decided()) == ("0 of 1 partitions in place; 1 being copied: orders-0 → 3 25 %")


def test_a_pause_is_shown_with_its_reason() -> None:
    assert line(*decided("producers wait")).endswith("; paused: producers wait")


def test_a_line_is_printed_when_it_changes() -> None:
    console = Console(width=160, record=True, file=StringIO())
    lines = ProgressLines(console)
    for slow in (None, None, "slow"):
        lines.show(*decided(slow))
    assert len(console.export_text().splitlines()) == 2


def test_throttles_that_another_operator_took_away_are_reported() -> None:
    moved, seen = decided()
    assert "took our throttles off orders" in line(moved, replace(seen, stripped=("orders",)))


def test_partitions_that_were_deleted_meanwhile_are_not_in_place() -> None:
    lines = ProgressLines(Console(file=StringIO()))
    moved, seen = decided()
    steps = replace(moved.progress, steps={"done": 2}, copying=())
    lines.show(replace(moved, progress=steps), seen)
    assert lines.in_place(2) == "2 partitions are in place"
    assert lines.in_place(6) == "2 partitions are in place, 4 were deleted meanwhile"
