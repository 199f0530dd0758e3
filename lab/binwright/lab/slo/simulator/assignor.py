"""Who reads what: as the policy assigned it, else as Kafka's assignors do."""

from collections.abc import Sequence

from binwright.lab.slo.simulator.settings import Assignor
from binwright.protocol.model import Assignment, TopicPartition

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
        every: list[list[int]] = [[] for _ in range(slots)]
        for partition, slot in sorted(self.plan.items()):
            every[slot].append(partition.partition)
        # Some of the planned replicas may not have joined yet: the others take their partitions.
        given, late = every[:members], every[members:]
        for numbers in sorted(late, key=self._load, reverse=True):
            min(given, key=self._load).extend(numbers)
        return given

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
