"""What a cluster is: resources, brokers, topics, partitions, and who holds what today."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Literal, NamedTuple, NewType, Self

from binwright.protocol.errors import BalanceError
from binwright.protocol.model import BytesPerSecond, TopicPartition

BrokerId = NewType("BrokerId", int)
"""A broker's `node.id`."""

Resource = Literal["disk", "network in", "network out", "cpu"]

RESOURCES: Final[tuple[Resource, ...]] = ("disk", "network in", "network out", "cpu")
"""In the order of the fields of `Amounts`."""

NETWORK: Final[tuple[Resource, ...]] = ("network in", "network out")


class Amounts(NamedTuple):
    """One number for each resource: a capacity, a load, or a share, as the name of it tells.

    Attributes:
        disk: Bytes.
        network_in: Bytes/s that are written to leaders and fetched by followers here.
        network_out: Bytes/s that followers elsewhere and consumers fetch from leaders here.
        cpu: Cores.
    """

    disk: float
    network_in: float
    network_out: float
    cpu: float

    def of(self, resource: Resource) -> float:
        """Return the number of one resource."""
        return self[RESOURCES.index(resource)]

    def plus(self, other: "Amounts") -> "Amounts":
        """Return the sums."""
        return Amounts(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Amounts(0.0, 0.0, 0.0, 0.0)
UNLIMITED = Amounts(inf, inf, inf, inf)
"""A capacity that is not known, or does not matter: no constraint, and no balance either."""


BrokerState = Literal["up", "new", "draining", "down"]
"""`new` is up and just joined; `draining` is up and is to hold nothing; `down` serves nothing."""

Placement = Mapping[TopicPartition, tuple[BrokerId, ...]]
"""The brokers that hold each partition's replicas, the preferred leader first; never changed."""

IDLE = BytesPerSecond(0.0)
HEADROOM = Amounts(0.2, 0.2, 0.2, 0.2)
"""The shares of capacity that a plan leaves free."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker.

    Attributes:
        id: Its `node.id`.
        capacity: Disk in bytes, network in bytes/s, CPU in cores; `inf` where it has no limit.
        rack: Its `broker.rack`; a broker without one is a rack of its own.
        state: Brokers that are `draining` or `down` may hold nothing in a plan.
    """

    id: BrokerId
    capacity: Amounts
    rack: str | None = None
    state: BrokerState = "up"

    @property
    def usable(self) -> bool:
        """Whether replicas may be placed here."""
        return self.state in ("up", "new")


@dataclass(frozen=True, slots=True)
class Topic:
    """What is asked for each partition of a topic.

    Attributes:
        name: Of the topic.
        replication: Replicas that each partition is to have; those it has may be fewer or more.
        retention_s: `retention.ms` in seconds; None: no limit.
        retention_bytes: `retention.bytes`, of each partition; None: no limit.
        rack_spread: Replicas of a partition are in as many racks as there are, evenly.
        reader_racks: Where its consumers run, if they read from leaders: these go there as far as
            limits allow; empty: not known.
        group: Topics of one group share no broker; None: this one is in no group.
        excluded: Its partitions stay as they are; their load counts.
        excluded_brokers: Brokers that may hold no replica of it.
        compacted: `cleanup.policy=compact`: without retention it stays as large as it is.
    """

    name: str
    replication: int
    retention_s: float | None = None
    retention_bytes: int | None = None
    rack_spread: bool = True
    reader_racks: frozenset[str] = frozenset()
    group: str | None = None
    excluded: bool = False
    excluded_brokers: frozenset[BrokerId] = frozenset()
    compacted: bool = False

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is ever deleted: what is written stays."""
        return not self.compacted and self.retention_s is None and self.retention_bytes is None


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its load, and where its replicas are today.

    Attributes:
        id: Topic and number.
        rate: Bytes/s written to its leader.
        size_bytes: What one replica holds today: a replica that moves copies as much.
        replicas: Brokers, the preferred leader first.
        read: Bytes/s that consumers fetch from its leader.
        pinned: Brokers that must hold one of its replicas.
        kept_rate: Largest mean over the retention, bytes/s; None: `rate`.
    """

    id: TopicPartition
    rate: BytesPerSecond
    size_bytes: int
    replicas: tuple[BrokerId, ...]
    read: BytesPerSecond = IDLE
    pinned: frozenset[BrokerId] = frozenset()
    kept_rate: BytesPerSecond | None = None

    @property
    def disk_rate(self) -> BytesPerSecond:
        """Bytes/s that its disk fills with."""
        return self.rate if self.kept_rate is None else self.kept_rate

    def grown(self, factor: float, size_bytes: int | None = None) -> Self:
        """Return it with each rate times a factor, and with another size, if one is given."""
        kept = self.kept_rate
        return replace(
            self,
            rate=BytesPerSecond(factor * self.rate),
            read=BytesPerSecond(factor * self.read),
            kept_rate=None if kept is None else BytesPerSecond(factor * kept),
            size_bytes=self.size_bytes if size_bytes is None else size_bytes,
        )

    def expected_bytes(self, topic: Topic) -> float:
        """Return what one replica will hold: its mean rate for as long as retention keeps it.

        Without any retention that is what it holds today; see `forecast` for what is to come.
        """
        by_time = inf if topic.retention_s is None else self.disk_rate * topic.retention_s
        by_size = inf if topic.retention_bytes is None else float(topic.retention_bytes)
        expected = min(by_time, by_size)
        return float(self.size_bytes) if expected == inf else expected

    def disk_bytes(self, topic: Topic) -> float:
        """Return what one replica needs: what it holds today or what it will hold, the larger."""
        return max(float(self.size_bytes), self.expected_bytes(topic))


@dataclass(frozen=True, slots=True)
class CpuCosts:
    """CPU-seconds of a broker per byte that comes in and goes out; 0: CPU is not considered."""

    per_byte_in: float = 0.0
    per_byte_out: float = 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as it is.

    Attributes:
        brokers: In any order; every broker that a replica names, also those that are down.
        topics: By name; one for every partition.
        partitions: In any order.
        headroom: The share of each capacity that a plan leaves free, in [0, 1).
        cpu: What bytes cost.

    Raises:
        BalanceError: Something is named twice, not at all, or out of range; lists every fault.
    """

    brokers: tuple[Broker, ...]
    topics: Mapping[str, Topic]
    partitions: tuple[Partition, ...]
    headroom: Amounts = HEADROOM
    cpu: CpuCosts = field(default_factory=CpuCosts)

    def __post_init__(self) -> None:
        """Raise if the parts do not fit together."""
        if faults := list(_faults(self)):
            raise BalanceError("the cluster cannot be planned for: " + "; ".join(faults))

    def grown(self, factor: float) -> Self:
        """Return the cluster with each rate times a factor; sizes of today stay."""
        return replace(self, partitions=tuple(each.grown(factor) for each in self.partitions))

    def planned_replicas(self, partition: Partition) -> int:
        """Return how many replicas a partition is to have; in an excluded topic, as many as now."""
        topic = self.topics[partition.id.topic]
        return len(partition.replicas) if topic.excluded else topic.replication

    def room(self, broker: Broker) -> Amounts:
        """Return what a plan may fill of a broker: its capacity less the headroom, or nothing."""
        if not broker.usable:
            return NOTHING
        pairs = zip(broker.capacity, self.headroom, strict=True)
        return Amounts(*(capacity * (1 - share) for capacity, share in pairs))


def current(cluster: Cluster) -> Placement:
    """Return the placement of today."""
    return {each.id: each.replicas for each in cluster.partitions}


def _faults(cluster: Cluster) -> Iterator[str]:
    """Yield what is wrong with a cluster, each in a few words."""
    ids = [broker.id for broker in cluster.brokers]
    if len(set(ids)) < len(ids):
        yield f"brokers named twice: {sorted({i for i in ids if ids.count(i) > 1})}"
    for broker in cluster.brokers:
        if not all(each >= 0 for each in broker.capacity):
            yield f"broker {broker.id}: capacities must be >= 0, got {tuple(broker.capacity)}"
    if not all(0 <= share < 1 for share in cluster.headroom):
        yield f"headroom must be in [0, 1), got {tuple(cluster.headroom)}"
    if len({each.id for each in cluster.partitions}) < len(cluster.partitions):
        yield "a partition is named twice"
    known = set(ids)
    for each in cluster.partitions:
        yield from _partition_faults(each, cluster.topics, known)


def _partition_faults(
    partition: Partition, topics: Mapping[str, Topic], known: set[BrokerId]
) -> Iterator[str]:
    """Yield what is wrong with one partition."""
    if (topic := topics.get(partition.id.topic)) is None:
        yield f"{partition.id}: its topic is not described"
    elif topic.replication < 1:
        yield f"{partition.id}: replication must be >= 1, got {topic.replication}"
    numbers = (partition.rate, partition.disk_rate, partition.read, partition.size_bytes)
    if not all(0 <= number < inf for number in numbers):
        yield f"{partition.id}: rates and size must be finite and >= 0, got {numbers}"
    if not partition.replicas or len(set(partition.replicas)) < len(partition.replicas):
        yield f"{partition.id}: replicas must be distinct brokers, got {partition.replicas}"
    if unknown := {*partition.replicas, *partition.pinned} - known:
        yield f"{partition.id}: unknown brokers {sorted(unknown)}"


Rack = tuple[str, int]
"""A rack by its name, or a broker without one by its id."""


def rack_of(broker: Broker) -> Rack:
    """Return the rack of a broker; without one it is a rack of its own."""
    return ("", broker.id) if broker.rack is None else (broker.rack, -1)


def may_hold(broker: Broker, topic: Topic) -> bool:
    """Return whether a broker may hold replicas of a topic at all."""
    return broker.usable and broker.id not in topic.excluded_brokers


def most_in_a_rack(cluster: Cluster, topic: Topic) -> int:
    """Return the most replicas of one partition that a rack may hold: the least that is possible.

    Three replicas in three racks: 1. In two racks: 2. Racks of few brokers hold fewer, and the
    others more. Without rack spread, or where there are too few brokers: all of them.
    """
    sizes = Counter(rack_of(broker) for broker in cluster.brokers if may_hold(broker, topic))
    if topic.rack_spread and sum(sizes.values()) >= topic.replication:
        return _even(sizes.values(), topic.replication)
    return topic.replication


def _even(sizes: Iterable[int], replicas: int) -> int:
    """Return the least m so that min(size, m) of all racks are enough for the replicas."""
    return next(m for m in range(1, replicas + 1) if sum(min(s, m) for s in sizes) >= replicas)


def racks(cluster: Cluster) -> dict[BrokerId, Rack]:
    """Return the rack of each broker."""
    return {broker.id: rack_of(broker) for broker in cluster.brokers}
