"""Why a group is as it is, by the numbers that its controller has."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import reconfigured

from binwright.look.explain.answers import Explanation, FreshnessFacts, GroupFacts
from binwright.look.explain.questions import answer
from binwright.look.group_view import GroupView
from binwright.look.status import status
from binwright.protocol.errors import UserError
from binwright.protocol.metadata import (
    Claim,
    Held,
    Hello,
    Planned,
    Proposed,
    Report,
    Started,
    Stopped,
    TableCompaction,
    TableRegistration,
    TableReport,
)
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import (
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    PinOrder,
    ScaleOrder,
)

P = [TopicPartition("orders", number) for number in range(4)]
A, B, C = Slot(0), Slot(1), Slot(2)
NOW = 1_000_000
LIMIT = BytesPerSecond(1200.0)  # of which a plan gives 1000


def planned(
    targets: Mapping[TopicPartition, Slot], moves: Mapping[TopicPartition, Slot], reason: str
) -> Planned:
    return Planned(
        term=0,
        reasons=(reason, "1 consumer -> 2; moves 1 of 4 partitions, 25.0% of the bytes"),
        consumers=len(set(targets.values())),
        moves=moves,
        rscore=0.3,
        rates=dict.fromkeys(targets, BytesPerSecond(300.0)),
        targets=targets,
    )


def report(slot: Slot, partitions: list[TopicPartition], **more: object) -> Report:
    fields = {"term": 0, "ready": True, "writing": {}, "epoch": slot + 1, **more}
    return Report(slot=slot, reading=dict.fromkeys(partitions, 90), **fields)  # type: ignore[arg-type]


def measured(rates: list[float], end: int = 100, at_ms: int = NOW) -> Measurement:
    parts = tuple(
        PartitionRate(n, BytesPerSecond(rate), 30, end, 0, 10.0) for n, rate in enumerate(rates)
    )
    return Measurement(
        topic="orders", at_ms=at_ms, monitor="m", number=1, interval_s=1, count=4, partitions=parts
    )


def table(**more: object) -> dict[str, TableReport]:
    fields = {"state": "landing", "committed": dict.fromkeys(P, 80), **more}
    return {"orders": TableReport(**fields)}  # type: ignore[arg-type]


def two_consumers(rates: list[float] | None = None, landed_s: float = 3.0) -> GroupView:
    """Consumer 0 reads three partitions of 300 bytes/s, and consumer 1 one that it got from it."""
    view = GroupView()
    view.apply(0, 0, Claim(controller="c", limit=LIMIT))
    for slot in (A, B):
        view.apply(slot + 1, 0, Hello(slot=slot, process="a", version="1"))
    view.apply(10, NOW - 300_000, planned(dict.fromkeys(P, A), {}, "4 partitions without a reader"))
    targets = {**dict.fromkeys(P[:3], A), P[3]: B}
    why = "consumer 0 carries 104.0% of its limit"
    view.apply(11, NOW - 180_000, planned(targets, {P[3]: B}, why))
    stopped = Stopped(slot=A, epoch=1, revision=1, next={P[3]: 5}, stopped_ms=NOW - 180_000)
    view.apply(12, NOW - 179_800, stopped)
    view.apply(13, NOW - 179_600, Started(slot=B, epoch=2, revision=1, offsets={P[3]: 5}))
    newest = {"newest_ms": NOW - round(landed_s * 1000), "age_s": 1.0, "pending_bytes": 400}
    view.apply(20, NOW, report(A, P[:3], writing=table(**newest)))
    view.apply(21, NOW, report(B, P[3:]))
    view.apply_measurement(measured(rates or [300.0] * 4))
    return view


def ask(view: GroupView, what: str = "", **config: Any) -> Explanation:
    view.group = replace(view.group, config=reconfigured(view.group.config, **config))
    return answer(GroupFacts(view, status("eu", view, NOW), NOW, FreshnessFacts(10.0)), what)


def lines(found: Explanation, kind: str) -> str:
    return "\n".join(line.text for line in found.lines if line.kind == kind)


def test_why_so_many_consumers() -> None:
    found = ask(two_consumers())
    assert lines(found, "is") == (
        "1.2 kB/s in 4 partitions, read by 2 consumers; a consumer sustains 1.2 kB/s (as set), and "
        "a plan gives it up to 1.0 kB/s"
    )
    assert lines(found, "why").startswith(
        "plan 11, 3 min ago: consumer 0 carries 104.0% of its limit; 1 consumer -> 2"
    )
    assert "the load needs 2 consumers at least: one less cannot read it" in lines(
        found, "otherwise"
    )
    assert "packed now (sticky), all would stay where it is" in lines(found, "otherwise")
    assert lines(found, "held") == "nothing holds a plan back"
    change = lines(found, "change")
    assert "nearest is consumer 0, 900 B/s of 1.2 kB/s (75%)" in change
    assert "one goes at the earliest when the load is below 1.0 kB/s" in change


def test_a_consumer_that_the_load_could_spare() -> None:
    found = ask(two_consumers([100.0] * 4))
    otherwise = lines(found, "otherwise")
    assert "the load alone would fit 1 consumer at best" in otherwise
    assert (
        "packed now (sticky), 1 consumer would do: 2 consumers -> 1; moves 1 of 4 partitions, "
        "25.0% of the bytes" in otherwise
    )
    assert "about 0.4 s (median of 1 move)" in otherwise
    spared = lines(ask(two_consumers([100.0] * 4), "1"), "otherwise")
    assert "without it 25.0% of the bytes would move at least, to save one of 2" in spared


def test_why_a_partition_moved() -> None:
    found = ask(two_consumers(), "orders-3")
    assert lines(found, "is").startswith("it gets 300 B/s; consumer 1 reads it")
    assert lines(found, "why") == (
        "plan 11, 3 min ago, gave it to consumer 1, from consumer 0: consumer 0 carries 104.0% of "
        "its limit; 1 consumer -> 2; moves 1 of 4 partitions, 25.0% of the bytes"
    )
    otherwise = lines(found, "otherwise")
    assert "no other consumer has room for it by a plan's measure" in otherwise
    assert "a move is 25.0% of the group's bytes, with a pause of about 0.4 s" in otherwise
    assert "when consumer 1 gets 900 B/s more" in lines(found, "change")


def test_a_consumer_that_gets_too_much_gives_partitions_away() -> None:
    found = ask(two_consumers([900.0, 300.0, 300.0, 300.0]), "orders-1")
    assert lines(found, "change") == (
        "it may move with the next plan: consumer 0 gets more than it sustains"
    )


def test_who_has_room_for_a_partition() -> None:
    otherwise = lines(ask(two_consumers(), "orders-0"), "otherwise")
    assert "these consumers have room for it: 1 (700 B/s)" in otherwise


def test_why_a_partition_did_not_move() -> None:
    why = lines(ask(two_consumers(), "orders-0"), "why")
    assert why == "no plan that the topic still has moved it: the oldest was 5 min ago"


def test_a_partition_without_a_reader() -> None:
    view = two_consumers()
    view.apply(30, NOW, planned(dict.fromkeys(P, C), dict.fromkeys(P, C), "a test"))
    view.apply(31, NOW, report(A, P[:2]))
    found = ask(view, "orders-2")
    assert "nobody reads it" in lines(found, "is")
    assert "consumer 2 is to read it, by the last plan; now waiting" in lines(found, "why")
    assert "4 moves of the last plan under way (waiting)" in lines(found, "held")


def test_a_partition_that_no_consumer_sustains() -> None:
    found = ask(two_consumers([300.0, 300.0, 300.0, 1500.0]), "orders-3")
    assert "more than a consumer sustains (1.2 kB/s), and falls behind alone" in lines(found, "is")


def test_why_there_is_a_consumer() -> None:
    found = ask(two_consumers(), "consumer 0")
    assert lines(found, "is") == (
        "ready; it reads 3 partitions, which get 900 B/s (75% of what it sustains); it writes the "
        "tables orders"
    )
    assert "it cannot be spared: it gets 900 B/s, the others have room for 700 B/s" in lines(
        found, "otherwise"
    )
    assert "no plan that the topic still has gave it partitions" in lines(found, "why")
    assert "plan 11, 3 min ago, gave it partitions last" in lines(ask(two_consumers(), "1"), "why")


def test_no_such_consumer() -> None:
    assert lines(ask(two_consumers(), "9"), "is") == "no such consumer reports"


def test_what_holds_a_plan_back() -> None:
    view = two_consumers()
    view.apply(
        40,
        NOW - 5_000,
        Proposed(
            term=0,
            reasons=("consumer 0 is over its limit",),
            consumers=2,
            rscore=0.1,
            owners=dict.fromkeys(P, A),
            targets=dict.fromkeys(P, B),
            waits=True,
        ),
    )
    held = lines(ask(view, max_slots=2, min_slots=2), "held")
    assert "plan 40 waits for `binwright approve 40`: consumer 0 is over its limit" in held
    assert "controller.max_slots is 2" in held
    assert "controller.min_slots is 2" in held


def test_an_adopted_packing_is_named_and_packs() -> None:
    view = two_consumers()
    adopted = AdoptOrder(
        setting="packing", value="sticky:4", replaces="sticky", proposal=7, by="carol"
    )
    view.apply(30, NOW, replace(adopted, setting="replan_interval_s", value="9", replaces="60"))
    view.apply(31, NOW, adopted)
    assert "packed now (sticky:4)" in lines(ask(view, packing="sticky"), "otherwise")
    assert "packed now (mwf)" in lines(ask(view, packing="mwf"), "otherwise")
    why = "controller.packing is sticky:4 instead of sticky, as proposal 7 has it by carol"
    assert why in lines(ask(view), "why")


def test_orders_and_what_they_hold_back_are_named() -> None:
    view = two_consumers()
    freeze = FreezeOrder(frozen=True, by="alice", reason="release", until_ms=2 * NOW)
    pin = PinOrder(topic="orders", partition=None, slot=A, by="bob")
    own = replace(pin, partition=3, by="carol")
    drain = CordonOrder(slot=B, state="drained", by="bob")
    ended = ScaleOrder(consumers=3, by="bob", until_ms=NOW)
    orders: list[GroupOrder] = [freeze, pin, own, drain, ended]
    for number, order in enumerate(orders):
        view.apply(30 + number, NOW, order)
    view.apply(40, NOW, Held(term=0, reasons=("moves are frozen; waits: a drain",)))
    held = "moves are frozen; waits: a drain\nmoves are frozen by alice until 1970-01-01 00:33 UTC"
    assert lines(ask(view), "held") == f"{held}: 'release'"
    assert lines(ask(view, "orders-3"), "held").startswith(
        "orders-3 is pinned to consumer 0 by carol\nmoves are frozen"
    )
    assert lines(ask(view, "orders-2"), "held").startswith(
        "topic orders is pinned to consumer 0 by bob\nmoves are frozen"
    )
    drained = lines(ask(view, "1"), "held")
    assert drained.startswith("consumer 1 is drained by bob\nmoves are frozen")
    assert "drained by" not in lines(ask(view, "0"), "held")


def test_a_monitor_that_does_not_measure_is_named() -> None:
    view = two_consumers()
    view.measured_ms = {"orders": NOW - 90_000, "of another group": NOW}
    held = lines(ask(view, stale_s=60.0), "held")
    assert "the last measurement was 90 s ago: does a monitor run?" in held
    del view.measured_ms["orders"]
    assert "nothing was measured" in lines(ask(view), "held")


def test_a_plan_by_its_number_and_the_last_one() -> None:
    found = ask(two_consumers(), "plan")
    assert found.about == "plan 11"
    assert "orders-3: consumer 0 → consumer 1" in lines(found, "is")
    assert "consumer 0 carries 104.0% of its limit" in lines(found, "why")
    assert ask(two_consumers(), "plan-10").about == "plan 10"
    assert lines(ask(two_consumers(), "plan-5"), "is") == (
        "the topic does not have it; it has 11, 10"
    )


def test_a_table_that_lands_in_time() -> None:
    found = ask(two_consumers(), "orders")
    assert lines(found, "is").startswith("landing; consumer 0 writes it; the newest record that")
    assert lines(found, "why") == "it is not late: the target is 10 s"


def test_an_open_transaction_that_holds_a_partition_back() -> None:
    """Its records have not landed, and the newest that did is young: yet the table waits."""
    view = two_consumers()
    seen = GroupFacts(view, status("g", view, NOW, None), NOW, FreshnessFacts(10.0), {P[1]: 80})
    why = lines(answer(seen, "orders"), "why")
    assert "open transaction holds back orders-1: it began at offset 80" in why
    assert "none of the 20 records" in why
    landed = dict.fromkeys(P, 100) | {P[1]: 80}
    view.apply(99, NOW, report(A, P[:2], writing=table(committed=landed)))
    alone = GroupFacts(view, status("g", view, NOW, None), NOW, FreshnessFacts(10.0), {P[1]: 80})
    assert "late" not in lines(answer(alone, "orders"), "why")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"state": "refused", "fault": "column id is INT"}, "it takes no rows: column id is INT"),
        ({"state": "paused", "fault": "ann: a test"}, "a person has paused it: ann: a test"),
        ({"state": "claiming"}, "consumer 0 is taking it over"),
        ({"fault": "the registry does not answer"}, "the registry does not answer"),
        ({"age_s": 300.0, "pending_bytes": 9}, "the sink is the limit: a staged row has waited"),
        ({}, "of 80 records 40 are not staged yet, 40 are staged and have not landed"),
        ({}, "consumer 0 waits for staging in 80% of its time"),
    ],
)
def test_why_a_table_is_late(more: dict[str, object], why: str) -> None:
    view = two_consumers(landed_s=60.0)
    view.apply(50, NOW, report(A, P[:3], writing=table(**more), busy=0.8))
    found = ask(view, "orders")
    assert why in lines(found, "why")
    assert lines(found, "change")


def test_a_table_whose_rows_are_appended() -> None:
    view = two_consumers()
    view.apply(50, NOW, report(A, P[:3], writing=table(appended="it has constraints")))
    assert "Spark writes its rows again: it has constraints" in lines(ask(view, "orders"), "is")


def test_a_table_whose_small_files_are_merged_or_are_not() -> None:
    view = two_consumers()
    merged = TableCompaction(small_files=7, small_bytes=2_000_000, files_read=150, files_written=2)
    view.apply(50, NOW, report(A, P[:3], writing=table(compaction=merged)))
    assert {"7", "150", "2"} <= {*lines(ask(view, "orders"), "is").replace(",", " ").split()}
    failed = TableCompaction(fault="a person's commit came first")
    view.apply(51, NOW, report(A, P[:3], writing=table(compaction=failed)))
    assert "a person's commit came first" in lines(ask(view, "orders"), "is")


def test_a_table_that_is_registered_or_is_not() -> None:
    view = two_consumers()
    done = TableRegistration(name="main.sales.orders", registered=True)
    view.apply(50, NOW, report(A, P[:3], writing=table(registration=done)))
    assert "is registered as main.sales.orders" in lines(ask(view, "orders"), "is")
    view.apply(
        51, NOW, report(A, P[:3], writing=table(registration=replace(done, registered=False)))
    )
    assert "not registered as main.sales.orders: its writer" in lines(ask(view, "orders"), "is")
    failed = TableRegistration(name="main.sales.orders", fault="no schema sales")
    view.apply(52, NOW, report(A, P[:3], writing=table(registration=failed)))
    assert "no schema sales" in lines(ask(view, "orders"), "is")


def test_a_table_whose_consumer_gets_too_much() -> None:
    view = two_consumers([900.0, 300.0, 300.0, 300.0], landed_s=60.0)
    why = lines(ask(view, "orders"), "why")
    assert "consumer 0 gets more than it sustains: 1.5 kB/s of 1.2 kB/s" in why


def test_a_table_without_a_writer() -> None:
    view = two_consumers()
    view.apply(50, NOW, report(A, P[:3]))
    assert "no consumer is its writer" in lines(ask(view, "orders"), "why")


def test_a_topic_with_several_tables_is_asked_about_by_their_names() -> None:
    view = two_consumers()
    (landing,) = table().values()
    named = replace(landing, topic="orders")
    view.apply(50, NOW, report(A, P[:3], writing={"raw": named, "typed": named}))
    with pytest.raises(UserError, match=r"has several tables: name one of raw, typed"):
        ask(view, "orders")
    found = ask(view, "typed")
    assert found.about == "table typed"
    assert "landing; it takes topic orders; consumer 0 writes it" in lines(found, "is")
    view.apply(51, NOW, report(A, P[:3], writing={"raw": named}))
    assert ask(view, "orders").about == "table raw"


def test_what_does_not_exist_is_refused_with_what_does() -> None:
    with pytest.raises(UserError, match=r"payments: no table, .* of group eu; its tables: orders"):
        ask(two_consumers(), "payments")


def test_a_group_that_never_reported() -> None:
    found = ask(GroupView())
    assert "0 B/s in 0 partitions, read by 0 consumers" in lines(found, "is")
    assert "no consumer reports" in lines(found, "held")


# --- zones ---------------------------------------------------------------------------------------


def zoned(near: str, zones: str, rates: list[float] | None = None) -> GroupView:
    """Return the two consumers in these zones, a letter each, and partitions readable in these."""
    view = two_consumers(rates)
    for slot, zone, partitions in zip((A, B), zones, (P[:3], P[3:]), strict=True):
        writing = table() if slot == A else {}
        view.apply(22 + slot, NOW, report(slot, partitions, writing=writing, zone=zone))
    of_zone: dict[str, tuple[int, ...]] = {}
    for number, zone in enumerate(near):
        of_zone[zone] = (*of_zone.get(zone, ()), number)
    view.apply_measurement(replace(measured(rates or [300.0] * 4), number=2, zones=of_zone))
    return view


def test_how_much_crosses_zones_and_what_that_costs() -> None:
    view = zoned("abab", "ab")
    assert "300 B/s of that (25%) cross zones; plans do not regard that: " in lines(ask(view), "is")
    priced = ask(view, zone_price=2.0)
    assert (
        "controller.zone_price is 2: a byte/s that no longer crosses pays for 2 bytes/s that move"
        in lines(priced, "is")
    )
    assert "; 0 B/s would cross zones, and what no longer crosses" in lines(priced, "otherwise")
    assert "cross" not in lines(ask(two_consumers()), "is")
    assert "0 B/s of that (0%) cross" in lines(ask(zoned("aaab", "ab", [0.0] * 4)), "is")


def test_in_which_zone_a_consumer_runs() -> None:
    assert "it runs in zone a; 300 B/s cross zones to it" in lines(
        ask(zoned("abab", "ab"), "0"), "is"
    )
    assert "zone" not in lines(ask(two_consumers(), "0"), "is")


def test_who_could_read_a_partition_without_crossing_zones() -> None:
    found = ask(zoned("abab", "ab"), "orders-1", zone_price=0.5)
    assert "it can be read in zone b; consumer 0 runs in zone a: its bytes cross zones" in lines(
        found, "is"
    )
    assert (
        "consumers of its zones have room for it: 1 (700 B/s); controller.zone_price is 0.5: only "
        "what moves anyway" in lines(found, "otherwise")
    )
    full = ask(zoned("abab", "ab", [300.0, 300.0, 300.0, 800.0]), "orders-1")
    assert "no consumer of its zones has room for it" in lines(full, "otherwise")
    assert "no consumer runs in its zones" in lines(
        ask(zoned("acab", "ab"), "orders-1"), "otherwise"
    )
    near = ask(zoned("abab", "ab"), "orders-0")
    assert "its bytes cross no zone" in lines(near, "is")
    assert "its zones" not in lines(near, "otherwise")
    assert "zone" not in lines(ask(two_consumers(), "orders-0"), "is")
    unread = zoned("abab", "ab")
    unread.apply(30, NOW, report(B, [], zone="b"))
    assert lines(ask(unread, "orders-3"), "is").endswith("it can be read in zone b")
