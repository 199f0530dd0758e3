"""How far back a table's history is asked for."""

from collections.abc import Callable

import pytest

from binwright.consumer.delta import FIRST_LOOK, LONGEST_LOOK, look_back, quoted
from binwright.core.ports import Commit


class Log:
    """A table's log that knows versions `oldest` to `newest`, and what it was asked."""

    def __init__(self, oldest: int, newest: int, *, grows: int = 0) -> None:
        self.oldest, self.newest, self.grows = oldest, newest, grows
        self.asked: list[int] = []

    def latest(self, limit: int) -> list[Commit]:
        self.asked.append(limit)
        known = range(self.newest, max(self.oldest, self.newest - limit + 1) - 1, -1)
        self.newest += self.grows  # others commit between two questions
        return [Commit(version, None) for version in known]


def seen(latest: Callable[[int], list[Commit]], after: int) -> tuple[list[int], bool]:
    history = look_back(latest, after)
    return [commit.version for commit in history.commits], history.complete


def test_one_question_is_enough_for_what_is_recent() -> None:
    log = Log(0, 1_000)

    assert seen(log.latest, 990) == (list(range(1_000, 990, -1)), True)
    assert log.asked == [FIRST_LOOK]


def test_a_second_question_reaches_as_far_as_needed() -> None:
    log = Log(0, 1_000, grows=5)

    assert seen(log.latest, 100) == (list(range(1_005, 100, -1)), True)
    assert len(log.asked) == 2


@pytest.mark.parametrize(("after", "complete"), [(-1, False), (8, False), (9, True), (30, True)])
def test_a_log_that_was_cleaned_up_is_complete_only_from_there(after: int, complete: bool) -> None:
    assert seen(Log(10, 30).latest, after) == (list(range(30, max(after, 9), -1)), complete)


def test_a_whole_log_is_complete_from_its_creation() -> None:
    assert seen(Log(0, 3).latest, -1) == ([3, 2, 1, 0], True)


def test_a_log_too_long_to_read_is_one_that_does_not_remember() -> None:
    log = Log(0, 3 * LONGEST_LOOK)
    versions, complete = seen(log.latest, -1)

    assert not complete
    assert len(versions) == LONGEST_LOOK
    assert log.asked == [FIRST_LOOK, LONGEST_LOOK]


def test_a_path_may_have_any_sign_in_it() -> None:
    assert quoted("/a b/`c`") == "delta.`/a b/``c```"
