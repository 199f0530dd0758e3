"""The status of a group, derived from its view."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tests.builders import LIMIT

from binwright.look.group_view import GroupView
from binwright.look.page.metrics import group_samples
from binwright.look.status import (
    HotPartition,
    OrderStatus,
    OwnerChange,
    Status,
    status,
)
from binwright.protocol.metadata import (
    Accepted,
    Claim,
    Dead,
    Goodbye,
    Held,
    Hello,
    LimitsMeasured,
    Planned,
    Proposed,
    Report,
    Stopped,
    TableReport,
    Withdrawn,
)
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import MAX_SHOWN, Approved, CordonOrder
from binwright.protocol.selection import Selection

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
A, B = Slot(0), Slot(1)
NOW, SILENT_MS = 5_000, 10_000


def report(slot: Slot, **more: object) -> Report:
    fields = {"term": 0, "ready": True, "reading": {}, "writing": {}, "epoch": slot + 1, **more}
    return Report(slot=slot, **fields)  # type: ignore[arg-type]


def writes(**more: object) -> dict[str, TableReport]:
    fields = {"state": "landing", "committed": {P: 40, Q: 20}, "rows": 60, "commits": 3, **more}
    return {"orders": TableReport(**fields)}  # type: ignore[arg-type]


def planned(targets: Mapping[TopicPartition, Slot]) -> Planned:
    return Planned(
        term=0,
        reasons=("consumer 0 is overloaded",),
        consumers=2,
        moves={Q: B},
        rscore=0.5,
        rates=dict.fromkeys(targets, BytesPerSecond(100.0)),
        targets=targets,
    )


def measured(topic: str = "orders", rate: float = 100.0, end: int = 50) -> Measurement:
    parts = tuple(PartitionRate(n, BytesPerSecond(rate), 30, end, 0, 10.0) for n in range(2))
    return Measurement(
        topic=topic, at_ms=0, monitor="m", number=1, interval_s=1, count=2, partitions=parts
    )


def two_consumers() -> GroupView:
    """Two consumers: 0 reads both partitions, 1 writes the table and is ready for one of them."""
    view = GroupView()
    view.apply(0, 0, Claim(controller="c", limit=LIMIT))
    view.apply(1, 0, Hello(slot=A, process="a", version="1"))
    view.apply(2, 0, Hello(slot=B, process="b", version="1"))
    view.apply(3, NOW, report(A, reading={P: 45, Q: 25}, rate=150.0, staged_bytes=7))
    view.apply(4, NOW, report(B, writing=writes()))
    view.apply_measurement(measured())
    view.apply_measurement(measured("unrelated", 9_000.0))
    return view


def now(view: GroupView, at_ms: int = NOW) -> Status:
    return status("g", view, at_ms)


def test_a_group_without_messages_is_empty() -> None:
    found = now(GroupView())
    assert (found.state, found.term, found.partitions, found.plan) == ("empty", None, 0, None)


def test_load_and_lag_count_the_groups_own_topics() -> None:
    found = now(two_consumers())
    assert (found.state, found.term, found.controller) == ("steady", 0, "c")
    assert (found.partitions, found.load, found.staging, found.lag) == (2, 200.0, 150.0, 40)
    first, second = found.consumers
    assert (first.partitions, first.load, first.lag) == ((P, Q), 200.0, 40)
    assert (first.staging, first.staged_bytes, first.tables) == (150.0, 7, ())
    assert (second.state, second.partitions, second.tables) == ("ready", (), ("orders",))


def test_topics_of_the_settings_count_before_a_consumer_reads_them() -> None:
    view = GroupView()
    view.apply(0, 0, Claim(controller="c", limit=LIMIT))
    view.apply(1, NOW, Hello(slot=A, process="a", version="1"))
    view.apply_measurement(measured())
    found = status("g", view, NOW, Selection(frozenset({"orders"})))
    assert (found.state, found.unread, found.lag) == ("unread", (P, Q), 100)
    assert found.consumers[0].state == "starting"


def test_a_move_is_followed_from_phase_to_phase() -> None:
    view = two_consumers()
    view.apply(5, 3_000, planned({P: A, Q: B}))
    seen = []
    for a, b in (
        ({"reading": {P: 40, Q: 20}}, {"ready": False}),
        ({"reading": {P: 40, Q: 20}}, {}),
        ({"reading": {P: 40}}, {}),
        ({"reading": {P: 40}}, {"reading": {Q: None}}),
    ):
        view.apply(6, NOW, report(A, **a))
        view.apply(7, NOW, report(B, writing=writes(), **b))
        (move,) = now(view).moves
        seen.append((move.partition, move.old, move.new, move.phase))
    assert seen == [
        (Q, A, B, "waiting"),
        (Q, A, B, "stopping"),
        (Q, None, B, "starting"),
        (Q, None, B, "starting"),
    ]
    assert now(view).state == "moving"
    view.apply(8, NOW, report(A, reading={P: 40}))
    view.apply(9, NOW, report(B, reading={Q: 30}, writing=writes()))
    found = now(view)
    assert (found.state, found.moves) == ("steady", ())
    assert found.plan is not None
    assert (found.plan.age_s, found.plan.moves, found.plan.rscore) == (2.0, 1, 0.5)


def test_a_partition_between_two_owners_is_moving_not_unread() -> None:
    view = two_consumers()
    view.apply(5, NOW, planned({P: A, Q: B}))
    view.apply(6, NOW, Stopped(slot=A, epoch=1, revision=1, next={Q: 30}, stopped_ms=NOW))
    view.apply(7, NOW, report(A, reading={P: 40}))
    assert now(view).state == "moving"
    view.apply(8, NOW, Dead(slot=B, epoch=2, term=0))
    assert (now(view).state, now(view).unread) == ("unread", (Q,))


def test_a_silent_consumer_reads_and_writes_nothing() -> None:
    view = two_consumers()
    late = NOW + SILENT_MS + 1
    view.apply(5, late, report(B))
    found = now(view, late)
    assert [each.state for each in found.consumers] == ["silent", "ready"]
    assert (found.state, found.unread) == ("unread", (P, Q))
    assert now(view, late + SILENT_MS + 1).state == "silent"


def test_dead_and_ended_consumers_are_not_shown() -> None:
    view = two_consumers()
    view.apply(5, NOW, Dead(slot=A, epoch=1, term=0))
    view.apply(6, NOW, Goodbye(slot=B, epoch=2, next={}))
    assert now(view).consumers == ()


# --- tables ------------------------------------------------------------------------------------


def test_a_draining_consumer_is_shown_as_leaving() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B, leaving=True))
    assert now(view).consumers[1].state == "leaving"


def test_the_json_holds_partitions_as_text() -> None:
    fields = now(two_consumers()).to_json()
    assert fields["consumers"][0]["partitions"] == ["orders-0", "orders-1"]
    assert fields["tables"][0]["writer"] == 1
    assert fields["age_s"] == 0


def proposed(term: int = 0) -> Proposed:
    return Proposed(
        term=term,
        reasons=("consumer 0 is overloaded",),
        consumers=2,
        rscore=0.5,
        owners={P: A},
        targets={P: B, Q: A},
        waits=True,
    )


def test_a_waiting_plan_is_shown_with_its_changes() -> None:
    view = GroupView()
    view.apply(5, NOW - 3_000, proposed())
    found = now(view).proposal
    assert found is not None
    assert (found.plan, found.age_s, found.waits, found.approved) == (5, 3.0, True, False)
    assert found.changes == (OwnerChange(P, A, B), OwnerChange(Q, None, A))
    assert now(view).partitions == 2, "there may be no other sign of them yet"
    view.apply(6, NOW, Approved(plan=4, by="me"))
    view.apply(7, NOW, Approved(plan=5, by="me"))
    found = now(view).proposal
    assert found is not None
    assert found.approved


def test_a_plan_waits_until_it_is_accepted_withdrawn_or_replaced_without_approval() -> None:
    still: list[bool] = []
    for after in (
        Withdrawn(term=0, plan=5, reason=""),
        Accepted(term=0, plan=5, targets={}),
        planned({P: A}),
        Withdrawn(term=0, plan=4, reason=""),
        replace(planned({P: A}), keeps=3),
    ):
        view = GroupView()
        view.apply(5, NOW, proposed())
        view.apply(6, NOW, after)
        still.append(now(view).proposal is not None)
    assert still == [False, False, False, True, True]


class Counting(dict[TopicPartition, int | None]):
    """What a consumer reads; counts how often it is looked into."""

    looks = 0

    def __contains__(self, key: object) -> bool:
        Counting.looks += 1
        return super().__contains__(key)

    def __iter__(self) -> Iterator[TopicPartition]:
        Counting.looks += len(self)
        return super().__iter__()


def test_many_moves_among_many_consumers_cost_what_there_is_and_not_its_square() -> None:
    consumers = partitions = 300
    parts = [TopicPartition("orders", number) for number in range(partitions)]
    view = GroupView()
    for slot in map(Slot, range(consumers)):
        view.apply(slot, 0, Hello(slot=slot, process="a", version="1"))
        reading = Counting({parts[slot]: 1})
        view.apply(1000 + slot, NOW, report(slot, reading=reading, epoch=slot))
    view.apply(5000, NOW, planned({p: Slot(p.partition ^ 1) for p in parts}))
    Counting.looks = 0
    moves = now(view).moves
    assert [(move.old, move.new) for move in moves[:2]] == [(0, 1), (1, 0)]
    assert len(moves) == partitions
    assert Counting.looks < 20 * partitions


def test_a_measured_limit_replaces_the_claims() -> None:
    view = two_consumers()
    view.apply(5, 0, LimitsMeasured(term=0, limit=BytesPerSecond(7.0)))
    assert now(view).limit(A) == LIMIT, "this controller's limits are given"
    view.apply(6, 0, Claim(controller="d", limit=LIMIT, measured=True))
    assert (now(view).limit(A), now(view).limits_measured) == (7.0, True)
    more = LimitsMeasured(term=6, limit=BytesPerSecond(9.0), slot_limits=((B, LIMIT),))
    view.apply(7, 10**13, more)
    assert (now(view).limit(A), now(view).limit(B)) == (9.0, LIMIT)
    assert view.recent_events[-1][1] == "the limit of a consumer is 9 B/s, as measured"
    view.apply(8, 0, Claim(controller="e", limit=LIMIT))
    assert (now(view).limit(A), now(view).limits_measured) == (LIMIT, False)


def test_a_partition_that_gets_more_than_its_consumer_sustains_is_hot() -> None:
    view = two_consumers()
    view.apply(5, 0, Claim(controller="d", limit=BytesPerSecond(90.0), slot_limits=((A, LIMIT),)))
    assert now(view).hot == (), "its consumer is a larger one"
    view.apply(6, 0, Claim(controller="e", limit=LIMIT, slot_limits=((A, BytesPerSecond(90.0)),)))
    assert now(view).hot == (HotPartition(P, 100.0, 90.0), HotPartition(Q, 100.0, 90.0))
    view.apply(7, 0, Dead(slot=A, epoch=1, term=6))
    assert now(view).hot == (), "another consumer may sustain it"


def test_orders_in_force_and_what_is_held_back_are_in_the_status() -> None:
    view = two_consumers()
    order = CordonOrder(slot=B, state="drained", by="bob", reason="a disk", at_ms=5, until_ms=9_000)
    view.apply(20, NOW, order)
    view.apply(21, NOW, Held(term=0, reasons=("a pin waits",) * 99))
    shown = OrderStatus("cordon/1", "consumer 1 is drained", "bob", "a disk", 5, 9_000)
    assert now(view).orders == (shown,)
    assert now(view, 9_000).orders == ()
    assert now(view).held == ("a pin waits",) * MAX_SHOWN
    assert now(view).to_json()["orders"][0]["about"] == "cordon/1"
    assert view.recent_events[-1] == (NOW, "consumer 1 is drained, by bob: a disk")
    samples = {each.name: each.value for each in group_samples(now(view))}
    assert (samples["binwright_group_orders"], samples["binwright_group_held"]) == (1, MAX_SHOWN)
    view.apply(22, NOW, replace(order, state="open", reason=""))
    assert now(view).orders == ()
    assert view.recent_events[-1] == (NOW, "consumer 1 is open, by bob")


def test_what_crosses_zones_is_known_where_both_zones_are() -> None:
    view = two_consumers()
    assert (now(view).crossing, now(view).consumers[0].zone) == (0.0, None)
    view.apply_measurement(replace(measured(), number=2, zones={"a": (0,), "b": (0, 1)}))
    assert now(view).crossing == 0.0
    view.apply(9, NOW, report(A, reading={P: 45, Q: 25}, zone="a"))
    found = now(view)
    assert (found.crossing, found.consumers[0].crossing, found.consumers[0].zone) == (100, 100, "a")
    name = "binwright_consumer_zone_crossing_bytes_per_second"
    values = [(s.value, s.labels["slot"]) for s in group_samples(found) if s.name == name]
    assert values == [(100.0, "0"), (0.0, "1")]

    view.apply_measurement(replace(measured(), number=3, count=1, partitions=()))
    assert view.zones().of_partition[P] == frozenset("ab")
    view.apply_measurement(replace(measured(), number=4))
    assert view.zones().of_partition == {P: frozenset(), Q: frozenset()}
