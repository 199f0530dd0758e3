"""What the controller's machine makes of what monitors say."""

from typing import Any

from binwright.core.events import Action, Measured, Pack, Say
from binwright.core.messages import PartitionRate, StopReading
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.core.states import Sentinel

from .builders import measurement
from .reign import A, P, Q, Reign, holding, told

RATES = {P: 50.0, Q: 40.0}


def rate(partition: TopicPartition, value: float | None) -> PartitionRate:
    known = None if value is None else BytesPerSecond(value)
    return PartitionRate(partition.partition, known, 30, 10, 0, None)


def hear(reign: Reign, *rates: PartitionRate, **more: Any) -> list[Action]:
    return reign.feed(Measured(reign.now, measurement("orders", rates, **more)))


def test_a_topic_in_parts_is_whole_whichever_part_comes_first() -> None:
    reign = holding(RATES, {P: A, Q: A})
    hear(reign, rate(Q, 45.0), count=2)
    assert reign.group.rates == {P: 50.0, Q: 45.0}
    assert not any(isinstance(a, Pack) for a in reign.tick(2))
    hear(reign, rate(P, 55.0), count=2)
    assert reign.group.rates == {P: 55.0, Q: 45.0}


def test_what_a_second_monitor_says_meanwhile_changes_nothing() -> None:
    reign = holding(RATES, {P: A, Q: A})
    hear(reign, rate(P, 500.0), rate(Q, 500.0), monitor="another")
    assert reign.group.rates == RATES
    assert not any(isinstance(a, Pack) for a in reign.tick(2))


def test_a_second_monitor_takes_over_when_the_first_is_silent() -> None:
    reign = holding(RATES, {P: A, Q: A})
    hear(reign, rate(P, 50.0), rate(Q, 40.0))
    reign.tick(6)
    hear(reign, rate(P, 51.0), rate(Q, 41.0), monitor="another")
    assert reign.group.rates == {P: 51.0, Q: 41.0}


def test_a_dead_monitor_is_told_and_the_assignment_stays() -> None:
    reign = holding(RATES, {P: A, Q: A})
    hear(reign, rate(P, 50.0), rate(Q, 40.0))
    done: list[Action] = []
    for _ in range(200):
        done += reign.tick()
        reign.report(A, reading=[P, Q])
    silent = [a for a in done if isinstance(a, Say) and a.event == "monitor.silent"]
    assert [say.facts["effect"] for say in silent] == ["the assignment stays as it is"]
    assert reign.group.assignment() == {P: A, Q: A}
    assert reign.phase() == Sentinel


def test_a_topic_that_is_gone_is_given_back() -> None:
    reign = holding(RATES, {P: A, Q: A})
    hear(reign, count=0)
    assert reign.group.rates == {}
    (stop,) = told(reign.pack({}), StopReading)
    assert stop.partitions == (P, Q)
    reign.stopped(stop, A)
    assert reign.group.partitions == {}
