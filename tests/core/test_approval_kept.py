"""Where plans wait: what is as approved is not looked at again until something changes."""

from binwright.core.messages import Accepted, StartReading, StopReading
from binwright.core.states import Sentinel

from .approvals import APART, BOTH_AT_A, RATES, R, beginning
from .reign import A, B, P, Q, Reign, told


def settled() -> Reign:
    """Return a reign whose last tick found everything as approved."""
    reign = beginning(APART, RATES)
    reign.tick()
    assert isinstance(reign.state, Sentinel)
    assert reign.state.kept is not None
    return reign


def test_reports_and_measurements_are_no_reason_to_look_again() -> None:
    """To look costs by all partitions, each second."""
    reign = settled()
    assert isinstance(reign.state, Sentinel)
    before = reign.state.kept
    for _ in range(3):
        reign.report(A, reading=[P])
        reign.report(B, reading=[Q])
        reign.measure({p: rate + 1 for p, rate in RATES.items()})
        reign.tick()
    assert isinstance(reign.state, Sentinel)
    assert reign.state.kept is before


def test_what_is_gone_later_is_stopped() -> None:
    reign = settled()
    reign.measure({P: 90.0})
    (stop,) = told(reign.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_a_partition_that_is_new_later_finds_a_reader() -> None:
    reign = settled()
    reign.measure({**RATES, R: 1.0})
    (start,) = told(reign.tick(), StartReading)
    assert start.offsets.keys() == {R}


def test_another_approved_plan_is_brought_about() -> None:
    reign = settled()
    reign.hear(Accepted(term=reign.group.term or 0, plan=1, targets=BOTH_AT_A))
    (stop,) = told(reign.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_an_approved_consumer_that_is_ready_later_gets_its_own_back() -> None:
    reign = settled()
    (start,) = told(reign.dead(B) + reign.tick(), StartReading)
    reign.started(start, A)
    reign.tick()
    assert isinstance(reign.state, Sentinel)
    assert reign.state.kept is not None, "until then there is nothing to do"
    reign.hello(B)
    reign.report(B)
    (stop,) = told(reign.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_while_something_is_elsewhere_no_plan_is_made_for_it() -> None:
    """Also when it is not looked at again."""
    reign = settled()
    (start,) = told(reign.dead(B) + reign.tick(), StartReading)
    reign.started(start, A)  # above its limit: 170 of 120
    for _ in range(3):
        reign.report(A, reading=[P, Q])
        reign.measure(dict(RATES))
        assert reign.tick() == []
