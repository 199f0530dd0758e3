"""The product's controller on virtual time."""

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.lab.simulation.builders import CONFIG, TIMING, outcome, scenario

from binwright.lab.simulation.outcome import Outcome
from binwright.lab.simulation.scenario import Timing
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot

RATES = st.sampled_from([0.0, 5.0, 20.0, 33.0, 60.0, 90.0, 119.0, 150.0])
ROWS = st.lists(st.tuples(*[RATES] * 6), min_size=1, max_size=6)


def within_sla(found: Outcome, sla_s: float) -> float:
    share = found.score(sla_s).within_sla
    assert share is not None
    return share


def figures(found: Outcome) -> list[object]:
    """Return all that a policy's outcome consists of but latencies, as comparable values.

    Looks at backlogs cut sums into other pieces: values are rounded.
    """
    assert found.lag is not None
    lag = [round(each, 6) for each in found.lag.tolist()]
    return [found.changes, found.running, found.ready, found.moves, lag]


def shares_in_time(found: Outcome) -> list[float]:
    """Return which shares of what was read are within some latencies.

    Looks at backlogs cut latencies into other pieces, each of which counts whole.
    """
    return [within_sla(found, sla_s) for sla_s in (0.1, 1.0, 5.0, 30.0, 90.0)]


@given(
    rows=ROWS,
    row_s=st.sampled_from([7.0, 30.0, 45.0]),
    replan_interval_s=st.sampled_from([3.0, 20.0, 61.5]),
    slots=st.sampled_from([(1, 100), (2, 100), (1, 2), (4, 4)]),
    plan_timeout_s=st.sampled_from([4.0, 120.0]),
    start_up_s=st.sampled_from([0.0, 1.0, 5.3, 14.0]),
    hand_over_s=st.sampled_from([0.0, 0.1, 2.0]),
    interval_s=st.sampled_from([1.0, 2.0, 5.0]),
    measured_age_s=st.sampled_from([0.0, 0.7]),
    packing=st.sampled_from(["sticky", "sticky:10", "mwf"]),
    catch_up_s=st.sampled_from([0.0, 20.0, 300.0]),
    sustained=st.sampled_from([None, 70.0]),
)
@settings(deadline=None, max_examples=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_leaving_out_quiet_ticks_changes_no_decision(  # noqa: PLR0917 - all that matters
    rows: list[tuple[float, ...]],
    row_s: float,
    replan_interval_s: float,
    slots: tuple[int, int],
    plan_timeout_s: float,
    start_up_s: float,
    hand_over_s: float,
    interval_s: float,
    measured_age_s: float,
    packing: str,
    catch_up_s: float,
    sustained: float | None,
) -> None:
    """The same plans at the same times, consumers, moves, lag and latencies as each second."""
    config = replace(
        CONFIG.with_settings(
            replan_interval_s=replan_interval_s,
            min_slots=slots[0],
            max_slots=slots[1],
            plan_timeout_s=plan_timeout_s,
            catch_up_s=catch_up_s,
        ),
        limits=PerSlot(CONFIG.limits.default, {Slot(1): BytesPerSecond(60.0)}),
    )
    timing = Timing(
        start_up_s=start_up_s,
        hand_over_s=hand_over_s,
        interval_s=interval_s,
        measured_age_s=measured_age_s,
    )
    found = scenario(rows, row_s=row_s, config=config, timing=timing, sustained=sustained)

    skipped = outcome(found, packing=packing)
    every_second = outcome(found, packing=packing, every=True)
    assert figures(skipped) == figures(every_second)
    assert shares_in_time(skipped) == pytest.approx(shares_in_time(every_second), abs=0.002)


def test_a_steady_load_is_read_by_what_it_needs_and_nothing_changes() -> None:
    found = outcome(scenario([[60.0, 60.0, 30.0]] * 4))

    assert (found.running.values, found.ready.values) == ((2,), (2,))
    assert list(found.changes) == []
    assert found.score(5.0).within_sla == 1.0
    assert found.score(5.0, price=3.0).cost == pytest.approx(2 * 120 / 3600 * 3.0)


def test_an_overload_brings_a_consumer_after_its_start_up() -> None:
    """60 becomes 150 bytes/s at 0: above 120 measured at 20 s, ready 5 s later."""
    found = outcome(scenario([[60.0, 0.0], [75.0, 75.0], [75.0, 75.0], [75.0, 75.0]]))

    plan = found.changes[0]
    assert (plan.consumers, plan.moves) == (2, 1)
    assert plan.reasons.startswith("consumer 0 carries 102.")
    assert plan.at == 51.0
    assert (found.running.times, found.running.values) == ((0.0, 51.0), (1, 2))
    assert (found.ready.times, found.ready.values) == ((0.0, 56.0), (1, 2))


def test_a_move_pauses_its_partition_for_the_hand_over() -> None:
    rows = [[60.0, 0.0], [75.0, 75.0], [75.0, 75.0], [75.0, 75.0]]
    found = outcome(scenario(rows, timing=replace(TIMING, hand_over_s=3.0)))

    assert found.moves is not None
    assert (found.moves.count, found.moves.bytes_per_s) == (1, 75.0)
    assert found.moves.paused_s == pytest.approx(3.0)


def test_consumers_that_are_not_needed_end_after_the_next_look() -> None:
    found = outcome(scenario([[75.0, 75.0], [10.0, 10.0], [10.0, 10.0], [10.0, 10.0]]))

    assert found.running.values == (2, 1)
    assert 30.0 < found.running.times[1] < 30.0 + 30.0 + 21.0
    assert found.changes[0].reasons.startswith("2 consumers -> 1")


def test_consumers_that_sustain_less_than_their_limit_build_up_lag() -> None:
    """The settings take them to sustain 120 bytes/s; really it is 50."""
    found = outcome(scenario([[60.0, 0.0]] * 2, sustained=50.0))

    assert found.running.values == (1,)
    assert found.score(5.0).lag_max_bytes == pytest.approx(600.0)


def test_a_consumer_comes_for_a_backlog_and_goes_after_it() -> None:
    """Two partitions of 45 bytes/s fit one consumer by their rates, and it really sustains 80.

    Its backlog grows until half a minute of it is exceeded; two consumers read it, and as the load
    is smaller at the end, one is enough again.
    """
    rows = [[45.0, 45.0]] * 20 + [[10.0, 10.0]] * 20
    patient = scenario(rows, sustained=80.0)
    catching_up = scenario(rows, sustained=80.0, config=CONFIG.with_settings(catch_up_s=60.0))
    alone, found = outcome(patient), outcome(catching_up)

    assert alone.running.values == (1,)
    assert found.running.values == (1, 2, 1)
    assert "to catch up in 60 s" in found.changes[0].reasons
    assert within_sla(found, 30.0) > within_sla(alone, 30.0)
