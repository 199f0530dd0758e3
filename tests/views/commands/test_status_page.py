"""The page of `binwright status`."""

from dataclasses import replace

from rich.console import Console

from binwright.protocol.model import Slot, TopicPartition
from binwright.views.commands.status_page import draw
from binwright.views.status import (
    ConsumerStatus,
    MoveStatus,
    OwnerChange,
    PlanStatus,
    ProposalStatus,
    Status,
)
from binwright.views.table_status import TableStatus

PARTS = tuple(TopicPartition("orders", n) for n in range(14))


def drawn(*found: Status) -> str:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(draw(found))
    return captured.get()


def moving() -> Status:
    return Status(
        group="eu",
        state="moving",
        term=3,
        controller="c",
        consumers=(ConsumerStatus(Slot(0), "silent", PARTS, 2e6, 0.0, 1_200, 12.0, ("orders",)),),
        partitions=14,
        unread=PARTS[:1],
        load=2e6,
        staging=0.0,
        lag=1_200,
        moves=(MoveStatus(PARTS[3], None, Slot(1), "waiting"),),
        plan=PlanStatus(61.0, ("consumer 0 is overloaded",), 2, 1, 0.25),
        tables=(
            TableStatus("orders", Slot(0), "refused", 7.5, 3_000_000, 1_200, 99, 4, "a constraint"),
            TableStatus("clicks", None, "unwritten", 0.0, 0, 0),
        ),
    )


def test_the_page_shows_state_consumers_moves_and_the_plan() -> None:
    page = drawn(moving())
    assert "eu  moving  1 consumer, 14 partitions, written 2.00 MB/s" in page
    assert "silent for 12 s" in page
    assert "lag 1,200 records, oldest 7.5 s" in page
    assert "orders-11 and 2 more" in page
    assert "no consumer reads: orders-0" in page
    assert "orders-3: none → 1 (waiting)" in page
    assert "last plan 61 s ago: consumer 0 is overloaded → 2 consumers, 1 move, R-score" in page


def test_the_page_shows_a_line_for_each_table() -> None:
    page = drawn(moving()).splitlines()
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in page if line.strip()}
    assert lines["orders"] == "0 7.5 s 3.00 MB 1,200 99 4 refused: a constraint"
    assert lines["clicks"] == "none 0.00 MB 0 0 0 unwritten"


def test_the_page_shows_a_waiting_plan_and_how_to_approve_it() -> None:
    changes = (OwnerChange(PARTS[0], Slot(0), Slot(1)), OwnerChange(PARTS[1], None, Slot(1)))
    plan = ProposalStatus(812, 30.0, ("too much",), 2, changes, 0.25, waits=True, approved=False)
    page = drawn(replace(moving(), proposal=plan))
    assert "plan 812, 30 s old, waits: binwright approve 812 --group eu" in page
    assert "too much → 2 consumers, R-score 0.25" in page
    assert "orders-0: 0 → 1 orders-1: none → 1" in page
    assert "is approved" in drawn(replace(moving(), proposal=replace(plan, approved=True)))
    assert "is only shown" in drawn(replace(moving(), proposal=replace(plan, waits=False)))


def test_a_page_without_groups_is_an_error() -> None:
    assert "no group has reported yet" in drawn()
