"""Rows are staged by size and age, and fetching pauses when memory is short."""

from binwright.consumer.decide.batch import BatchConfig, due, free_bytes, over_share

CONFIG = BatchConfig(bytes=100, wait_s=1.0, cap_bytes=400)


def test_a_batch_is_due_by_size_or_by_age() -> None:
    assert not due(CONFIG, 0, None, 9.0)
    assert not due(CONFIG, 99, 9.5, 10.0)
    assert due(CONFIG, 100, 10.0, 10.0)
    assert due(CONFIG, 1, 9.0, 10.0)


def test_there_is_room_up_to_the_cap() -> None:
    assert (free_bytes(CONFIG, 120), free_bytes(CONFIG, 500)) == (280, 0)


def test_a_topic_that_cannot_be_staged_leaves_room_for_the_others() -> None:
    assert over_share(CONFIG, {"a": 150, "b": 60}) == {"a"}


def test_below_half_of_the_cap_no_topic_is_over_its_share() -> None:
    assert over_share(CONFIG, {"a": 150, "b": 40}) == frozenset()


def test_a_single_topic_may_use_all() -> None:
    assert over_share(CONFIG, {"a": 400}) == frozenset()
