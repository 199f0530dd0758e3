"""Short words for what controllers know, and for what they hear."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from binwright.core.events import Heard
from binwright.core.group import Group, Held, Member, Place, Starting, Stopping, Tail, Unassigned
from binwright.core.messages import (
    Dead,
    Fence,
    Fenced,
    Goodbye,
    Hello,
    Inbound,
    Landed,
    Measurement,
    PartitionRate,
    Report,
    StartConsuming,
    Started,
    Stopped,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.rules import Rules

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
C = TopicPartition("clicks", 0)
S0, S1, S2 = Slot(0), Slot(1), Slot(2)
TERM, NOW = 50, 100.0
RULES = Rules(limit=BytesPerSecond(120), capacity=BytesPerSecond(100))

Offsets = Mapping[TopicPartition, int | None]


def measurement(topic: str, partitions: Iterable[PartitionRate], **more: Any) -> Measurement:
    """Say it as a monitor's only pass; the topic ends with the last partition, unless told."""
    found = tuple(partitions)
    count = max((p.partition + 1 for p in found), default=0)
    known = {"at_ms": 0, "monitor": "m", "number": 0, "interval_s": 1.0, "count": count, **more}
    return Measurement(topic=topic, partitions=found, **known)


def alive(hello: int, *, ready: bool = True, **more: Any) -> Member:
    return Member(hello=hello, ready=ready, heard_at=NOW, **more)


def dead(number: int, hello: int = 1) -> Member:
    return Member(hello=hello, dead=number, heard_at=NOW)


def group(
    members: Mapping[Slot, Member],
    places: Mapping[TopicPartition, Place] | None = None,
    **more: Any,
) -> Group:
    known: dict[str, Any] = {"rules": RULES, "term": TERM, "ticked_at": NOW, **more}
    return Group(controller="me", members=members, places=places or {}, **known)


def held(slot: Slot, epoch: int, *owed: Slot) -> Place:
    return Place(Held(slot, epoch), frozenset(owed))


def free(*owed: Slot) -> Place:
    return Place(Unassigned(), frozenset(owed))


def stopping(owners: Mapping[Slot, int], revision: int = 7, *owed: Slot) -> Place:
    at = Stopping(owners, revision, NOW, twice=len(owners) > 1)
    return Place(at, frozenset(owed))


def start(
    epoch: int, offsets: Offsets, fences: Iterable[Fence] = (), revision: int = 7
) -> StartConsuming:
    return StartConsuming(
        term=TERM, revision=revision, epoch=epoch, offsets=offsets, fences=tuple(fences)
    )


def starting(slot: Slot, command: StartConsuming, *owed: Slot) -> Place:
    return Place(Starting(slot, command.epoch, command, NOW), frozenset(owed))


def fence(slot: Slot, number: int) -> Fence:
    return Fence(slot=slot, number=number)


def heard(message: Inbound, offset: int = 90, now: float = NOW) -> Heard:
    return Heard(now, offset, message)


def hello(slot: Slot) -> Hello:
    return Hello(slot=slot, process="p", version="1")


def death(slot: Slot, term: int = TERM) -> Dead:
    return Dead(slot=slot, term=term)


def report(  # noqa: PLR0913 - a message has many fields
    slot: Slot,
    epoch: int,
    *,
    term: int = TERM,
    ready: bool = True,
    held: Iterable[TopicPartition] = (),
    opening: Iterable[TopicPartition] = (),
    ahead: Iterable[TopicPartition] = (),
    closing: Iterable[TopicPartition] = (),
    leaving: bool = False,
) -> Report:
    return Report(
        slot=slot,
        epoch=epoch,
        term=term,
        ready=ready,
        held=dict.fromkeys(held, 3),
        opening=tuple(opening),
        ahead=tuple(ahead),
        closing=tuple(closing),
        leaving=leaving,
    )


def stopped(
    slot: Slot,
    epoch: int,
    following: Offsets,
    revision: int = 7,
    unsettled: Iterable[TopicPartition] = (),
) -> Stopped:
    return Stopped(
        slot=slot,
        epoch=epoch,
        revision=revision,
        next=following,
        quit_ms=0,
        unsettled=tuple(unsettled),
    )


def has_landed(
    slot: Slot, epoch: int, landed: Mapping[TopicPartition, int], revision: int = 7
) -> Landed:
    return Landed(slot=slot, epoch=epoch, revision=revision, landed=landed)


def tailed(place: Place, *tails: tuple[Slot, int]) -> Place:
    """Return the place with last writes of these slots and epochs under way."""
    return replace(place, tails=frozenset(Tail(slot, epoch, 7) for slot, epoch in tails))


def started(
    slot: Slot,
    epoch: int,
    partitions: Iterable[TopicPartition],
    fences: Iterable[Fence] = (),
    revision: int = 7,
) -> Started:
    return Started(
        slot=slot,
        epoch=epoch,
        revision=revision,
        offsets=dict.fromkeys(partitions, 3),
        fences=tuple(fences),
    )


def goodbye(slot: Slot, epoch: int, landed: Mapping[TopicPartition, int]) -> Goodbye:
    return Goodbye(slot=slot, epoch=epoch, landed=landed)


def fenced(slot: Slot, number: int, topic: str = "orders") -> Fenced:
    return Fenced(slot=slot, number=number, topic=topic)
