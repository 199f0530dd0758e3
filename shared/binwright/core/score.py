"""What a new assignment costs."""

from collections.abc import Iterator

from binwright.core.model import Assignment, BytesPerSecond, Rates, TopicPartition


def moved(current: Assignment, target: Assignment) -> Iterator[TopicPartition]:
    """Yield, in order, the partitions that had an owner before and have another now."""
    return (p for p in sorted(current.keys() & target.keys()) if current[p] != target[p])


def rscore(
    rates: Rates, capacity: BytesPerSecond, current: Assignment, target: Assignment
) -> float:
    """Return the speed that changes hands, in units of a consumer's capacity (eq. 11).

    Args:
        rates: Bytes/s now; holds every partition that moves.
        capacity: What one consumer is packed to, bytes/s, > 0.
        current: Who reads what before.
        target: Who reads what afterwards.
    """
    return sum(rates[p] for p in moved(current, target)) / capacity
