"""Each second that differs has a cause."""

from bench.simulation.differences import (
    LIVE_ENDS,
    LIVE_STARTS,
    MADE_ENDS,
    MADE_STARTS,
    OTHER_PLAN,
    OTHER_TIME,
    RunHistory,
    Span,
    by_cause,
    differences,
)


def causes(live: RunHistory, made: RunHistory) -> dict[str, int]:
    return by_cause(differences(live, made))


def test_equal_runs_do_not_differ() -> None:
    course = RunHistory([1, 1, 2], [(1.5, 2)])
    assert differences(course, course) == []


def test_a_slow_start_or_end_is_that_of_the_run_that_has_not_what_was_planned() -> None:
    up = [(1.0, 2)]
    assert causes(RunHistory([1, 1, 1, 2], up), RunHistory([1, 1, 2, 2], up)) == {LIVE_STARTS: 1}
    assert causes(RunHistory([1, 1, 2, 2], up), RunHistory([1, 1, 1, 2], up)) == {MADE_STARTS: 1}
    down = [(1.0, 1)]
    assert causes(RunHistory([2, 2, 2, 1], down), RunHistory([2, 1, 1, 1], down)) == {LIVE_ENDS: 2}
    assert causes(RunHistory([2, 1, 1, 1], down), RunHistory([2, 2, 2, 1], down)) == {MADE_ENDS: 2}


def test_a_plan_that_the_other_run_makes_soon_is_the_same_one() -> None:
    live, made = RunHistory([1, 2, 2, 2], [(0.5, 2)]), RunHistory([1, 1, 1, 2], [(2.5, 2)])
    assert causes(live, made) == {OTHER_TIME: 2}
    assert causes(made, live) == {OTHER_TIME: 2}


def test_a_plan_that_the_other_run_does_not_make_is_another_one() -> None:
    live, made = RunHistory([1, 2, 3], [(0.5, 2), (1.5, 3)]), RunHistory([1, 2, 2], [(0.5, 2)])
    assert causes(live, made) == {OTHER_PLAN: 1}


def test_seconds_in_a_row_are_one_span() -> None:
    plans = [(0.0, 2)]
    live, made = RunHistory([1, 1, 2, 1], plans), RunHistory([2, 2, 2, 2], plans)
    assert differences(live, made) == [
        Span(0, 1, 1, 2, LIVE_STARTS),
        Span(3, 3, 1, 2, LIVE_STARTS),
    ]
