"""Which consumer writes which table: every topic that has partitions has one writer.

Roles are not part of a plan: they are cheap and follow the readers. A role stays with its consumer
unless that is draining, reads nothing, or has more than its share of the tables.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from heapq import heapify, heappop, heappush

from binwright.controller.decide.events import Action
from binwright.controller.decide.group import Group, Update
from binwright.controller.decide.moves.commands import start_writing, stop_writing
from binwright.controller.decide.ownership import Owned, Released, Starting
from binwright.protocol.model import Slot


def candidates(group: Group, staying: Collection[Slot] | None = None) -> list[Slot]:
    """Return the consumers that may write, sorted: ready ones that read, else all ready ones.

    Args:
        group: The group.
        staying: The slots that the plan keeps; other ones are about to be retired. None: no plan.
    """
    usable = group.usable()
    stay = usable if staying is None else [slot for slot in usable if slot in staying]
    return [slot for slot in stay if _reads(group, slot)] or stay or usable


def _reads(group: Group, slot: Slot) -> bool:
    return any(
        isinstance(group.partitions[p], Owned | Starting) for p in group.partitions.owned_by(slot)
    )


def wanted_writers(group: Group, staying: Collection[Slot] | None = None) -> dict[str, Slot]:
    """Return the wanted writer of each table, topic -> slot; empty while no consumer is ready.

    A candidate keeps its tables up to an even share, in the order of their names. The other tables
    go to the candidate with the fewest; between equals, to the lowest slot.
    """
    slots = candidates(group, staying)
    if not slots:
        return {}
    topics = sorted(group.partitions.topics)
    share = -(-len(topics) // len(slots))
    count = Counter(dict.fromkeys(slots, 0))
    wanted: dict[str, Slot] = {}
    for topic in topics:
        at = group.writers.get(topic)
        if isinstance(at, Owned | Starting) and at.slot in count and count[at.slot] < share:
            wanted[topic] = at.slot
            count[at.slot] += 1
    fewest = [(tables, slot) for slot, tables in count.items()]
    heapify(fewest)
    for topic in topics:
        if topic not in wanted:
            tables, slot = heappop(fewest)
            wanted[topic] = slot
            heappush(fewest, (tables + 1, slot))
    return wanted


def move_writers(group: Group, now: float, staying: Collection[Slot] | None = None) -> Update:
    """Send every stop and start that brings the tables to their wanted writers."""
    wanted = wanted_writers(group, staying)
    stops: dict[Slot, list[str]] = {}
    for topic, at in sorted(group.writers.items()):
        if isinstance(at, Owned) and _must_stop(group, topic, at.slot, wanted):
            stops.setdefault(at.slot, []).append(topic)
    starts: dict[Slot, list[str]] = {}
    for topic, slot in sorted(wanted.items()):
        if isinstance(group.writers.get(topic, Released()), Released):
            starts.setdefault(slot, []).append(topic)
    actions: list[Action] = []
    for slot, topics in sorted(stops.items()):
        group, sent = stop_writing(group, slot, topics, now)
        actions += sent
    for slot, topics in sorted(starts.items()):
        group, sent = start_writing(group, slot, topics, now)
        actions += sent
    return _forget_gone_topics(group), tuple(actions)


def _must_stop(group: Group, topic: str, slot: Slot, wanted: dict[str, Slot]) -> bool:
    """Whether another slot should write it, or its topic is gone and all staged data has landed."""
    if topic in wanted:
        return wanted[topic] != slot
    member = group.member(slot)
    report = member.writing.get(topic)
    gone = topic not in group.partitions.topics
    return gone and (member.leaving or (report is not None and not report.pending_bytes))


def _forget_gone_topics(group: Group) -> Group:
    """Drop the tables of topics without partitions, once they have no writer."""
    gone = [topic for topic in group.writers.released if topic not in group.partitions.topics]
    return replace(group, writers=group.writers.without(gone)) if gone else group
