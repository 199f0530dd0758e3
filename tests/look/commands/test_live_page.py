"""The panel of a terminal: the group's own load and lag, in whole words at any width."""

import asyncio
from io import StringIO

import pytest
from tests.builders import LIMIT, measurement

from binwright.cli.terminal import Console
from binwright.look.commands import live_page
from binwright.look.group_view import GroupView
from binwright.look.status import Status, status
from binwright.protocol.metadata import Claim, Hello, Planned, Report, TableReport
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.selection import Selection
from binwright.runtime.settings.group import Settings

ADDRESS = "http://127.0.0.1:8088 · Ctrl-C ends it"
P, A = TopicPartition("orders", 0), Slot(0)
RATE = PartitionRate(0, BytesPerSecond(48_000), 30, end=100, start=0, bytes_per_record=1_000)


def landing(state: str = "landing", fault: str = "") -> GroupView:
    """A consumer that reads `orders-0`, and a topic of another group in the same measurements."""
    view = GroupView()
    view.apply(0, 0, Claim(controller="c", limit=LIMIT))
    view.apply(1, 0, Hello(slot=A, process="a", version="1"))
    table = TableReport(
        state=state,  # type: ignore[arg-type]
        fault=fault,
        committed={P: 40},
        pending_bytes=9_000,
        age_s=1.2,
        rows=40,
        commits=1,
    )
    report = Report(slot=A, epoch=1, term=0, ready=True, reading={P: 45}, writing={"orders": table})
    view.apply(2, 0, report)
    view.apply_measurement(measurement("orders", [RATE]))
    view.apply_measurement(measurement("clicks", [RATE]))
    return view


def current(view: GroupView) -> Status:
    return status("g", view, 0, Selection(frozenset({"orders"})))


def drawn(view: GroupView, width: int, height: int = 24) -> list[str]:
    console = Console(width=width, height=height)
    with console.capture() as captured:
        console.print(live_page.draw(console, current(view), view, "orders → lake", ADDRESS))
    return captured.get().splitlines()


def test_a_topic_of_another_group_counts_nowhere() -> None:
    page = "\n".join(drawn(landing(), 120))
    assert "written 48 kB/s" in page
    assert "lag 60 records (60 kB), oldest row 1.2 s" in page
    assert "clicks" not in page
    assert "written 48 kB/s" in live_page.line(current(landing()))


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_every_line_fits_and_no_word_is_broken(width: int) -> None:
    page = drawn(landing(), width)
    assert {len(line) for line in page} == {width}
    assert ADDRESS in page[-1]
    (consumer,) = (line for line in page if "orders-0" in line and "more than" not in line)
    assert "48 kB/s" in consumer
    (table,) = (line for line in page if " landing " in line)
    assert table.strip("│ ").split()[:2] == ["orders", "landing"]
    assert " 1.2 s " in table


def test_a_table_that_is_refused_comes_first() -> None:
    page = drawn(landing("refused", "the table is of another cluster"), 80)
    assert "table orders is refused: the table is of another cluster" in page[1]
    assert live_page.line(current(landing("refused"))).startswith("refused: ")


def test_a_low_terminal_shows_fewer_events_and_never_scrolls() -> None:
    view = landing()
    for _ in range(9):
        view.apply(4, 0, Claim(controller="c", limit=LIMIT))
    high, low = drawn(view, 80, 24), drawn(view, 80, 12)
    assert len([line for line in high if "took the lead" in line]) == 8
    assert len(low) == 11
    assert 0 < len([line for line in low if "took the lead" in line]) < 8


def test_a_long_event_goes_on_below_its_text() -> None:
    view = landing()
    reasons = "consumer 0 carries 108.3% of its limit", "1 consumer -> 2; moves 1 of 4 partitions"
    view.apply(
        4,
        0,
        Planned(term=0, reasons=reasons, consumers=2, moves={}, rscore=0.0, rates={}, targets={}),
    )
    page = drawn(view, 80)
    (at,) = (n for n, line in enumerate(page) if "plan: " in line)
    assert page[at + 1].startswith("│          moves 1 ")


async def test_a_typed_ctrl_c_is_echoed_below_the_frame() -> None:
    """At the frame's end it would scroll the terminal, and the upper border would stay."""
    console = Console(file=StringIO(), force_terminal=True, width=80, height=24)
    showing = asyncio.create_task(
        live_page.show(console, Settings(topics=("orders",)), landing(), lambda: "up", ADDRESS)
    )
    await asyncio.sleep(0.1)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    showing.cancel()
    await asyncio.gather(showing, return_exceptions=True)
    assert shown.endswith("╯\n")


def test_the_limit_is_the_controllers() -> None:
    view = landing()
    view.apply(3, 0, Claim(controller="c", limit=LIMIT, slot_limits=((A, BytesPerSecond(96_000)),)))
    (consumer,) = (
        line for line in drawn(view, 120) if "orders-0" in line and "more than" not in line
    )
    assert "50% " in consumer
