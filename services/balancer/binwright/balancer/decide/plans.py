"""What is asked of a plan, and what a plan is."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal

from binwright.balancer.decide.amounts import BrokerId, Resource
from binwright.balancer.decide.cluster import Broker, Placement
from binwright.balancer.decide.loads import BrokerLoad
from binwright.protocol.errors import BalanceError
from binwright.protocol.model import TopicPartition

BOUND = 1.05
"""The largest use of a resource, in units of its mean."""

Constraint = Literal[
    "replication",  # as many replicas as the topic asks for
    "distinct brokers",  # replicas of a partition are on different brokers
    "broker down",  # holds nothing
    "broker draining",  # holds nothing
    "broker closed",  # the goal is fewest brokers, and this one is not needed
    "pin",  # a pinned broker holds a replica
    "exclusion",  # an excluded topic stays, an excluded broker holds none of it
    "rack spread",
    "anti-colocation",
    "capacity",  # of a resource, less the headroom
    "balance",  # use of a resource above the bound over its mean
    "makes room",  # moved so that another replica fits
]


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
class Move:
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
class Plan:
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
    moves: tuple[Move, ...]
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
class Conflict:
    """A constraint that cannot be satisfied, or was not in the best placement that was found."""

    constraint: Constraint
    detail: str  # what asks for how much, and what there is

    def __str__(self) -> str:
        """Write it for a person."""
        return f"{self.constraint}: {self.detail}"


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
    conflicts: tuple[Conflict, ...]
    proved: bool


Outcome = Plan | Infeasible
"""What planning returns."""
