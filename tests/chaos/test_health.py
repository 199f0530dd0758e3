"""When all is well."""

from tests.chaos.health import health_problems

from binwright.look.group_view import GroupView
from binwright.protocol.metadata import Hello, Report, TableReport
from binwright.protocol.model import Slot, TopicPartition

P = TopicPartition("orders", 0)
A = Slot(0)


def reported(**more: object) -> GroupView:
    table = TableReport(state="landing", committed={P: 7})
    fields = {"ready": True, "reading": {P: 9}, "writing": {"orders": table}, **more}
    view = GroupView()
    view.apply(1, 0, Hello(slot=A, process="a", version="1"))
    view.apply(2, 0, Report(slot=A, epoch=1, term=0, **fields))  # type: ignore[arg-type]
    return view


def test_a_group_is_healthy_when_all_is_read_written_and_landed() -> None:
    assert health_problems(reported(), {P: 7}) == []


def test_what_has_not_landed_is_unhealthy() -> None:
    assert health_problems(reported(), {P: 8}) == ["orders-0 has landed up to 7 of 8"]


def test_a_partition_without_a_reader_or_a_known_beginning_is_unhealthy() -> None:
    result = ["orders-0 has no reader"]
    assert health_problems(reported(reading={}), {P: 7}) == result
    assert health_problems(reported(reading={P: None}), {P: 7}) == result


def test_a_table_that_is_claimed_only_is_unhealthy() -> None:
    claiming = {"orders": TableReport(state="claiming", committed={})}
    result = ["the table orders has no writer"]
    assert health_problems(reported(writing=claiming), {P: 0}) == result
