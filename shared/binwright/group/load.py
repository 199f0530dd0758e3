"""What is measured of a group's partitions, and what that makes them need."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from immutables import Map

from binwright.group.rates import MeasuredRates, RateVolatility
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.monitors import Monitors, accept_measurement


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """Rates, backlogs and zones of partitions, as monitors measured them."""

    rates: MeasuredRates = field(default_factory=MeasuredRates)
    """With the number of each topic's partitions."""
    volatility: RateVolatility = field(default_factory=RateVolatility)
    measured_at: float | None = None
    monitors: Monitors = field(default_factory=Monitors)
    catch_up: Map[TopicPartition, BytesPerSecond] = field(default_factory=Map)  # beside rates
    known_catch_up: Map[TopicPartition, BytesPerSecond] = field(default_factory=Map)
    """As last published."""
    on_time: Map[str, float] = field(default_factory=Map)
    """Topic -> since when rows of one of its tables or more land in time."""
    readable_in: Map[str, Mapping[int, frozenset[str]]] = field(default_factory=Map)
    """Topic -> partition -> the zones in which it can be read; empty while that costs nothing."""

    def need(self, partition: TopicPartition) -> BytesPerSecond:
        """Return what a partition needs: its rate, 0 if not known, and what catches up, bytes/s."""
        rate = self.rates.get(partition, BytesPerSecond(0.0))
        if not self.catch_up:
            return rate
        return BytesPerSecond(rate + self.catch_up.get(partition, 0.0))

    def is_fresh(self, now: float, stale_s: float) -> bool:
        """Whether the last measurement is at most so many seconds old."""
        return self.measured_at is not None and now - self.measured_at <= stale_s

    def is_gone(self, partition: TopicPartition) -> bool:
        """Whether its topic was measured without it; False while the topic was not measured."""
        count = self.rates.count(partition.topic)
        return count is not None and partition.partition >= count

    def with_measurement(self, measurement: Measurement, now: float) -> tuple["MeasuredLoad", bool]:
        """Return the load after this, and whether it counts: see `accept_measurement`."""
        monitors, accepted, _ = accept_measurement(self.monitors, now, measurement)
        if not accepted:
            return replace(self, monitors=monitors), False
        measured = {p.partition: p.rate for p in measurement.partitions if p.rate is not None}
        rates = self.rates.with_topic(measurement.topic, measurement.count, measured)
        volatility = self.volatility.observe(rates, now)
        load = replace(self, monitors=monitors, rates=rates, measured_at=now, volatility=volatility)
        return load, True

    def with_zones(self, measurement: Measurement) -> "MeasuredLoad":
        """Return the load with the zones of the measured partitions."""
        topic, before = measurement.topic, self.readable_in.get(measurement.topic)
        if not (measurement.zones or before):
            return self
        known: Mapping[int, frozenset[str]] = before or {}
        measured = measurement.readable_in()  # of a large topic a part
        if measured.items() <= known.items():
            return self
        return replace(self, readable_in=self.readable_in.set(topic, {**known, **measured}))
