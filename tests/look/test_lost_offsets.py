"""Lost offsets, and topics that stand, are visible wherever a group is shown."""

from dataclasses import replace

from binwright.cli.terminal import Console
from binwright.look.commands import live_page, status_page
from binwright.look.group_view import GroupView
from binwright.look.page.metrics import group_samples
from binwright.look.status import Status, status
from binwright.protocol.metadata import Dead, Hello, Report
from binwright.protocol.model import Slot, TopicPartition

A, P = Slot(0), TopicPartition("orders", 0)
WIDTH = 160


def lossy(*lost: int) -> GroupView:
    """A consumer that reports these counts, one after the other."""
    view = GroupView()
    view.apply(1, 0, Hello(slot=A, process="a", version="1"))
    for number in lost:
        report = Report(
            slot=A, epoch=1, term=0, ready=True, reading={}, writing={}, lost_offsets=number
        )
        view.apply(2, 0, report)
    return view


def test_a_topic_that_stands_is_a_fault_of_its_table_until_it_goes_on() -> None:
    view, why = GroupView(), "orders-0 stands at offset 5: Invalid CRC"
    view.apply(1, 0, Hello(slot=A, process="a", version="1"))
    report = Report(
        slot=A, epoch=1, term=0, ready=True, reading={P: 5}, writing={}, faults={"orders": why}
    )
    view.apply(2, 0, report)
    found = status("g", view, 0)
    assert [table.report.fault for table in found.tables] == [why]
    assert f"table orders is unwritten: {why}" in drawn(status_page.draw([found], WIDTH))
    view.apply(3, 0, replace(report, faults={}))
    assert [table.report.fault for table in status("g", view, 0).tables] == [""]


def after_its_death(view: GroupView) -> Status:
    view.apply(3, 0, Dead(slot=A, epoch=1, term=0))
    return status("g", view, 0)


CONSOLE = Console(width=WIDTH)


def drawn(page: object) -> str:
    console = CONSOLE
    with console.capture() as captured:
        console.print(page)
    return captured.get()


def test_each_new_loss_is_an_event() -> None:
    events = [text for _, text in lossy(0, 20, 20, 1_025).recent_events]
    assert [text for text in events if "lost" in text] == [
        "consumer 0 lost 20 offsets",
        "consumer 0 lost 1,005 offsets",
    ]


def test_the_status_sums_losses_up_also_those_of_dead_consumers() -> None:
    found = after_its_death(lossy(20))
    assert (found.consumers, found.lost_offsets) == ((), 20)
    assert found.to_json()["lost_offsets"] == 20
    page = drawn(status_page.draw([found], WIDTH))
    assert "lost (deleted unread, or undecodable): 20 offsets" in page


def test_the_metrics_hold_the_sum() -> None:
    samples = {each.name: each.value for each in group_samples(after_its_death(lossy(20)))}
    assert samples["binwright_group_lost_offsets_total"] == 20


def test_the_terminal_shows_losses_as_a_page_and_as_a_line() -> None:
    view = lossy(20)
    found = status("g", view, 0)
    wanted = "lost (deleted unread, or undecodable): 20 offsets"
    assert wanted in drawn(live_page.draw(CONSOLE, found, view, "title", "below"))
    assert wanted in live_page.line(found)


def test_without_a_loss_nothing_is_shown() -> None:
    view = lossy(0)
    found = status("g", view, 0)
    pages = live_page.draw(CONSOLE, found, view, "title", "below"), status_page.draw([found], WIDTH)
    assert all("lost" not in drawn(page) for page in pages)
    assert "lost" not in live_page.line(found)
