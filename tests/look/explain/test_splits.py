"""What people see of a partition that several consumers stage."""

from dataclasses import replace

from tests.look.explain.test_answers import NOW, A, B, P, ask, lines, report, two_consumers

from binwright.cli.terminal import Console
from binwright.look.commands.status_page import draw
from binwright.look.group_view import GroupView
from binwright.look.status import HotPartition, SplitPartition, status
from binwright.protocol.metadata import StagedShare

SHARES = (StagedShare(B, 60), StagedShare(A, 40))


def split(rate: float = 1_500.0) -> GroupView:
    """Return a group in which consumer 0 helps consumer 1 with a partition of this rate."""
    view = two_consumers([300.0, 300.0, 300.0, rate])
    for number, (slot, partitions) in enumerate(((A, P[:3]), (B, P[3:]))):
        view.apply(40 + number, NOW, report(slot, partitions, splits={P[3]: SHARES}))
    return view


def drawn(view: GroupView) -> str:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(draw([status("eu", view, NOW)], 160))
    return captured.get()


def test_who_stages_a_split_partition_and_how_much() -> None:
    found = ask(split(), "orders-3")
    assert (
        "a consumer sustains 1.2 kB/s, so it is split: consumer 1 hands out parts, and announces "
        "what these consumers have staged: 1 (60 rows), 0 (40 rows)"
    ) in lines(found, "is")
    text = "orders-3 (1.5 kB/s) is split: consumers 1 (60%), 0 (40%) stage it"
    assert text in drawn(split())
    assert status("eu", split(), NOW).splits == (SplitPartition(P[3], 1_500.0, SHARES),)


def test_each_consumer_has_its_share_of_the_load() -> None:
    view = split()
    assert view.written() == {A: 1_650.0, B: 750.0}


def test_it_is_hot_while_all_that_stage_it_sustain_less() -> None:
    assert not status("eu", split(), NOW).hot
    assert status("eu", split(3_000.0), NOW).hot == (HotPartition(P[3], 3_000.0, 2_400.0),)
    assert "3.0 kB/s is more than all that stage it sustain (2.4 kB/s)" in drawn(split(3_000.0))


def test_only_the_owner_counts() -> None:
    """A helper knows what it staged itself."""
    view = split()
    view.reports[B] = replace(view.reports[B], splits={})
    assert not view.splits
    assert "is split" not in drawn(view)


def test_without_helpers_the_setting_is_named() -> None:
    text = "falls behind alone; with controller.split several consumers would stage it"
    assert text in lines(ask(two_consumers([300.0, 300.0, 300.0, 1_500.0]), "orders-3"), "is")
