"""Which change of each key is the newest, and which rows of a table are not of it."""

from typing import Any

import pytest

from binwright.inspect.decide.key_changes import (
    Change,
    KeyFindings,
    NewestChanges,
    Place,
    compare_keys,
)
from binwright.protocol.model import TopicPartition

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)


def change(
    offset: int,
    p: TopicPartition = P,
    *,
    at_ms: int = 100,
    sequence: tuple[Any, ...] = (),
    deletes: bool = False,
) -> Change:
    return Change(Place(p, offset), at_ms, sequence, deletes)


def newest(*changes: Change) -> list[int]:
    """Return the offsets of the newest changes of one key."""
    added = NewestChanges()
    for each in changes:
        added.add(("a",), each)
    ((key, found),) = added.newest()
    assert key == ("a",)
    return [each.place.offset for each in found]


@pytest.mark.parametrize(
    ("changes", "offsets"),
    [
        ([change(1), change(2, at_ms=50)], [2]),
        ([change(1), change(7, Q, at_ms=200)], [7]),
        ([change(1, at_ms=300), change(7, Q, at_ms=200), change(2, at_ms=250)], [2, 7]),
        ([change(1, at_ms=300), change(2, at_ms=250)], [2]),
        ([change(1, at_ms=0), change(7, Q)], [7]),
        ([change(1), change(7, Q)], [1, 7]),
        ([change(1, sequence=(5,)), change(2, sequence=(4,))], [1]),
        ([change(1, sequence=(5,)), change(2, sequence=(5,))], [2]),
        ([change(1, sequence=(None,)), change(2, Q, sequence=(1,), at_ms=0)], [2]),
    ],
    ids=[
        "partition",
        "time",
        "back",
        "back alone",
        "no time",
        "either",
        "sequence",
        "equal",
        "none",
    ],
)
def test_the_newest_change_is_the_last_of_a_partition_and_of_two_the_latest(
    changes: list[Change], offsets: list[int]
) -> None:
    assert newest(*changes) == offsets


def compared(changes: dict[str, list[Change]], rows: dict[str, int], **given: Any) -> KeyFindings:
    added = NewestChanges()
    for key, of_key in changes.items():
        for each in of_key:
            added.add((key,), each)
    return compare_keys(added, {(key,): Place(P, offset) for key, offset in rows.items()}, **given)


def test_a_row_of_the_newest_change_is_right_and_so_is_none_of_a_deletion() -> None:
    changes = {"a": [change(1), change(2)], "b": [change(3, deletes=True)], "c": [change(4)]}
    assert compared(changes, {"a": 2, "c": 4, "older than the topic": 0}) == KeyFindings()


def test_rows_that_are_missing_or_of_another_change_are_found() -> None:
    changes = {
        "lost": [change(1)],
        "old": [change(2), change(3)],
        "deleted": [change(4), change(5, deletes=True)],
    }
    found = compared(changes, {"old": 2, "deleted": 4})
    assert found == KeyFindings(lost=[Place(P, 1), Place(P, 3)], stale=[Place(P, 2), Place(P, 4)])


def test_of_two_partitions_at_one_time_either_row_is_right() -> None:
    changes = {
        "a": [change(1), change(1, Q)],
        "b": [change(2, deletes=True), change(2, Q)],
        "c": [change(3), change(3, Q, deletes=True)],
    }
    assert compared(changes, {"a": 1, "c": 3}) == KeyFindings()


def test_keys_that_change_while_the_table_is_read_are_passed_over() -> None:
    """Their rows are newer than what was read, or gone, or not there yet."""
    added = NewestChanges(ends={P: 5})
    changes = {"newer": 1, "deleted": 2, "same": 4}
    for key, offset in changes.items():
        added.add((key,), change(offset))
    for offset, key in enumerate(["newer", "deleted"], 5):
        added.add((key,), change(offset, deletes=key == "deleted"))
    found = compare_keys(added, {("newer",): Place(P, 5), ("same",): Place(P, 3)})
    assert found == KeyFindings(lost=[Place(P, 4)], stale=[Place(P, 3)])


def test_a_bad_record_of_before_hides_no_change_at_its_offset() -> None:
    added = NewestChanges(bad=frozenset([(Place(P, 1), 100), (Place(P, 2), 50)]))
    added.add(("bad",), change(1))
    added.add(("good",), change(2))
    assert [key for key, _ in added.newest()] == [("good",)]


def test_what_was_erased_or_is_older_than_the_table_keeps_is_not_lost() -> None:
    changes = {"a": [change(1)], "b": [change(2, at_ms=10)], "c": [change(3, at_ms=0)]}
    erased = frozenset([Place(P, 1), Place(P, 0)])
    found = compared(changes, {"a": 0}, erased=erased, kept_since_ms=50)
    assert found == KeyFindings(lost=[Place(P, 3)], erased=[Place(P, 1)], expired=[Place(P, 2)])
