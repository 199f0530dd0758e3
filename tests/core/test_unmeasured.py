"""What nobody reads gets a reader, whether or not a monitor speaks."""

from dataclasses import replace

from binwright.core.events import Pack, Packed, Reconcile
from binwright.core.messages import Planned, StartReading
from binwright.core.model import TopicPartition
from binwright.core.states import Sentinel

from .reign import RULES, A, B, P, Q, Reign, holding, ruling, told

R = TopicPartition("orders", 2)
RATES = {P: 50.0, Q: 40.0}
PLAN = Planned(term=0, reasons=(), consumers=1, moves={}, rscore=0.0, rates={}, targets={})


def test_without_a_monitor_what_nobody_reads_gets_a_reader_all_the_same() -> None:
    """B1: by the last known rates, and nobody is retired by what is not known."""
    reign = holding({P: 50.0, Q: 40.0, R: 1.0}, {P: A, Q: B, R: A})
    unmeasured = replace(reign.group, rules=replace(RULES, stale_s=30.0))
    reign.state = replace(reign.state, group=unmeasured)
    before = len(reign.actions)
    for _ in range(40):
        reign.tick()
        reign.report(A, reading={P: 8, R: 9})
        reign.report(B, reading={Q: 5})
    reign.dead(B)
    actions = reign.tick()
    (start,) = told(actions, StartReading)
    assert start.offsets == {Q: 5}
    done = reign.started(start, A)
    assert reign.phase() == Sentinel
    assert Reconcile(frozenset({A, B})) in done
    assert not any(isinstance(a, Pack) for a in reign.actions[before:])


def test_without_a_monitor_and_with_nobody_alive_a_consumer_is_started() -> None:
    reign = Reign()
    reign.hello(B)
    reign.claim()
    reign.report(B, reading={P: 8})
    reign.dead(B)
    actions = reign.tick()
    assert Reconcile(frozenset({A})) in actions
    reign.hello(A)
    (start,) = told(reign.report(A), StartReading)
    assert start.offsets == {P: 8}


def test_without_any_measurement_the_partitions_of_the_last_plan_are_read() -> None:
    """The consumers died, then the controller, and no monitor speaks: partition 0 knows."""
    reign = Reign()
    reign.hear(replace(PLAN, targets={P: A, Q: A}))
    reign.hello(B)
    reign.claim()
    reign.report(B)
    for _ in range(90):
        assert not told(reign.tick(), StartReading)
        reign.report(B)
    (start,) = told(reign.tick(), StartReading)
    assert start.offsets == {P: None, Q: None}


def test_who_only_observes_gives_nobody_a_reader() -> None:
    reign = holding(RATES, {P: A, Q: B})
    reign.state = replace(
        reign.state, group=replace(reign.group, rules=replace(RULES, mode="observe", stale_s=0.0))
    )
    reign.dead(B)
    assert told(reign.tick(5), StartReading) == []


def test_a_partition_whose_rate_is_never_known_is_read_all_the_same() -> None:
    """B9: it is placed with rate 0."""
    reign = ruling({}, A)
    reign.measure({P: None, Q: 40.0})
    [request] = [a for a in reign.tick() if isinstance(a, Pack)]
    assert request.rates == {P: 0.0, Q: 40.0}
    (start,) = told(reign.feed(Packed(reign.now, {P: A, Q: A})), StartReading)
    assert start.offsets.keys() == {P, Q}
