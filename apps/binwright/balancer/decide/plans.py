"""What is asked of a plan, what a plan is, and which constraint forces each of its moves."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from binwright.balancer.decide.constraints import Constraint, UnmetConstraint, group_topics
from binwright.balancer.decide.loads import (
    BrokerLoad,
    LoadLimits,
    broker_loads,
    exceeds,
    replica_amounts,
)
from binwright.balancer.decide.model import (
    RESOURCES,
    Amounts,
    Broker,
    BrokerId,
    Cluster,
    Partition,
    Placement,
    Rack,
    Resource,
    current,
    most_in_a_rack,
    racks,
)
from binwright.protocol.errors import BalanceError
from binwright.protocol.model import TopicPartition

BOUND = 1.05
"""The largest use of a resource, in units of its mean."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Fewest bytes moved so that no broker's use of a resource is above `bound` x its mean.

    Where replicas are too large for that, the bound is the mean plus one replica; see
    `bounds.balance_limits`. `inf` asks for the hard constraints only.

    Attributes:
        bound: In units of the mean use, >= 1.
    """

    bound: float = BOUND

    def __post_init__(self) -> None:
        """Raise `BalanceError` for a bound below 1."""
        if not self.bound >= 1:
            raise BalanceError(f"the bound must be >= 1, got {self.bound}")


@dataclass(frozen=True, slots=True)
class FewestBrokers:
    """As few brokers as hold the load; with these, fewest bytes moved. No balance is asked for.

    Attributes:
        growth: Factor on each rate for which the brokers must be enough: 1.3 for 30 % more.
        spare: What brokers are added where those that are there are not enough; its id is not
            used. None: none is added.
    """

    growth: float = 1.0
    spare: Broker | None = None

    def __post_init__(self) -> None:
        """Raise `BalanceError` for a factor that is not finite and > 0."""
        if not 0 < self.growth < inf:
            raise BalanceError(f"growth must be finite and > 0, got {self.growth}")


Goal = Balance | FewestBrokers


@dataclass(frozen=True, slots=True)
class Reason:
    """The constraint that forces a change, at which broker and for which resource.

    Attributes:
        constraint: Which one.
        broker: Where the placement of before breaks it; None: it names no broker.
        resource: Of `capacity`, `balance` and `makes room`.
        use: Of that resource at that broker, in shares of its capacity, before.
        limit: Up to which it may be used.
    """

    constraint: Constraint
    broker: BrokerId | None = None
    resource: Resource | None = None
    use: float | None = None
    limit: float | None = None

    def __str__(self) -> str:
        """Write it for a person: `balance: disk of broker 3 at 81.0 %, limit 63.2 %`."""
        where = "" if self.broker is None else f" of broker {self.broker}"
        if self.use is not None and self.limit is not None:
            shares = f" at {100 * self.use:.1f} %, limit {100 * self.limit:.1f} %"
        else:
            shares = ""
        what = f"{self.resource}{where}{shares}" if self.resource else where.removeprefix(" of ")
        return f"{self.constraint}: {what}" if what else self.constraint


@dataclass(frozen=True, slots=True)
class ReplicaMove:
    """One partition whose replicas change.

    Attributes:
        partition: Which.
        before: Its brokers, the preferred leader first.
        after: The same, in the plan.
        bytes: What is copied: the partition's size today for each broker that is added.
        reasons: The constraints that force it, the strongest first; at least one.
    """

    partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    bytes: int
    reasons: tuple[Reason, ...]

    @property
    def leader_only(self) -> bool:
        """Whether only the order of the replicas changes, which copies nothing."""
        return set(self.before) == set(self.after)

    @property
    def added(self) -> tuple[BrokerId, ...]:
        """Return the brokers that copy the partition."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removed(self) -> tuple[BrokerId, ...]:
        """Return the brokers that give it up."""
        return tuple(broker for broker in self.before if broker not in self.after)


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """A placement that satisfies every hard constraint, and the way to it.

    Attributes:
        goal: What was asked for.
        placement: Of all partitions.
        moves: Leader moves first, then by partition.
        before: The load of each broker today; disk is what is expected, network of today's rates.
        after: The same with `placement`.
        relaxed: Factor on the balance bounds: 1 where they hold; larger where no placement within
            them was found; `inf` where only the hard constraints hold. 1 for fewest brokers.
        closed: Brokers that fewest brokers leaves empty.
        added: Brokers that have to be added first.
        proved: Whether no plan moves fewer bytes (fewest brokers: nor needs fewer brokers).
    """

    goal: Goal
    placement: Placement
    moves: tuple[ReplicaMove, ...]
    before: Mapping[BrokerId, BrokerLoad]
    after: Mapping[BrokerId, BrokerLoad]
    relaxed: float = 1.0
    closed: tuple[BrokerId, ...] = ()
    added: tuple[Broker, ...] = ()
    proved: bool = False

    @property
    def bytes(self) -> int:
        """Return what all moves copy."""
        return sum(move.bytes for move in self.moves)


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No placement that satisfies every hard constraint.

    Attributes:
        goal: What was asked for.
        conflicts: The constraints that make it so, at least one.
        proved: Whether there is none; otherwise none was found, and `conflicts` is what the best
            placement that was found breaks.
    """

    goal: Goal
    conflicts: tuple[UnmetConstraint, ...]
    proved: bool


PlanOutcome = PlacementPlan | Infeasible
"""What planning returns."""


def moves(
    cluster: Cluster,
    placement: Placement,
    limits: LoadLimits,
    closed: frozenset[BrokerId] = frozenset(),
) -> tuple[ReplicaMove, ...]:
    """Return the moves from today's placement, leader moves first, then by partition.

    Args:
        cluster: With the placement of today.
        placement: The one to reach.
        limits: What each broker may carry: they explain why something moves.
        closed: Brokers that are to be empty.
    """
    view = _Comparison.of(cluster, placement, limits, closed)
    changed = [each for each in cluster.partitions if placement[each.id] != each.replicas]
    moves = [_move(view, each, placement[each.id]) for each in changed]
    return tuple(sorted(moves, key=lambda move: (not move.leader_only, move.partition)))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What reasons are read from: both loads, limits, racks, groups."""

    cluster: Cluster
    brokers: Mapping[BrokerId, Broker]
    racks: Mapping[BrokerId, Rack]
    most: Mapping[str, int]  # replicas of a partition in one rack, by topic
    groups: Mapping[tuple[str, BrokerId], tuple[str, ...]]  # topics, before
    before: Mapping[BrokerId, BrokerLoad]
    after: Mapping[BrokerId, BrokerLoad]
    limits: LoadLimits
    closed: frozenset[BrokerId]

    @classmethod
    def of(
        cls, cluster: Cluster, placement: Placement, limits: LoadLimits, closed: frozenset[BrokerId]
    ) -> "_Comparison":
        """Compute it from a cluster and the placement to reach."""
        today = current(cluster)
        return cls(
            cluster,
            {broker.id: broker for broker in cluster.brokers},
            racks(cluster),
            {name: most_in_a_rack(cluster, topic) for name, topic in cluster.topics.items()},
            group_topics(cluster, today),
            broker_loads(cluster, today),
            broker_loads(cluster, placement),
            limits,
            closed,
        )


