"""What counts as a pause."""

from pathlib import Path

import pytest
from bench.handover.gaps import Baseline, Gap, baseline, disturbance, gaps, gaps_between
from bench.handover.marks import Mark, Marks, has_read, read_marks

STEADY = Baseline(0.1, 0.2)


def test_what_was_read_before_ends_no_gap() -> None:
    """The new owner reads again what the previous owner dropped: that is nothing new."""
    marks = [Mark(0, 0, 9, 1.0, 7), Mark(0, 5, 9, 1.1, 8), Mark(0, 10, 10, 1.5, 8)]
    assert gaps(marks) == [Gap(0, 1.0, 0.5, changed_reader=True)]


def test_each_partition_has_gaps_of_its_own() -> None:
    marks = [Mark(0, 0, 0, 1.0, 7), Mark(1, 0, 0, 1.1, 8), Mark(0, 1, 1, 1.2, 7)]
    assert [(gap.partition, gap.changed_reader) for gap in gaps(marks)] == [(0, False)]


def test_the_usual_distance_follows_from_median_and_almost_longest() -> None:
    lengths = [Gap(0, n, 0.1 if n < 999 else 5.0, changed_reader=False) for n in range(1000)]
    assert baseline(lengths) == Baseline(0.1, 0.1)
    with pytest.raises(ValueError, match="nothing was read"):
        baseline([])


def test_a_pause_is_what_stands_out_and_counts_from_the_usual_distance() -> None:
    found = [
        Gap(0, 1.0, 0.24, changed_reader=False),  # noise
        Gap(1, 1.0, 1.1, changed_reader=False),
        Gap(1, 3.0, 0.15, changed_reader=True),
        Gap(2, 1.0, 2.1, changed_reader=True),
    ]
    seen = disturbance(found, [1.0, 3.0], STEADY)
    assert (seen.events, seen.pauses, seen.changed_hands) == (2, 2, 2)
    assert seen.disturbed == 3, "partition 1 in both events, partition 2 in the second"
    assert seen.paused_s == pytest.approx(1.0 + 2.0)
    assert seen.handed_over_s == pytest.approx(0.05 + 2.0)
    assert seen.longest_gap_s == pytest.approx(2.1)


def test_gaps_belong_to_when_they_begin() -> None:
    found = [Gap(0, at, 1.0, changed_reader=False) for at in (1.0, 2.0, 3.0)]
    assert gaps_between(found, 2.0, 3.0) == [found[1]]


def test_marks_are_read_back_in_order_of_time(tmp_path: Path) -> None:
    assert not has_read(tmp_path, 7)
    first, second = Marks(tmp_path, 7), Marks(tmp_path, 8)
    second.add({1: (5, 6)})
    first.add({0: (1, 2), 3: (4, 4)})
    found = [(m.partition, m.first, m.last, m.reader) for m in read_marks(tmp_path)]
    assert found == [(1, 5, 6, 8), (0, 1, 2, 7), (3, 4, 4, 7)]
    assert has_read(tmp_path, 7)
