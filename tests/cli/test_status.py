"""The page of `status`."""

from rich.console import Console

from binwright.cli.status import draw
from binwright.core.model import Slot, TopicPartition
from binwright.lab.status import ConsumerStatus, Motion, PlanStatus, Status

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
        consumers=(ConsumerStatus(Slot(0), "silent", PARTS, 2e6, 0.0, 1_200, 12.0),),
        partitions=14,
        unread=PARTS[:1],
        load=2e6,
        landing=0.0,
        lag=1_200,
        moves=(Motion(PARTS[3], None, Slot(1), "waiting"),),
        plan=PlanStatus(61.0, ("consumer 0 is overloaded",), 2, 1, 0.25),
    )


def test_it_shows_state_consumers_moves_and_the_plan() -> None:
    page = drawn(moving())
    assert "eu  moving  1 consumer, 14 partitions, written 2.00 MB/s" in page
    assert "silent for 12 s" in page
    assert "orders-11 and 2 more" in page
    assert "read by nobody: orders-0" in page
    assert "orders-3: nobody → 1 (waiting)" in page
    assert "last plan 61 s ago: consumer 0 is overloaded → 2 consumers, 1 move, R-score" in page


def test_nobody_there_is_told() -> None:
    assert "no group has spoken yet" in drawn()
