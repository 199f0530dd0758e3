"""Which consumer writes which table: every topic that has partitions has one writer.

No part of a plan: a role costs little, and follows those who read. It stays where it is unless its
consumer leaves, or has more than its share of the tables.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from heapq import heapify, heappop, heappush

from binwright.core.commands import Sent, start_writing, stop_writing
from binwright.core.events import Action
from binwright.core.group import Group
from binwright.core.model import Slot
from binwright.core.ownership import Owned, Released, Starting


def candidates(group: Group, staying: Collection[Slot] | None = None) -> list[Slot]:
    """Return the consumers that may write, sorted: those that read, else any that is ready.

    Args:
        group: What is known.
        staying: The slots that a plan keeps; the others are about to be retired. None: no plan.
    """
    usable = group.usable()
    stay = usable if staying is None else [slot for slot in usable if slot in staying]
    return [slot for slot in stay if _reads(group, slot)] or stay or usable


def _reads(group: Group, slot: Slot) -> bool:
    return any(isinstance(group.partitions[p], Owned | Starting) for p in group.partitions.of(slot))


def wanted(group: Group, staying: Collection[Slot] | None = None) -> dict[str, Slot]:
    """Return who should write each table: topic -> slot; nothing while nobody is ready.

    A candidate keeps its tables up to an even share, in the order of their names. The others go to
    the candidate with the fewest, then to the lowest slot.
    """
    slots = candidates(group, staying)
    if not slots:
        return {}
    topics = sorted(group.partitions.topics)
    share = -(-len(topics) // len(slots))
    count = Counter(dict.fromkeys(slots, 0))
    chosen: dict[str, Slot] = {}
    for topic in topics:
        at = group.writers.get(topic)
        if isinstance(at, Owned | Starting) and at.slot in count and count[at.slot] < share:
            chosen[topic] = at.slot
            count[at.slot] += 1
    fewest = [(tables, slot) for slot, tables in count.items()]
    heapify(fewest)
    for topic in topics:
        if topic not in chosen:
            tables, slot = heappop(fewest)
            chosen[topic] = slot
            heappush(fewest, (tables + 1, slot))
    return chosen


def move_writers(group: Group, now: float, staying: Collection[Slot] | None = None) -> Sent:
    """Send every stop and start that brings the tables to the writers they should have."""
    chosen = wanted(group, staying)
    stops: dict[Slot, list[str]] = {}
    for topic, at in sorted(group.writers.items()):
        if isinstance(at, Owned) and _must_stop(group, topic, at.slot, chosen):
            stops.setdefault(at.slot, []).append(topic)
    starts: dict[Slot, list[str]] = {}
    for topic, slot in sorted(chosen.items()):
        if isinstance(group.writers.get(topic, Released()), Released):
            starts.setdefault(slot, []).append(topic)
    actions: list[Action] = []
    for slot, topics in sorted(stops.items()):
        group, sent = stop_writing(group, slot, topics, now)
        actions += sent
    for slot, topics in sorted(starts.items()):
        group, sent = start_writing(group, slot, topics, now)
        actions += sent
    return _forgotten(group), tuple(actions)


def _must_stop(group: Group, topic: str, slot: Slot, chosen: dict[str, Slot]) -> bool:
    """Whether another should write it, or its topic has left and all that was staged has landed."""
    if topic in chosen:
        return chosen[topic] != slot
    member = group.member(slot)
    report = member.writing.get(topic)
    left = topic not in group.partitions.topics
    return left and (member.leaving or (report is not None and not report.pending_bytes))


def _forgotten(group: Group) -> Group:
    """Drop tables whose topic has left, once nobody writes them."""
    left = [topic for topic in group.writers.free if topic not in group.partitions.topics]
    return replace(group, writers=group.writers.without(left)) if left else group
