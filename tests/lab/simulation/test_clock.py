"""Simulated time runs in order."""

from binwright.lab.simulation.clock import TICKS, Clock


def test_what_happens_runs_by_time_then_messages_first_then_in_the_order_it_was_planned() -> None:
    clock, seen = Clock(0.0), list[tuple[float, str]]()

    def note(name: str) -> None:
        seen.append((clock.now, name))

    def first() -> None:
        note("a")
        clock.after(0, lambda: note("d"))

    clock.at(2, lambda: note("c"))
    clock.at(1, lambda: note("tick"), TICKS)
    clock.at(1, first)
    clock.at(1, lambda: note("b"))
    clock.at(9, lambda: note("late"))
    clock.run_until(5)

    assert seen == [(1, "a"), (1, "b"), (1, "d"), (1, "tick"), (2, "c")]
