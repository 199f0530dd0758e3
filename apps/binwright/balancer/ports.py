"""Kafka's brokers: which replicas they hold, how they are configured, and how replicas move."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from binwright.protocol.model import TopicPartition

Replicas = tuple[int, ...]
"""The brokers that hold a partition; the first is its preferred leader."""

Targets = Mapping[TopicPartition, Replicas]
"""The replicas of each partition of a plan, in the order in which they are to move."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Where one partition is now."""

    leader: int | None  # None: it has none
    replicas: Replicas  # while it is reassigned: those that are added and removed, too
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """What Kafka still does to one partition."""

    replicas: Replicas  # all, while it is under way
    adding: Replicas
    removing: Replicas

    @property
    def target(self) -> Replicas:
        """Return the replicas that remain."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """All partitions of a cluster at one time."""

    racks: Mapping[int, str | None]  # of each broker that is alive
    partitions: Mapping[TopicPartition, PartitionState]
    reassignments: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)

    def placed(self, partition: TopicPartition) -> Replicas:
        """Return where a partition is, or will be once what is under way has ended."""
        under_way = self.reassignments.get(partition)
        return self.partitions[partition].replicas if under_way is None else under_way.target


@dataclass(frozen=True, slots=True)
class Disk:
    """The log directories of one broker."""

    total_bytes: int | None  # None: the broker is too old to return it
    usable_bytes: int | None
    sizes: Mapping[TopicPartition, int]  # bytes of each replica on it
    dead: tuple[str, ...] = ()  # directories that cannot be read: what they held is missing


ConfigKind = Literal["topic", "broker"]


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """What has a configuration; the broker "" is the default of all brokers."""

    kind: ConfigKind
    name: str
    is_static: bool = False  # of a broker: from its own file, which only a restart changes


Configs = Mapping[ConfigResource, Mapping[str, str]]
"""The values of each resource, by Kafka's names; a value that is not set is left out."""
ConfigChanges = Mapping[ConfigResource, Mapping[str, str | None]]
"""Values to set, and None for those to remove."""


class Brokers(Protocol):
    """Reads a cluster and moves its replicas; every method may raise `BrokerUnavailable`."""

    async def state(self) -> ClusterState:
        """Return brokers, replicas and reassignments under way, of all topics."""

    async def disks(self) -> Mapping[int, Disk]:
        """Return the log directories of each broker that is alive and replies."""

    async def configs(
        self, resources: Collection[ConfigResource], names: Collection[str]
    ) -> Configs:
        """Return the values of these names, as far as they are set or have a default.

        A broker other than "" is asked itself, and returns no dynamic default of all brokers; what
        its file has is of a resource of its own, also where another value hides it. One that is
        down is left out, as is a topic that does not exist.
        """

    async def set_configs(self, changes: ConfigChanges) -> None:
        """Set values, or remove those that are None; all others stay.

        Raises:
            ReassignmentRefused: Kafka refuses a value, or this user may not set it.
        """

    async def reassign(self, targets: Mapping[TopicPartition, Replicas | None]) -> None:
        """Start reassignments; None cancels the one under way, if there is one.

        Raises:
            ReassignmentRefused: Kafka refuses one of them; the others may have started.
        """

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> None:
        """Make the first replica of each the leader, where it is in sync; others stay as they are.

        Raises:
            ReassignmentRefused: This user may not.
        """


class Probe(Protocol):
    """Measures how long producers wait."""

    async def measure(self) -> float:
        """Return the longest time that a broker took to confirm a record, s."""
