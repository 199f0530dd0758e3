"""Simulated time runs in order."""

from binwright.lab.slo.simulator.timeline import Timeline


def test_actions_run_by_time_then_in_the_order_they_were_added() -> None:
    timeline, seen = Timeline(), list[tuple[float, str]]()

    def note(name: str) -> None:
        seen.append((timeline.now, name))

    def first() -> None:
        note("a")
        timeline.after(0, lambda: note("d"))

    timeline.at(2, lambda: note("c"))
    timeline.at(1, first)
    timeline.at(1, lambda: note("b"))
    timeline.at(9, lambda: note("late"))
    timeline.run(until_s=5)

    assert seen == [(1, "a"), (1, "b"), (1, "d"), (2, "c")]
