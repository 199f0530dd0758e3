"""Who reads what in a simulated group: as the policy assigned it, else as Kafka's assignors do."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from binwright.protocol.model import Assignment, Slot, TopicPartition

Assignor = Literal["range", "round-robin"]

TOPIC = "events"


class GroupAssignor:
    """The assignor in the group's leader."""

    def __init__(self, rule: Assignor, partitions: int) -> None:
        self._rule, self._partitions = rule, partitions
        self.plan: Assignment | None = None  # slot i: the i-th oldest member
        self.rates: Sequence[float] = (0.0,) * partitions

    def __call__(self, members: int) -> list[list[int]]:
        """Return the partitions of each member, the oldest first."""
        if self.plan is None:
            return _by_rule(self._rule, self._partitions, members)
        slots = max(members, 1 + max(self.plan.values()))
        planned: list[list[int]] = [[] for _ in range(slots)]
        for partition, slot in sorted(self.plan.items()):
            planned[slot].append(partition.partition)
        # Some of the planned replicas may not have joined yet: the others take their partitions.
        joined, late = planned[:members], planned[members:]
        for numbers in sorted(late, key=self._load, reverse=True):
            min(joined, key=self._load).extend(numbers)
        return joined

    def _load(self, numbers: Sequence[int]) -> float:
        return sum(self.rates[number] for number in numbers)


def _by_rule(rule: Assignor, partitions: int, members: int) -> list[list[int]]:
    every = list(range(partitions))
    if rule == "round-robin":
        return [every[member::members] for member in range(members)]
    each, more = divmod(partitions, members)
    starts = [member * each + min(member, more) for member in range(members + 1)]
    return [every[starts[member] : starts[member + 1]] for member in range(members)]


def partition(number: int) -> TopicPartition:
    """Return the name of a partition."""
    return TopicPartition(TOPIC, number)


def sticky_assignment(
    owners: Mapping[int, Slot], partitions: int, slots: Sequence[Slot], most: int | None = None
) -> dict[int, Slot]:
    """Return an assignment in which owners keep what they have, up to their share.

    What is left goes to the slots with the fewest: few partitions move, as under Kafka's sticky
    assignor.

    Args:
        owners: Of the partitions so far, by index.
        partitions: Their number.
        slots: The consumers, at least one.
        most: Partitions that an owner keeps; None: as many as any other, or one more.
    """
    least, more = divmod(partitions, len(slots))
    if len(owners) == partitions and _is_even(owners, slots):
        return dict(sorted(owners.items()))  # which is what the rest would give
    kept: dict[int, Slot] = {}
    count = dict.fromkeys(slots, 0)
    for index in sorted(owners):
        slot = owners[index]
        if slot not in count or (most is None and count[slot] >= least + (more > 0)):
            continue
        more -= count[slot] == least
        kept[index] = slot
        count[slot] += 1
    for index in range(partitions):
        if index not in kept:
            slot = min(slots, key=lambda slot: (count[slot], slot))
            kept[index] = slot
            count[slot] += 1
    return dict(sorted(kept.items()))


def _is_even(owners: Mapping[int, Slot], slots: Sequence[Slot]) -> bool:
    """Return whether these slots, and no other ones, have equal numbers to within one."""
    shares = Counter(owners.values())
    return shares.keys() == set(slots) and max(shares.values()) - min(shares.values()) <= 1
