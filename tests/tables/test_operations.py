"""Work on a table, as its stamps have it."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.consumer.decide.land.scene import TABLE, part, stamp

from binwright.protocol.metadata import TableOperation
from binwright.protocol.orders import OperationOrder
from binwright.tables.operations import (
    BY_ENTRY,
    Cursor,
    Operation,
    added,
    gives_way,
    ordered,
    read_operation,
)
from binwright.tables.stamp import read_stamp

BEGUN = Operation(id="1", work="replay", state="running")
WHOLE = Operation(
    id="1",
    work="replay",
    by="ann",
    reason="a repair",
    at_ms=1,
    classes=("malformed",),
    since_ms=2,
    dry_run=True,
    state="failed",
    fault="no",
    after=Cursor("orders", 1, 2),
    unsettled={part(0): (3, 4), part(1): (0, 9)},
    moved={"malformed": 5},
    left={"incompatible": 6},
    skipped=7,
    masked=8,
    erased=9,
    bad_erased=10,
    bad_left=11,
    ended_ms=12,
    files_until_ms=13,
    earlier_until_ms=12,
    offsets={part(0): 5},
    ranges={part(0): (5, 9), part(2): (0, 7)},
    given_up={part(1): (2, 3)},
    rows=14,
    bad=15,
    gone=16,
    to_go=11,
)


@pytest.mark.parametrize("operation", [BEGUN, WHOLE])
def test_a_stamp_holds_the_work_that_was_ordered_last(operation: Operation) -> None:
    found = replace(stamp({0: 1}), operation=operation)
    assert read_stamp(found.encode(), TABLE) == found
    several = replace(found, several=True)
    assert read_stamp(several.encode(), TABLE) == several


def test_it_knows_the_earliest_time_at_which_deleted_rows_may_go() -> None:
    first = BEGUN.deletes(10, 20)
    assert (first.earlier_until_ms, first.files_until_ms) == (0, 20)
    second = first.deletes(15, 25)
    assert (second.earlier_until_ms, second.files_until_ms) == (20, 25)
    third = second.deletes(18, 28)
    assert (third.earlier_until_ms, third.files_until_ms) == (20, 28)
    fourth = third.deletes(22, 32)  # the first is gone
    assert (fourth.earlier_until_ms, fourth.files_until_ms) == (28, 32)


def test_a_report_has_of_a_work_what_is_not_its_writers_alone() -> None:
    reported = WHOLE.reported()
    assert type(reported) is TableOperation
    assert (reported.id, reported.state, reported.masked) == ("1", "failed", 8)


def test_without_work_a_stamp_is_as_in_versions_that_had_none() -> None:
    assert "operation" not in orjson.loads(stamp({0: 1}).encode())
    assert BEGUN.plain() == {"id": "1", "work": "replay", "state": "running"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "asleep"},
        {"id": 1},
        {"id": None},
        {"work": []},
        {"at_ms": -1},
        {"after": ["orders", 1]},
        {"after": ["no/topic", 1, 2]},
        {"unsettled": [["orders", 0, 1]]},
        {"unsettled": 5},
        {"ranges": [["orders", 0, -1, 5]]},
        {"offsets": {"orders": 5}},
        {"to_go": -1},
        {"moved": {"malformed": "x"}},
        {"left": [1]},
        {"skipped": 1.5},
    ],
)
def test_what_is_no_work_is_no_stamp(wrong: dict[str, Any]) -> None:
    plain = {**WHOLE.plain(), **wrong}
    with pytest.raises(ValueError, match="validation error"):
        read_operation(plain)
    text = orjson.loads(stamp({0: 1}).encode()) | {"operation": plain}
    assert read_stamp(orjson.dumps(text).decode(), TABLE) is None


def test_an_order_begins_work_with_few_words() -> None:
    order = OperationOrder(
        table="orders",
        id="0" * 32,
        work="replay",
        classes=("too_large",),
        since_ms=3,
        dry_run=True,
        by="a" * 200,
        reason="r" * 500,
        at_ms=4,
    )
    assert ordered(order) == Operation(
        id="0" * 32,
        work="replay",
        by="a" * 100,
        reason="r" * 300,
        at_ms=4,
        classes=("too_large",),
        since_ms=3,
        dry_run=True,
        state="running",
    )


def test_offsets_to_go_are_those_of_its_ranges() -> None:
    filling = BEGUN.with_ranges({part(0): (5, 9), part(2): (0, 7)})
    assert (filling.to_go, filling.gone) == (11, 0)
    left = filling.without_ranges([part(2), part(3)])
    assert (left.ranges, left.to_go, left.gone) == ({part(0): (5, 9)}, 4, 7)
    assert (left.state, left.without_ranges([part(3)])) == ("running", left)
    assert left.without_ranges([part(0)]).state == "done"


def test_the_next_work_takes_over_what_was_not_landed() -> None:
    next_ = WHOLE.followed_by(BEGUN)
    assert (next_.files_until_ms, next_.earlier_until_ms) == (13, 12)
    given_up = {part(0): (5, 9), part(1): (2, 3), part(2): (0, 7)}
    assert (next_.given_up, next_.ranges) == (given_up, {})
    assert next_.without_ranges([part(0), part(2)]).given_up == {part(1): (2, 3)}


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        (BEGUN, False),
        (replace(BEGUN, fault="no"), False),
        (replace(BEGUN, work="erase", fault="no"), True),
        (replace(BEGUN, work="erase", fault="no", erased=1), False),
        (replace(BEGUN, work="backfill", fault="no", rows=5), True),
        (replace(BEGUN, work="backfill", rows=5), True),
        (replace(BEGUN, work="backfill", by=BY_ENTRY, at_ms=3), True),
        (replace(BEGUN, work="backfill", by=BY_ENTRY, at_ms=4), False),
        (replace(BEGUN, work="backfill", by=BY_ENTRY, at_ms=4, fault="no"), True),
    ],
)
def test_work_gives_way_where_that_does_no_harm(
    operation: Operation,
    wanted: bool,
) -> None:
    order = OperationOrder(table="orders", id="0" * 32, work="erase", by="ann", at_ms=4)
    assert gives_way(operation, order) is wanted


def test_a_back_fill_gives_way_to_no_dry_run_but_of_what_fails() -> None:
    order = OperationOrder(table="orders", id="0" * 32, work="replay", by="ann", dry_run=True)
    filling = replace(BEGUN, work="backfill")
    assert not gives_way(filling, order)
    assert gives_way(replace(filling, fault="no"), order)


def test_counts_are_added_by_class() -> None:
    assert added({"a": 1}, {"a": 2, "b": 3}) == {"a": 3, "b": 3}
