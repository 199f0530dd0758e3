"""The members of a Kafka consumer group, as an assignor or a controller sees them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from binwright.protocol.model import TopicPartition
from binwright.protocol.patterns import compile_pattern

COOPERATIVE, EAGER = "binwright", "binwright-eager"
"""Names of the assignors for Java, as in `PlannedAssignor.java`, and for aiokafka: not the same, as
an eager and a cooperative member cannot share a group. The one in the broker, `LoadAssignor.java`,
is named as that for Java.
"""
STABLE = "Stable"
"""The state of a group that is not within a rebalance."""
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member."""

    topics: frozenset[str]  # that it subscribes to
    owned: frozenset[TopicPartition] = frozenset()  # that it says it reads
    generation: int = -1  # of the group, in which it got them; -1: it does not say
    instance: str | None = None  # its `group.instance.id`; None: it has none
    client: str = ""  # its `client.id`; empty: not known
    host: str = ""  # its address as its coordinator sees it; empty: not known


Members = Mapping[str, GroupMember]
"""Member id -> member."""
Owners = Mapping[TopicPartition, str]
"""Partition -> member id."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A consumer group."""

    state: str  # by Kafka's names: "Stable", "PreparingRebalance", "Empty", ...
    protocol: str  # the assignor's name; empty while there is none
    members: Members = field(default_factory=dict)
    type: Literal["classic", "consumer"] = "classic"  # consumer: the broker assigns (KIP-848)


def with_matches(members: Members, patterns: Mapping[str, str]) -> dict[str, GroupMember]:
    """Return members with the topics that they subscribe to by a pattern.

    Brokers resolve patterns, and do not say to what: it is what matches of the topics that any
    member names or reads.

    Args:
        members: Of a group; those that have a pattern name no topics.
        patterns: Member id -> a regular expression, by RE2 as the broker reads it. One that is too
            large for `compile_pattern` counts as matching all.
    """
    every = {topic for one in members.values() for topic in one.topics}
    every |= {partition.topic for one in members.values() for partition in one.owned}
    found = dict(members)
    for name, text in patterns.items():
        try:
            matches = frozenset(filter(compile_pattern(text).matches, every))
        except ValueError:
            matches = frozenset(every)
        reads = {partition.topic for partition in members[name].owned}
        found[name] = replace(members[name], topics=members[name].topics | matches | reads)
    return found


def in_order(members: Members) -> list[str]:
    """Return the member ids in the group's order: by name, `pod-2` before `pod-10`.

    The name is the `group.instance.id`, else the member id; a number of up to 9 digits at its end
    counts as a number.
    """
    return sorted(members, key=lambda one: (_natural(members[one].instance or one), one))


def are_static(members: Members) -> bool:
    """Return whether every member has a `group.instance.id`."""
    return all(member.instance for member in members.values())


def owners(members: Members) -> dict[TopicPartition, str]:
    """Return who reads each partition.

    If several members claim one, the latest generation counts; two of the same: neither reads it.
    """
    readers: dict[TopicPartition, str] = {}
    generations: dict[TopicPartition, int] = {}
    for name in in_order(members):
        member = members[name]
        for partition in member.owned:
            if partition not in generations or member.generation > generations[partition]:
                readers[partition], generations[partition] = name, member.generation
            elif member.generation == generations[partition]:
                readers.pop(partition, None)
    return readers


def subscribers(members: Members, order: Iterable[str]) -> dict[str, list[str]]:
    """Return the members that subscribe to each topic, in this order."""
    by_topic: dict[str, list[str]] = {}
    for name in order:
        for topic in members[name].topics:
            by_topic.setdefault(topic, []).append(name)
    return by_topic


def number_of(name: str) -> int | None:
    """Return the number at the end of a name; None: there is none."""
    number = _natural(name)[1]
    return None if number < 0 else number


def _natural(name: str) -> tuple[str, int]:
    match = _NUMBERED.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, -1)
