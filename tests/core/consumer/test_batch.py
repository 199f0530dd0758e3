"""When rows are staged, and when fetching pauses."""

from binwright.core.consumer.batch import BatchRules, due, over_share, room

RULES = BatchRules(bytes=100, wait_s=1.0, cap_bytes=400)


def test_a_batch_is_due_by_size_or_by_age() -> None:
    assert not due(RULES, 0, None, 9.0)
    assert not due(RULES, 99, 9.5, 10.0)
    assert due(RULES, 100, 10.0, 10.0)
    assert due(RULES, 1, 9.0, 10.0)


def test_there_is_room_up_to_the_cap() -> None:
    assert (room(RULES, 120), room(RULES, 500)) == (280, 0)


def test_one_topic_that_cannot_be_staged_leaves_room_to_the_others() -> None:
    assert over_share(RULES, {"a": 150, "b": 60}) == {"a"}


def test_while_there_is_plenty_nobody_is_over_its_share() -> None:
    assert over_share(RULES, {"a": 150, "b": 40}) == frozenset()


def test_one_topic_alone_may_use_all() -> None:
    assert over_share(RULES, {"a": 400}) == frozenset()
