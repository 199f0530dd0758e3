"""Topics that share tables have one writer."""

from dataclasses import replace

from tests.builders import NOW, S0, S1, S2, alive, changed, group, owned, report

from binwright.controller.decide.events import Send
from binwright.controller.decide.moves import move_writers, wanted_writers
from binwright.controller.decide.shared_tables import together
from binwright.group.group import Group
from binwright.group.ownership import Ownership, Released, State
from binwright.protocol.commands import StartWriting, StopWriting
from binwright.protocol.metadata import TableReport
from binwright.protocol.model import TopicPartition

TABLES = {"a": ("t", "a"), "b": ("b",), "c": ("t", "u"), "d": ("u",), "e": ()}


def test_without_shared_tables_each_topic_is_alone() -> None:
    assert together(["a", "b"], None) == [("a",), ("b",)]


def test_topics_that_share_tables_through_others_are_together() -> None:
    assert together(sorted(TABLES), TABLES.__getitem__) == [("a", "c", "d"), ("b",), ("e",)]


def test_a_topic_may_join_groups_that_were_apart() -> None:
    tables = {"a": ("x",), "b": ("y",), "c": ("y", "x"), "d": ("x", "y")}
    assert together(sorted(tables), tables.__getitem__) == [("a", "b", "c", "d")]


# --- their writers -------------------------------------------------------------------------------

THREE = {S0: alive(1), S1: alive(2), S2: alive(3)}
SHARED = {"a": ("t",), "b": ("b",), "c": ("t",)}
READ: dict[TopicPartition, State] = {
    TopicPartition(topic, 0): owned(slot, slot + 1)
    for topic, slot in {"a": S0, "b": S1, "c": S2}.items()
}


def sharing(**writers: State) -> Group:
    """Return a group whose topics a and c share a table."""
    known = group(THREE, READ)
    config = replace(known.config, tables_of=SHARED.__getitem__)
    return changed(known, config=config, writers=Ownership(writers))


def test_topics_that_share_a_table_get_one_writer() -> None:
    assert wanted_writers(sharing(), NOW) == {"a": S0, "b": S1, "c": S0}


def test_the_consumer_that_writes_most_of_them_keeps_them() -> None:
    assert wanted_writers(sharing(c=owned(S2, 3)), NOW) == {"a": S2, "b": S0, "c": S2}
    both = sharing(a=owned(S2, 3), c=owned(S1, 2))
    assert wanted_writers(both, NOW) == {"a": S1, "b": S0, "c": S1}, "the lowest of equals"


def test_of_two_writers_of_one_table_one_is_stopped_and_the_other_takes_its_topic() -> None:
    """As after a restart with settings by which they share it."""
    known, actions = move_writers(sharing(a=owned(S0, 1), b=owned(S1, 2), c=owned(S2, 3)), NOW)
    (stop,) = (each.message for each in actions if isinstance(each, Send))
    assert isinstance(stop, StopWriting)
    assert stop.tables == ("c",)
    released = changed(known, writers=known.members.writers.changed({"c": Released()}))
    _, actions = move_writers(released, NOW)
    (start,) = (each for each in actions if isinstance(each, Send))
    assert (start.slot, type(start.message)) == (S0, StartWriting)


def test_a_report_lists_all_topics_of_a_shared_table() -> None:
    shared = TableReport(state="landing", committed={}, topics=("a", "c"))
    own = TableReport(state="landing", committed={})
    found = replace(alive(1), writing={"t": shared, "b": own})
    assert found.tables_of("c") == (shared,)
    assert report(S0, 1, writing={"t": shared, "b": own}).written_topics == {"a", "b", "c"}
