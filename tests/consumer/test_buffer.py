"""What is fetched and not landed: in order, within its room, and apart while it may not land."""

import pytest

from binwright.consumer.buffer import GATHER_S, RECORD_OVERHEAD, Buffer, Shelf
from binwright.core.batch import BatchRules
from binwright.core.model import TopicPartition
from binwright.core.ports import Record

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
SIZE = 1_000 + RECORD_OVERHEAD


def records(*offsets: int) -> list[Record]:
    return [Record(offset, 0, None, b"x" * 1_000) for offset in offsets]


def offsets(rows: object) -> list[int]:
    assert isinstance(rows, list)
    return [row.offset for row in rows]


def test_a_batch_holds_what_is_landing_from_where_it_has_landed() -> None:
    buffer = Buffer(BatchRules())
    buffer.add(P, records(1, 2, 3), 0.0)
    buffer.add(Q, records(8), 0.0)
    taken = buffer.take("orders", {P: 2})
    assert {p: offsets(rows) for p, rows in taken.items()} == {P: [2, 3]}


def test_rows_that_nobody_read_for_long_go_first_and_soon_once() -> None:
    """They shall not wait until a batch is full as well."""
    buffer = Buffer(BatchRules(wait_s=60.0))
    buffer.add(TopicPartition("clicks", 0), records(1), 0.0)
    buffer.hurry(P)
    buffer.add(Q, records(1), 99.0)
    assert buffer.due(100.0) == "clicks", "not hurried, and nothing of what is hurried is there"
    buffer.add(P, records(1), 100.0)
    assert buffer.due(100.1) == "clicks", "its topic's other partitions may come yet"
    assert buffer.due(100.0 + GATHER_S) == "orders"
    buffer.take("orders", {P: 0, Q: 0})
    buffer.add(P, records(2), 101.0)
    assert buffer.due(102.0) == "clicks"
    buffer.take("clicks", {})
    assert buffer.due_in(102.0) == pytest.approx(59.0)


def test_rows_that_do_not_follow_are_refused() -> None:
    """They would land twice, or hide the ones between: better an end with a reason."""
    buffer = Buffer(BatchRules())
    buffer.add(P, records(1, 2), 0.0)
    with pytest.raises(ValueError, match="orders-0: 2 came after 2"):
        buffer.add(P, records(2), 0.0)


def test_what_is_read_ahead_comes_back_whole() -> None:
    shelf = Shelf(limit=10 * SIZE)
    shelf.add(P, records(1, 2))
    shelf.add(P, records(3))
    assert shelf.size == 3 * SIZE
    taken = shelf.take(P)
    assert (offsets(taken.records), taken.go_on) == ([1, 2, 3], None)
    assert shelf.size == 0
    assert shelf.take(P).records == []


def test_a_full_shelf_says_what_to_fetch_no_more_and_where_to_go_on() -> None:
    """Those who may land need room, too: their consumer must not stand still for this one."""
    shelf = Shelf(limit=2 * SIZE)
    shelf.add(P, records(1))
    assert shelf.overfull() == []
    shelf.add(Q, records(7))
    assert shelf.overfull() == [P, Q]
    assert shelf.overfull() == [], "said once"
    assert shelf.take(P).go_on == 2
    assert shelf.take(Q).go_on == 8
