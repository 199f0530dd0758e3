"""What a measurement changes: rates, and which partitions there are."""

from dataclasses import replace

from binwright.core.events import Measured, Say
from binwright.core.group import Group, discovered
from binwright.core.model import TopicPartition
from binwright.core.monitors import take


def measured(group: Group, event: Measured) -> tuple[Group, tuple[Say, ...]]:
    """Fold one measurement into what is known; what follows from it waits for the tick.

    A partition that is new counts from now on, also while its rate is not known.
    """
    measurement = event.measurement
    monitors, counts, said = take(group.monitors, event.now, measurement)
    if not counts:
        return replace(group, monitors=monitors), said
    topic, count = measurement.topic, measurement.count
    grown = group.term is not None and group.rates.count(topic) != count
    told = {p.partition: p.rate for p in measurement.partitions if p.rate is not None}
    rates = group.rates.told(topic, count, told)
    drift = group.drift.observe(rates, event.now)
    group = replace(group, monitors=monitors, rates=rates, measured_at=event.now, drift=drift)
    if grown:
        group = discovered(group, (TopicPartition(topic, number) for number in range(count)))
    return group, said
