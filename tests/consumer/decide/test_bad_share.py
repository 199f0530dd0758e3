"""A table stops when too many of its newest records are bad."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.consumer.decide.bad_share import WINDOW, BadShare


@pytest.mark.parametrize(
    ("most", "records", "bad", "exceeded"),
    [
        (1.0, 5_000, 5_000, False),
        (0.0, 5_000, 0, False),
        (0.0, 1, 1, True),
        (0.01, 5_000, 50, False),
        (0.01, 5_000, 51, True),
        (0.01, 20, 10, False),  # of the newest 1,000, the few that there were count as all
        (0.01, 20, 11, True),
    ],
)
def test_a_share_is_of_a_thousand_records_at_least(
    most: float, records: int, bad: int, *, exceeded: bool
) -> None:
    assert BadShare(most).after(records, bad).exceeded is exceeded


def test_bad_records_of_small_commits_add_up() -> None:
    share = BadShare(0.1)
    for _ in range(10):
        share = share.after(10, 10)
        assert not share.exceeded
    assert share.after(1, 1).exceeded


def test_a_commit_without_bad_records_lands_whatever_was_before() -> None:
    share = BadShare(0.01).after(5_000, 0).after(20, 20)
    assert not share.exceeded
    assert not share.after(980, 0).exceeded
    assert share.after(980, 1).exceeded
    assert not BadShare(0.0).exceeded


def test_what_was_bad_long_ago_counts_no_more() -> None:
    share = BadShare(0.1).after(100, 100).after(WINDOW, 0)
    assert (share.records, share.bad) == (WINDOW, 0)


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 2_000))))
def test_the_newest_thousand_records_are_counted_and_no_commit_more(
    commits: list[tuple[int, int]],
) -> None:
    share = BadShare(0.5)
    for records, bad in commits:
        share = share.after(records, bad)
    counted = share.counts
    assert counted == tuple(commits[len(commits) - len(counted) :])
    assert not counted or sum(n for n, _ in counted[1:]) < WINDOW
    if len(counted) < len(commits):
        assert sum(n for n, _ in counted) >= WINDOW
