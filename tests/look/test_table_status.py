"""The tables of a group as its status shows them: by the reports of their writers."""

from dataclasses import fields, replace

from tests.look.test_status import (
    NOW,
    SILENT_MS,
    A,
    B,
    P,
    Q,
    measured,
    now,
    report,
    two_consumers,
    writes,
)

from binwright.look.group_view import GroupView
from binwright.look.status import (
    status,
)
from binwright.look.table_status import topics_text
from binwright.protocol.metadata import TableReport
from binwright.protocol.model import TopicPartition
from binwright.protocol.selection import Selection


def test_a_table_is_shown_with_its_writer_and_its_oldest_row() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B, writing=writes(age_s=2.5, pending_bytes=900)))
    (table,) = now(view, NOW + 500).tables
    assert (table.topic, table.writer, table.state) == ("orders", B, "landing")
    assert (table.report.age_s, table.report.pending_bytes, table.lag) == (3.0, 900, 40)
    assert (table.rows, table.report.commits) == (60, 3)
    assert now(view, NOW + 500).age_s == 3.0


def test_json_has_what_a_table_s_writer_reports_beside_what_else_is_known() -> None:
    (table,) = now(two_consumers()).to_json()["tables"]
    assert (table["rows"], table["state"], table["name"]) == (60, "landing", "orders")
    own = {"topic", "name", "writer", "lag", "partitions", "freshness_s", "topics", "new_fields"}
    assert {*table} == own | {each.name for each in fields(TableReport)} - {
        "committed",
        "newest_ms",
    }


def test_every_partition_is_shown_from_its_log_through_its_reader_to_the_table() -> None:
    first, second = now(two_consumers()).tables[0].partitions
    assert (first.partition, first.reader) == (0, A)
    assert (first.committed, first.staged, first.end, first.lag) == (40, 45, 50, 10)
    assert (second.committed, second.staged, second.lag) == (20, 25, 30)


def test_a_table_without_waiting_rows_has_no_age() -> None:
    (table,) = now(two_consumers(), NOW + 5_000).tables
    assert table.report.age_s == 0


def test_a_table_is_as_fresh_as_the_newest_record_of_all_its_writers() -> None:
    view = two_consumers()
    assert now(view).tables[0].freshness_s is None
    for newest_ms in (4_000, 3_000, None):  # the last: another writer, which has landed nothing yet
        view.apply(12, 4_500, report(B, writing=writes(newest_ms=newest_ms)))
    assert now(view).tables[0].freshness_s == 1.0


def test_a_table_that_refuses_rows_is_the_state_of_the_group() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B, writing=writes(state="refused", fault="a CHECK constraint")))
    found = now(view)
    assert (found.state, found.tables[0].report.fault) == ("refused", "a CHECK constraint")


def test_a_table_without_a_writer_is_unwritten() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B))
    assert (now(view).state, now(view).tables[0].writer) == ("unwritten", None)


def test_a_table_whose_writer_is_silent_is_silent() -> None:
    view = two_consumers()
    late = NOW + SILENT_MS + 1
    view.apply(5, late, report(A, reading={P: 45, Q: 25}))
    found = now(view, late)
    assert (found.state, found.tables[0].state) == ("unwritten", "silent")


def test_topics_without_a_writer_yet_have_a_table() -> None:
    view = GroupView()
    view.apply_measurement(measured())
    found = status("g", view, NOW, Selection(frozenset({"orders"})))
    assert [(t.topic, t.state, t.lag) for t in found.tables] == [("orders", "unwritten", 100)]


def two_tables(**more: object) -> dict[str, TableReport]:
    """Return the reports of two tables: one has landed more than the other."""
    (behind,) = writes(topic="orders", **more).values()
    ahead = replace(behind, committed={P: 50, Q: 45})
    return {"raw": ahead, "typed": replace(behind, state="refused", fault="a constraint")}


def test_each_table_of_a_topic_is_shown_with_its_own_offsets() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B, writing=two_tables()))
    raw, typed = now(view).tables
    assert [(t.topic, t.name, t.state) for t in (raw, typed)] == [
        ("orders", "raw", "landing"),
        ("orders", "typed", "refused"),
    ]
    assert [[p.committed for p in t.partitions] for t in (raw, typed)] == [[50, 45], [40, 20]]
    assert (raw.lag, typed.lag, now(view).lag) == (5, 40, 40)
    assert (raw.report.fault, typed.report.fault) == ("", "a constraint")
    assert view.landed == {P: 40, Q: 20}, "the topic has landed as far as in all of them"
    view.apply(6, NOW, report(B, writing={"raw": two_tables()["raw"]}))
    assert [t.name for t in now(view).tables] == ["raw"], "the settings have no other any more"


def test_what_is_not_staged_for_a_table_is_its_fault() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B, writing=two_tables(), faults={"raw": "the registry is away"}))
    assert [t.report.fault for t in now(view).tables] == ["the registry is away", "a constraint"]


def test_a_table_has_the_fields_that_any_consumer_leaves_out() -> None:
    view = two_consumers()
    view.apply(
        5, NOW, report(A, reading={P: 45, Q: 25}, new_fields={"raw": ("b", "a"), "gone": ("x",)})
    )
    view.apply(6, NOW, report(B, writing=two_tables(), new_fields={"raw": ("b", "c.d")}))
    assert [t.new_fields for t in now(view).tables] == [("a", "b", "c.d"), ()]


def test_of_a_partition_that_is_gone_no_table_has_an_offset() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B, writing=two_tables()))
    view.tables.remove_partitions("orders", 1)
    assert view.landed == {P: 40}
    assert [p.committed for t in now(view).tables for p in t.partitions] == [50, None, 40, None]


C = TopicPartition("clicks", 0)


def shared_table(*topics: str) -> dict[str, TableReport]:
    (one,) = writes().values()
    return {"all": replace(one, topic=None, topics=topics, committed={P: 40, Q: 20, C: 7})}


def test_a_table_of_several_topics_is_one_with_the_partitions_of_all() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(A, reading={P: 45, Q: 25, C: 9}))
    view.apply(6, NOW, report(B, writing=shared_table("clicks", "orders")))
    (table,) = now(view).tables
    assert (table.name, table.topic, table.topics) == (
        "all",
        "clicks, orders",
        ("clicks", "orders"),
    )
    places = [(p.topic, p.partition, p.committed) for p in table.partitions]
    assert places == [("clicks", 0, 7), ("orders", 0, 40), ("orders", 1, 20)]
    assert view.landed == {P: 40, Q: 20, C: 7}


def test_a_table_that_gets_another_topic_keeps_its_counts() -> None:
    view = two_consumers()
    view.apply(5, NOW, report(B, writing=shared_table("orders")))
    rows = view.tables.by_name["all"].report.rows
    view.apply(6, NOW, report(B, writing=shared_table("orders", "clicks")))
    assert view.tables.by_name["all"].report.rows == rows > 0
    view.apply(7, NOW, report(B, writing=shared_table("clicks")))
    assert view.tables.by_name["all"].topics == ("clicks",)


def test_many_topics_are_cut_short() -> None:
    assert topics_text(list("abc")) == "a, b, c"
    assert topics_text(list("abcde")) == "a, b, c and 2 more"
