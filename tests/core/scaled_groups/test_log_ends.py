"""Ends of logs, and rates from them."""

from binwright.core.scaled_groups.log_ends import EndHistory


def test_a_rate_is_what_arrived_since_the_first_look_up() -> None:
    history = EndHistory().with_ends(0, {0: 100}).with_ends(30, {0: 400})

    assert history.latest(1).rates == {0: 10}


def test_a_single_look_up_gives_no_rate() -> None:
    found = EndHistory().with_ends(5, {0: 100}).latest(2)

    assert (found.rates, found.ends, found.at_s, found.count) == ({}, {0: 100}, 5, 2)


def test_look_ups_older_than_the_window_are_forgotten() -> None:
    history = EndHistory()
    for at_s in range(0, 150, 30):
        history = history.with_ends(at_s, {0: at_s * at_s})

    assert [at for at, _ in history.looked_up] == [60, 90, 120]


def test_a_rate_reaches_back_over_look_ups_that_are_far_apart() -> None:
    history = EndHistory().with_ends(0, {0: 0}).with_ends(200, {0: 400})

    assert history.latest(1).rates == {0: 2}


def test_a_new_partition_has_no_rate_yet_and_a_truncated_one_none_at_all() -> None:
    history = EndHistory().with_ends(0, {0: 100}).with_ends(10, {0: 50, 1: 70})

    assert history.latest(2).rates == {0: 0}
