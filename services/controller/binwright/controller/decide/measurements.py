"""Applies measurements: they change the rates and the set of known partitions."""

from dataclasses import replace

from binwright.controller.decide.events import Log, Measured
from binwright.controller.decide.group import Group, add_partitions
from binwright.protocol.model import TopicPartition
from binwright.protocol.monitors import accept_measurement


def apply_measurement(group: Group, event: Measured) -> tuple[Group, tuple[Log, ...]]:
    """Apply one measurement; what follows from it is decided at the next tick.

    A new partition is added at once, even while its rate is unknown.
    """
    measurement = event.measurement
    monitors, accepted, logs = accept_measurement(group.monitors, event.now, measurement)
    if not accepted:
        return replace(group, monitors=monitors), logs
    topic, count = measurement.topic, measurement.count
    count_changed = group.term is not None and group.rates.count(topic) != count
    measured = {p.partition: p.rate for p in measurement.partitions if p.rate is not None}
    rates = group.rates.with_topic(topic, count, measured)
    volatility = group.volatility.observe(rates, event.now)
    group = replace(
        group, monitors=monitors, rates=rates, measured_at=event.now, volatility=volatility
    )
    if count_changed:
        group = add_partitions(group, (TopicPartition(topic, number) for number in range(count)))
    return group, logs