def _move(view: _Comparison, partition: Partition, after: tuple[BrokerId, ...]) -> ReplicaMove:
    added = len(set(after) - set(partition.replicas))
    reasons = dict.fromkeys(_reasons(view, partition, after))
    copied = partition.size_bytes * added
    return ReplicaMove(partition.id, partition.replicas, after, copied, tuple(reasons))


def _reasons(
    view: _Comparison, partition: Partition, after: tuple[BrokerId, ...]
) -> Iterator[Reason]:
    """Yield why each broker gives a replica up, then why one is added, then why another leads."""
    before = partition.replicas
    removed = [broker for broker in before if broker not in after]
    for broker in removed:
        yield from _why_removed(view, partition, broker)
    for broker in after:
        if broker in partition.pinned and broker not in before:
            yield Reason("pin", broker)
    if len(after) > len(before):
        yield Reason("replication")
    if after[0] != before[0] and before[0] not in removed:
        yield from _why_not_led(view, partition, before[0], after[0])


def _why_removed(view: _Comparison, partition: Partition, broker: BrokerId) -> Iterator[Reason]:
    """Yield the constraints that force a replica away; `makes room` where none is broken today."""
    reasons = [*_named(view, partition, broker)]
    leads = partition.replicas[0] == broker
    leader, follower = replica_amounts(view.cluster, partition, len(partition.replicas))
    needs = leader if leads else follower
    reasons += _overloads(view, broker, needs)
    yield from reasons or _makes_room(view, broker, needs)


