"""Plans for brokers: proposed by a controller, approved by a person, carried out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import Number, Offset, Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersProposed:
    """A plan for brokers is shown; the record's offset is its number."""

    group: str  # whose controller proposes it, and may carry it out
    reasons: tuple[str, ...]  # the lines that the cluster crosses
    bytes: Number  # that it copies
    before: Mapping[Partition, tuple[Number, ...]]  # of what it moves: replicas, the first leads
    after: Mapping[Partition, tuple[Number, ...]]  # the same in the plan
    waits: bool  # for an approval (mode approve); else it is carried out at once (mode act)
    kind: Literal["brokers-proposed/1"] = "brokers-proposed/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersApproved:
    """A person approves exactly this plan for brokers."""

    plan: Offset  # its number
    by: str  # a name for people; it proves nothing
    kind: Literal["brokers-approved/1"] = "brokers-approved/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesStarted:
    """A plan for brokers goes ahead, and these bytes count against the budget for an hour."""

    plan: Offset  # its number
    bytes: Number  # of the copies that start now; 0: the plan itself starts
    at_ms: Number  # wall clock, ms since 1970
    kind: Literal["copies-started/1"] = "copies-started/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersEnded:
    """A plan for brokers is over; what was being copied is taken back."""

    plan: Offset  # its number
    done: bool  # whether all is in place; else it is withdrawn
    reason: str  # for people
    kind: Literal["brokers-ended/1"] = "brokers-ended/1"


BrokerPlanRecord = BrokersProposed | BrokersApproved | CopiesStarted | BrokersEnded
"""Records of the topic of plans for brokers."""
