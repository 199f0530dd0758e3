"""Builders of rates and owners, and loads, for the tests of packings."""

from collections.abc import Mapping

from binwright.packing.score import lower_bound
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition


def p(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, number)


def rates_of(*rates: float) -> dict[TopicPartition, BytesPerSecond]:
    """Give the topic's first partitions these rates, bytes/s."""
    return {p(number): BytesPerSecond(rate) for number, rate in enumerate(rates)}


def owners_of(*slots: int | None) -> dict[TopicPartition, Slot]:
    """Give the topic's first partitions these owners; None: no owner."""
    return {p(number): Slot(slot) for number, slot in enumerate(slots) if slot is not None}


def loads(rates: Rates, target: Assignment) -> Mapping[Slot, float]:
    """Return each consumer's load, bytes/s, in the order of the slots."""
    slots = sorted(set(target.values()))
    return {slot: sum(rates[q] for q in target if target[q] == slot) for slot in slots}


def fewest_consumers(rates: Rates, capacity: BytesPerSecond) -> int:
    """A lower bound on the number of consumers."""
    return lower_bound(sorted(rate / capacity for rate in rates.values()))
