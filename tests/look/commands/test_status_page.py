"""The page of `binwright status`."""

from dataclasses import replace

import pytest

from binwright.cli.terminal import Console, page_console, print_page
from binwright.look.commands.status_page import draw
from binwright.look.order_text import order_text
from binwright.look.status import (
    ConsumerStatus,
    HotPartition,
    MoveStatus,
    OrderStatus,
    OwnerChange,
    PlanStatus,
    ProposalStatus,
    Status,
)
from binwright.look.table_status import TableState, TableStatus
from binwright.protocol.metadata import MeasuredCapacity, TableReport
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition

PARTS = tuple(TopicPartition("orders", n) for n in range(14))


def drawn(*found: Status, width: int = 160) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(draw(found, width))
    return captured.get()


def table(state: TableState, **reported: object) -> TableStatus:
    report = TableReport(**{"state": "landing", "committed": {}, **reported})  # type: ignore[arg-type]
    return TableStatus("orders", "orders", Slot(0), state, 1_200, report)


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
            table(
                "refused",
                age_s=7.5,
                pending_bytes=3_000_000,
                rows=99,
                commits=4,
                fault="a constraint",
            ),
            replace(table("unwritten"), topic="clicks", name="clicks", writer=None, lag=0),
        ),
    )


def test_orders_and_what_is_held_back_are_shown() -> None:
    order = OrderStatus("freeze", "moves are frozen", "alice", "release", 60_000, 3_600_000)
    reason = "moves are frozen by alice; waits: consumer 1 carries 140.0% of its limit"
    page = drawn(replace(moving(), orders=(order,), held=(reason,)))
    assert f"held: {reason}\n" in page
    when = "until 1970-01-01 01:00 UTC, by alice, 1970-01-01 00:01 UTC: release"
    assert f"order: moves are frozen {when}\n" in page
    endless = replace(order, until_ms=0, reason="")
    assert order_text(endless) == "moves are frozen, by alice, 1970-01-01 00:01 UTC"


def test_the_topic_of_a_table_is_shown_where_it_has_another_name() -> None:
    assert "topic" not in drawn(moving())
    raw = replace(table("refused", fault="a constraint"), name="orders_raw")
    page = drawn(replace(moving(), tables=(raw,)))
    assert "topic" in page
    assert "table orders_raw is refused: a constraint" in page


def test_limits_and_what_consumers_could_read_are_shown() -> None:
    limits = PerSlot(BytesPerSecond(12e6))
    page = drawn(replace(moving(), limits=limits))
    assert "\nlimit of a consumer 12 MB/s\n" in page
    assert "could read" not in page
    measured = MeasuredCapacity(bytes_per_s=BytesPerSecond(16e6), spread=0.04, used=0.4, seconds=60)
    consumer = replace(moving().consumers[0], capacity=measured)
    page = drawn(replace(moving(), limits=limits, limits_measured=True, consumers=(consumer,)))
    assert "\nlimit of a consumer 12 MB/s, as measured\n" in page
    assert "16 MB/s ±4%" in page


def test_a_full_sink_is_distinguished_from_full_consumers() -> None:
    late = table("landing", age_s=61.0)
    text = "table orders lands 61 s late: Spark is the limit, more consumers would land no more"
    assert text in drawn(replace(moving(), tables=(late,)))
    for other in (
        table("landing", age_s=60.0),
        table("claiming", age_s=61.0),
        table("landing", age_s=61.0, fault="x"),
    ):
        assert "Spark is the limit" not in drawn(replace(moving(), tables=(other,)))


def test_a_hot_partition_is_named_with_rate_and_limit() -> None:
    hot = (HotPartition(PARTS[4], 3.1e6, 2.4e6), HotPartition(PARTS[5], 3e6, 2.4e6))
    one = "orders-4: 3.1 MB/s is more than its consumer sustains (2.4 MB/s)"
    assert one in drawn(replace(moving(), hot=hot[:1]))
    assert one.replace(":", " and 1 more:") in drawn(replace(moving(), hot=hot))


def test_the_page_shows_state_consumers_moves_and_the_plan() -> None:
    page = drawn(moving())
    assert "eu  moving  1 consumer, 14 partitions\n" in page
    assert "\nwritten 2.0 MB/s, staging 0 B/s\nlag 1,200 records, oldest row 7.5 s\n" in page
    assert "silent 12 s" in page
    assert "orders-11 and 2 more" in page
    assert "no consumer reads: orders-0" in page
    assert "orders-3: none → 1 (waiting)" in page
    assert "last plan 61 s ago: consumer 0 is overloaded (0.25 times a consumer's" in page


def test_the_page_shows_a_line_for_each_table() -> None:
    page = drawn(moving()).splitlines()
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in page if line.strip()}
    assert lines["orders"] == "refused 0 7.5 s 3.0 MB 1,200 99 4"
    assert lines["clicks"] == "unwritten none 0 B 0 0 0"


def test_tables_that_take_no_rows_come_first() -> None:
    page = drawn(moving()).splitlines()
    assert page[1:4] == [
        "table orders is refused: a constraint",
        "table clicks is unwritten",
        "no consumer reads: orders-0",
    ]


def test_a_terminal_of_80_columns_shows_whole_words() -> None:
    page = drawn(moving(), width=80).splitlines()
    (consumer,) = (line for line in page if line.strip().startswith("0"))
    assert consumer.split()[:7] == ["0", "silent", "12", "s", "2.0", "MB/s", "1,200"]
    (table,) = (line for line in page if line.startswith("orders "))
    assert table.split() == ["orders", "refused", "7.5", "s", "1,200", "99"]
    assert max(map(len, page)) <= 80


def test_the_page_shows_a_waiting_plan_and_how_to_approve_it() -> None:
    changes = (OwnerChange(PARTS[0], Slot(0), Slot(1)), OwnerChange(PARTS[1], None, Slot(1)))
    plan = ProposalStatus(812, 30.0, ("too much",), 2, changes, 0.25, waits=True, approved=False)
    page = drawn(replace(moving(), proposal=plan))
    assert "plan 812, 30 s old, waits: binwright approve 812 --group eu" in page
    assert "too much → 2 consumers (0.25 times a consumer's capacity moved)" in page
    assert "orders-0: 0 → 1 orders-1: none → 1" in page
    assert "is approved" in drawn(replace(moving(), proposal=replace(plan, approved=True)))
    assert "is only shown" in drawn(replace(moving(), proposal=replace(plan, waits=False)))


def test_lines_in_a_pipe_end_where_their_text_does(capsys: pytest.CaptureFixture[str]) -> None:
    console = page_console()
    print_page(console, draw([moving()], console.width))
    lines = capsys.readouterr().out.splitlines()
    assert all(line == line.rstrip() for line in lines)
    (consumer,) = (line for line in lines if "orders-11 and 2 more" in line)
    assert consumer.startswith("       0  silent 12 s")


def test_an_empty_line_stands_between_groups() -> None:
    other = replace(moving(), group="us", lag_bytes=1_200_000)
    lines = drawn(moving(), other).splitlines()
    at = lines.index("us  moving  1 consumer, 14 partitions")
    assert lines[at - 1] == ""
    assert "lag 1,200 records (1.2 MB)" in lines[at + 5]


def test_a_page_without_groups_is_an_error() -> None:
    assert "no group has reported yet" in drawn()
