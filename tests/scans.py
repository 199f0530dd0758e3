"""The paper's twelve algorithms as slow scans over all consumers."""

from collections.abc import Sequence
from itertools import count

from binwright.packing.any_fit import Shuffled
from binwright.protocol.model import Assignment, Rates, Slot, TopicPartition


class Scan:
    """An assignment under construction; each choice scans all consumers by index."""

    def __init__(self, rule: str, rates: Rates, capacity: float, current: Assignment) -> None:
        self.rule, self.rates, self.capacity, self.current = rule, rates, capacity, current
        self.bins: dict[Slot, list[TopicPartition]] = {}

    def load(self, slot: Slot) -> float:
        return sum(self.rates[q] for q in self.bins[slot])

    def fits(self, slot: Slot, partition: TopicPartition) -> bool:
        return not self.bins[slot] or self.load(slot) + self.rates[partition] <= self.capacity

    def pick(self, partition: TopicPartition) -> Slot | None:
        fitting = [slot for slot in sorted(self.bins) if self.fits(slot, partition)]
        match self.rule:
            case "first":
                return fitting[0] if fitting else None
            case "best":
                return max(fitting, key=self.load, default=None)  # the first of the fullest
            case _:
                return min(fitting, key=self.load, default=None)

    def open(self, partition: TopicPartition) -> Slot:
        """Eq. 14: the current consumer unless it is open, else the lowest index that is not."""
        slot = self.current.get(partition)
        if slot is None or slot in self.bins:
            slot = next(Slot(n) for n in count() if n not in self.bins)
        self.bins[slot] = []
        return slot

    def put(self, partition: TopicPartition) -> None:
        slot = self.pick(partition)
        self.bins[self.open(partition) if slot is None else slot].append(partition)

    def target(self) -> dict[TopicPartition, Slot]:
        return {q: slot for slot, owned in self.bins.items() for q in owned}


RULES = {"f": "first", "w": "worst", "b": "best"}


def by_scanning(
    name: str, rates: Rates, capacity: float, current: Assignment, seed: int = 0
) -> dict[TopicPartition, Slot]:
    if name.startswith("m"):
        return _modified(name, rates, capacity, current)
    order = _descending(rates, sorted(rates)) if name.endswith("d") else Shuffled(seed)(rates)
    group = Scan(RULES.get(name[0], "next"), rates, capacity, current)
    if name.startswith("n"):
        return _next(group, order)
    for partition in order:
        group.put(partition)
    return group.target()


def _descending(rates: Rates, among: Sequence[TopicPartition]) -> list[TopicPartition]:
    return sorted(sorted(among), key=lambda q: rates[q], reverse=True)


def _next(group: Scan, order: Sequence[TopicPartition]) -> dict[TopicPartition, Slot]:
    last = Slot(0)
    group.bins[last] = []
    for partition in order:
        if not group.fits(last, partition) and group.load(last) != 0:
            last = group.open(partition)
        group.bins[last].append(partition)
    return group.target()


def _modified(
    name: str, rates: Rates, capacity: float, current: Assignment
) -> dict[TopicPartition, Slot]:
    group = Scan("best" if name.startswith("mb") else "worst", rates, capacity, current)
    descending = _descending(rates, list(rates))
    owned = {
        slot: [q for q in descending if current.get(q) == slot]
        for slot in sorted(set(current.values()))
    }
    measure = max if name.endswith("p") else sum
    unassigned = [q for q in descending if q not in current]
    consumers = [slot for slot in owned if owned[slot]]
    consumers.sort(key=lambda slot: measure(rates[q] for q in owned[slot]), reverse=True)
    for consumer in consumers:
        left = owned[consumer]
        while left and (slot := group.pick(left[-1])) is not None:
            group.bins[slot].append(left.pop())
        if left:
            group.bins[consumer] = []
        while left and group.fits(consumer, left[0]):
            group.bins[consumer].append(left.pop(0))
        unassigned += left
    for partition in _descending(rates, unassigned):
        group.put(partition)
    return group.target()
