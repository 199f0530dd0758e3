"""Which processes are declared dead, and when."""

from tests.builders import NOW, S0, S1, S2, alive, dead, death, group

from binwright.controller.decide.deaths import declare_dead
from binwright.controller.decide.events import Publish


def test_silent_consumers_are_declared_dead_and_ended_ones_are_not() -> None:
    members = {S0: alive(1), S1: dead(9), S2: alive(3, goodbye=3)}
    known = group(members, ticked_at=NOW + 10)
    assert declare_dead(known, NOW + 10)[1] == ()
    known, actions = declare_dead(known, NOW + 11)
    assert actions == (Publish(death(S0, 1)),)
    assert declare_dead(known, NOW + 12)[1] == ()


def test_a_dead_that_is_not_read_back_is_published_again() -> None:
    known = group({S0: alive(1, declared_dead_at=NOW)}, ticked_at=NOW + 11)
    assert declare_dead(known, NOW + 11)[1] == (Publish(death(S0, 1)),)


def test_named_slots_are_declared_dead_even_if_they_report() -> None:
    known = group({S0: alive(1), S1: alive(2)})
    assert declare_dead(known, NOW, [S1])[1] == (Publish(death(S1, 2)),)


def test_after_a_pause_all_consumers_get_time_to_report() -> None:
    known, actions = declare_dead(group({S0: alive(1)}), NOW + 60)
    assert (known.members.get(S0).seen_at, actions) == (NOW + 60, ())


def test_without_a_term_no_consumer_is_declared_dead() -> None:
    known = group({S0: alive(1)}, term=None, ticked_at=NOW + 20)
    assert declare_dead(known, NOW + 20)[1] == ()
