"""When all is well."""

from tests.chaos.health import lacking

from binwright.core.messages import Hello, Report, TableReport
from binwright.core.model import Slot, TopicPartition
from binwright.lab.picture import Picture

P = TopicPartition("orders", 0)
A = Slot(0)


def reported(**more: object) -> Picture:
    table = TableReport(state="landing", committed={P: 7})
    fields = {"ready": True, "reading": {P: 9}, "writing": {"orders": table}, **more}
    picture = Picture()
    picture.heard(1, 0, Hello(slot=A, process="a", version="1"))
    picture.heard(2, 0, Report(slot=A, epoch=1, term=0, **fields))  # type: ignore[arg-type]
    return picture


def test_all_is_well_when_all_is_read_written_and_landed() -> None:
    assert lacking(reported(), {P: 7}) == []


def test_what_has_not_landed_is_lacking() -> None:
    assert lacking(reported(), {P: 8}) == ["orders-0 has landed up to 7 of 8"]


def test_what_nobody_reads_or_whose_reader_still_looks_for_the_beginning_is_lacking() -> None:
    told = ["orders-0 is read by nobody"]
    assert lacking(reported(reading={}), {P: 7}) == told
    assert lacking(reported(reading={P: None}), {P: 7}) == told


def test_a_table_that_is_claimed_only_is_lacking() -> None:
    claiming = {"orders": TableReport(state="claiming", committed={})}
    told = ["the table orders is written by nobody"]
    assert lacking(reported(writing=claiming), {P: 0}) == told
