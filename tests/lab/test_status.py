"""A group in a few words."""

from collections.abc import Mapping
from dataclasses import replace

from binwright.core.messages import (
    Accepted,
    Approved,
    Claim,
    Dead,
    Goodbye,
    Hello,
    Measurement,
    PartitionRate,
    Planned,
    Proposed,
    Report,
    Stopped,
    TableReport,
    Withdrawn,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.selection import Selection
from binwright.lab.picture import Picture
from binwright.lab.status import SILENT_MS, Change, Status, status

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
A, B = Slot(0), Slot(1)
NOW = 5_000


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


def lively() -> Picture:
    """Two consumers: 0 reads both partitions, 1 writes the table and is ready for one of them."""
    picture = Picture()
    picture.heard(0, 0, Claim(controller="c"))
    picture.heard(1, 0, Hello(slot=A, process="a", version="1"))
    picture.heard(2, 0, Hello(slot=B, process="b", version="1"))
    picture.heard(3, NOW, report(A, reading={P: 45, Q: 25}, rate=150.0, staged_bytes=7))
    picture.heard(4, NOW, report(B, writing=writes()))
    picture.measured(measured())
    picture.measured(measured("others", 9_000.0))
    return picture


def now(picture: Picture, at_ms: int = NOW) -> Status:
    return status("g", picture, at_ms)


def test_a_group_that_never_spoke_is_empty() -> None:
    found = now(Picture())
    assert (found.state, found.term, found.partitions, found.plan) == ("empty", None, 0, None)


def test_load_and_lag_are_of_its_own_topics() -> None:
    found = now(lively())
    assert (found.state, found.term, found.controller) == ("steady", 0, "c")
    assert (found.partitions, found.load, found.staging, found.lag) == (2, 200.0, 150.0, 40)
    first, second = found.consumers
    assert (first.partitions, first.load, first.lag) == ((P, Q), 200.0, 40)
    assert (first.staging, first.staged_bytes, first.tables) == (150.0, 7, ())
    assert (second.state, second.partitions, second.tables) == ("ready", (), ("orders",))


def test_topics_that_are_known_count_before_anybody_reads_them() -> None:
    picture = Picture()
    picture.heard(0, 0, Claim(controller="c"))
    picture.heard(1, NOW, Hello(slot=A, process="a", version="1"))
    picture.measured(measured())
    found = status("g", picture, NOW, Selection(frozenset({"orders"})))
    assert (found.state, found.unread, found.lag) == ("unread", (P, Q), 100)
    assert found.consumers[0].state == "starting"


def test_a_move_is_followed_from_phase_to_phase() -> None:
    picture = lively()
    picture.heard(5, 3_000, planned({P: A, Q: B}))
    seen = []
    for a, b in (
        ({"reading": {P: 40, Q: 20}}, {"ready": False}),
        ({"reading": {P: 40, Q: 20}}, {}),
        ({"reading": {P: 40}}, {}),
        ({"reading": {P: 40}}, {"reading": {Q: None}}),
    ):
        picture.heard(6, NOW, report(A, **a))
        picture.heard(7, NOW, report(B, writing=writes(), **b))
        (move,) = now(picture).moves
        seen.append((move.partition, move.old, move.new, move.phase))
    assert seen == [
        (Q, A, B, "waiting"),
        (Q, A, B, "stopping"),
        (Q, None, B, "starting"),
        (Q, None, B, "starting"),
    ]
    assert now(picture).state == "moving"
    picture.heard(8, NOW, report(A, reading={P: 40}))
    picture.heard(9, NOW, report(B, reading={Q: 30}, writing=writes()))
    found = now(picture)
    assert (found.state, found.moves) == ("steady", ())
    assert found.plan is not None
    assert (found.plan.age_s, found.plan.moves, found.plan.rscore) == (2.0, 1, 0.5)


def test_what_is_between_two_owners_is_moving_not_unread() -> None:
    picture = lively()
    picture.heard(5, NOW, planned({P: A, Q: B}))
    picture.heard(6, NOW, Stopped(slot=A, epoch=1, revision=1, next={Q: 30}, quit_ms=NOW))
    picture.heard(7, NOW, report(A, reading={P: 40}))
    assert now(picture).state == "moving"
    picture.heard(8, NOW, Dead(slot=B, epoch=2, term=0))
    assert (now(picture).state, now(picture).unread) == ("unread", (Q,))


def test_the_silent_read_nothing_and_write_nothing() -> None:
    picture = lively()
    late = NOW + SILENT_MS + 1
    picture.heard(5, late, report(B))
    found = now(picture, late)
    assert [each.state for each in found.consumers] == ["silent", "ready"]
    assert (found.state, found.unread) == ("unread", (P, Q))
    assert now(picture, late + SILENT_MS + 1).state == "silent"


def test_who_is_dead_or_gone_is_not_shown() -> None:
    picture = lively()
    picture.heard(5, NOW, Dead(slot=A, epoch=1, term=0))
    picture.heard(6, NOW, Goodbye(slot=B, epoch=2, next={}))
    assert now(picture).consumers == ()


# --- tables ------------------------------------------------------------------------------------


def test_a_table_is_shown_with_its_writer_and_its_oldest_row() -> None:
    picture = lively()
    picture.heard(5, NOW, report(B, writing=writes(age_s=2.5, pending_bytes=900)))
    (table,) = now(picture, NOW + 500).tables
    assert (table.topic, table.writer, table.state) == ("orders", B, "landing")
    assert (table.age_s, table.pending_bytes, table.lag) == (3.0, 900, 40)
    assert (table.rows, table.commits) == (60, 3)
    assert now(picture, NOW + 500).age_s == 3.0


def test_every_partition_is_shown_from_its_log_through_its_reader_to_the_table() -> None:
    first, second = now(lively()).tables[0].partitions
    assert (first.partition, first.reader) == (0, A)
    assert (first.committed, first.staged, first.end, first.lag) == (40, 45, 50, 10)
    assert (second.committed, second.staged, second.lag) == (20, 25, 30)


def test_a_table_that_nothing_waits_for_has_no_age() -> None:
    (table,) = now(lively(), NOW + 5_000).tables
    assert table.age_s == 0


def test_a_table_that_takes_nothing_is_what_the_group_is_about() -> None:
    picture = lively()
    picture.heard(5, NOW, report(B, writing=writes(state="refused", fault="a CHECK constraint")))
    found = now(picture)
    assert (found.state, found.tables[0].fault) == ("refused", "a CHECK constraint")


def test_a_table_without_a_writer_is_told() -> None:
    picture = lively()
    picture.heard(5, NOW, report(B))
    assert (now(picture).state, now(picture).tables[0].writer) == ("unwritten", None)


def test_a_table_whose_writer_is_silent_is_told() -> None:
    picture = lively()
    late = NOW + SILENT_MS + 1
    picture.heard(5, late, report(A, reading={P: 45, Q: 25}))
    found = now(picture, late)
    assert (found.state, found.tables[0].state) == ("unwritten", "silent")


def test_topics_that_nobody_writes_yet_have_a_line() -> None:
    picture = Picture()
    picture.measured(measured())
    found = status("g", picture, NOW, Selection(frozenset({"orders"})))
    assert [(t.topic, t.state, t.lag) for t in found.tables] == [("orders", "unwritten", 100)]


def test_who_leaves_is_shown_as_leaving() -> None:
    picture = lively()
    picture.heard(5, NOW, report(B, leaving=True))
    assert now(picture).consumers[1].state == "leaving"


def test_programs_get_partitions_as_text() -> None:
    facts = now(lively()).facts()
    assert facts["consumers"][0]["partitions"] == ["orders-0", "orders-1"]
    assert facts["tables"][0]["writer"] == 1
    assert facts["age_s"] == 0


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


def test_a_plan_that_waits_is_shown_with_all_it_would_change() -> None:
    picture = Picture()
    picture.heard(5, NOW - 3_000, proposed())
    found = now(picture).proposal
    assert found is not None
    assert (found.plan, found.age_s, found.waits, found.approved) == (5, 3.0, True, False)
    assert found.changes == (Change(P, A, B), Change(Q, None, A))
    assert now(picture).partitions == 2, "there may be no other sign of them yet"
    picture.heard(6, NOW, Approved(plan=4, by="me"))
    picture.heard(7, NOW, Approved(plan=5, by="me"))
    found = now(picture).proposal
    assert found is not None
    assert found.approved


def test_a_plan_waits_until_it_goes_ahead_is_out_of_date_or_nobody_is_asked_any_more() -> None:
    still: list[bool] = []
    for after in (
        Withdrawn(term=0, plan=5, reason=""),
        Accepted(term=0, plan=5, targets={}),
        planned({P: A}),
        Withdrawn(term=0, plan=4, reason=""),
        replace(planned({P: A}), keeps=3),
    ):
        picture = Picture()
        picture.heard(5, NOW, proposed())
        picture.heard(6, NOW, after)
        still.append(now(picture).proposal is not None)
    assert still == [False, False, False, True, True]