def _named(view: _Comparison, partition: Partition, broker: BrokerId) -> Iterator[Reason]:
    """Yield the constraints about brokers, racks and topics that a replica breaks today."""
    topic, replicas = view.cluster.topics[partition.id.topic], partition.replicas
    match view.brokers[broker].state:
        case "down":
            yield Reason("broker down", broker)
        case "draining":
            yield Reason("broker draining", broker)
        case _ if broker in view.closed:
            yield Reason("broker closed", broker)
        case _:
            pass
    if broker in topic.excluded_brokers:
        yield Reason("exclusion", broker)
    if topic.group is not None and len(view.groups[topic.group, broker]) > 1:
        yield Reason("anti-colocation", broker)
    if len(replicas) > topic.replication:
        yield Reason("replication", broker)
    if Counter(map(view.racks.__getitem__, replicas))[view.racks[broker]] > view.most[topic.name]:
        yield Reason("rack spread", broker)


def _overloads(view: _Comparison, broker: BrokerId, needs: Amounts) -> Iterator[Reason]:
    """Yield the resources of a broker that are above a limit today and that a replica uses."""
    where = view.brokers[broker]
    if not where.usable or broker in view.closed:
        return
    room, load = view.cluster.room(where), view.before[broker].amounts
    for place, resource in enumerate(RESOURCES):
        limit = view.limits[broker][place]
        if needs[place] > 0 and exceeds(load[place], limit):
            of, is_hard = where.capacity[place], exceeds(load[place], room[place])
            broken: Constraint = "capacity" if is_hard else "balance"
            yield Reason(broken, broker, resource, load[place] / of, limit / of)


def _makes_room(view: _Comparison, broker: BrokerId, needs: Amounts) -> Iterator[Reason]:
    """Yield the resources of a broker that would be above a limit if the replica had stayed."""
    load, capacity = view.after[broker].amounts, view.brokers[broker].capacity
    exceeded = False
    for place, resource in enumerate(RESOURCES):
        limit, stayed = view.limits[broker][place], load[place] + needs[place]
        if needs[place] > 0 and exceeds(stayed, limit):
            exceeded = True
            of = capacity[place]
            yield Reason("makes room", broker, resource, stayed / of, limit / of)
    if not exceeded:
        yield Reason("makes room", broker)


def _why_not_led(
    view: _Comparison, partition: Partition, broker: BrokerId, leader: BrokerId
) -> Iterator[Reason]:
    """Yield why a broker that keeps its replica no longer leads, and another one does."""
    near = view.cluster.topics[partition.id.topic].reader_racks
    both = replica_amounts(view.cluster, partition, len(partition.replicas))
    more = Amounts(*(a - b for a, b in zip(*both, strict=True)))
    reasons = [*_overloads(view, broker, more)]
    if view.brokers[broker].rack not in near and view.brokers[leader].rack in near:
        reasons.append(Reason("near readers", leader))
    yield from reasons or _makes_room(view, broker, more)
