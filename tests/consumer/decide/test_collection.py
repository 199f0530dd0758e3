"""Only rows that are elsewhere, too, are collected by age."""

import pytest

from binwright.consumer.decide.collection import TopicLog, may_be_collected
from binwright.tables.ports import Footer

FOOTER = Footer("an id", 10, {0: (10, 20)})


@pytest.mark.parametrize(
    ("begin", "committed", "collected"),
    [
        (0, 0, True),  # all is in Kafka
        (10, 0, True),
        (11, 0, False),  # the first row is gone
        (30, 0, False),
        (30, 20, True),  # all has landed
        (30, 19, False),
        (15, 15, True),  # what has not landed is in Kafka
        (16, 15, False),
    ],
)
def test_rows_must_have_landed_or_be_in_kafka(begin: int, committed: int, collected: bool) -> None:
    log = TopicLog("an id", {0: begin}, {0: committed})
    assert may_be_collected(FOOTER, log) == collected


def test_one_partition_whose_rows_are_gone_keeps_the_file() -> None:
    footer = Footer("an id", 10, {0: (10, 20), 1: (0, 5)})
    assert may_be_collected(footer, TopicLog("an id", {0: 0, 1: 0}, {}))
    assert not may_be_collected(footer, TopicLog("an id", {0: 0, 1: 1}, {}))


def test_rows_of_a_topic_that_was_deleted_are_collected() -> None:
    """Nothing can tell whether they have landed."""
    assert may_be_collected(FOOTER, TopicLog("another", {0: 30}, {}))


def test_without_topic_ids_offsets_alone_decide() -> None:
    assert not may_be_collected(FOOTER, TopicLog(None, {0: 30}, {}))
