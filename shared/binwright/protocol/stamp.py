"""The stamp in each Delta commit's metadata, and what the next writer resolves from stamps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from binwright.consumer.decide.writer.chain import same_topic
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.ports.lake import Commit, Table

_KIND, _OLD_KIND = "binwright-stamp/2", "binwright-stamp/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The `userMetadata` of a commit by a table's writer.

    `committed` holds the partitions that the commit changed, or all partitions if it is `full`.
    Announcements before offset `needed_from` of the landing topic with id `landing_id` are no
    longer needed. A claim has sequence 0 and no offsets.
    """

    group: str
    cluster: str
    writer: str  # unique to a writer's claim
    epoch: int
    sequence: int
    topic_id: str | None = None
    landing_id: str | None = None
    needed_from: int = 0
    committed: Mapping[int, int] = field(default_factory=dict)
    cuts: Mapping[int, int] = field(default_factory=dict)
    full: bool = False

    def encode(self) -> str:
        """Return JSON text; equal stamps are equal text."""
        found: dict[str, Any] = {"kind": _KIND}
        found |= {name: getattr(self, name) for name in self.__slots__}
        for name in ("committed", "cuts"):
            found[name] = {str(p): offset for p, offset in sorted(found[name].items())}
        return orjson.dumps(found).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class OldStamp:
    """The stamp of a commit by version 0.1: one consumer's partitions of this table."""

    slot: Slot
    topic_id: str | None
    committed: Mapping[int, int]


def read_stamp(text: str | None, table: Table) -> Stamp | OldStamp | None:
    """Parse a commit's `userMetadata`; None if it is not a stamp of this group and cluster.

    Never raises: other writers of the table may put anything into their commits.
    """
    try:
        found = orjson.loads(text or "")
        if found["group"] != table.group:
            return None
        match found["kind"]:
            case "binwright-stamp/2" if found["cluster"] == table.cluster:
                return _new(found)
            case "binwright-stamp/1":
                return _old(found, table.topic)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return None


def _new(found: Mapping[str, Any]) -> Stamp:
    names = {name: found[name] for name in Stamp.__slots__}
    for name in ("committed", "cuts"):
        names[name] = {int(p): int(offset) for p, offset in found[name].items()}
    return Stamp(**names)


def _old(found: Mapping[str, Any], topic: str) -> OldStamp:
    parsed = ((TopicPartition.parse(p), int(offset)) for p, offset in found["landed"].items())
    landed = {p.partition: offset for p, offset in parsed if p.topic == topic}
    return OldStamp(slot=Slot(found["slot"]), topic_id=found["topic_id"], committed=landed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A table's state, by the stamps of its history."""

    epoch: int  # the highest claimed; 0: none found
    topic_id: str | None  # of the topic that `committed` is of; None: unknown
    committed: Mapping[int, int]
    cuts: Mapping[int, int]
    landing_id: str | None
    needed_from: int
    whole: bool  # the history reaches back far enough: older commits would add nothing
    written_before: bool  # the group has landed rows, or decided where partitions begin
    old_slots: frozenset[Slot]  # consumers of version 0.1 that wrote to the table


def resolve(commits: Iterable[Commit], table: Table, topic_id: str | None) -> Resolved:
    """Return what is committed, from the newest commit back to the last full stamp.

    Offsets in successive stamps only increase, so the newest counts. In version 0.1 each consumer
    wrote its own stamps: of those the highest offset counts, of the whole history.

    Args:
        commits: Newest first.
        table: The table, whose stamps count.
        topic_id: The current topic's id; stamps of another topic end the search.
    """
    epoch, landing_id, needed_from, newest = 0, None, 0, True
    committed: dict[int, int] = {}
    cuts: dict[int, int] = {}
    old: dict[int, int] = {}
    old_slots: set[Slot] = set()
    whole = before = False
    for commit in commits:
        stamp = read_stamp(commit.metadata, table)
        if stamp is None:
            continue
        if isinstance(stamp, OldStamp):
            before = True
            old_slots.add(stamp.slot)
            if same_topic(stamp.topic_id, topic_id):
                for p, offset in stamp.committed.items():
                    old[p] = max(offset, old.get(p, 0))
            continue
        epoch = max(epoch, stamp.epoch)
        if not stamp.sequence:
            continue  # a claim
        before = True
        if newest:
            landing_id, needed_from, newest = stamp.landing_id, stamp.needed_from, False
        if not same_topic(stamp.topic_id, topic_id):
            whole = True  # all older stamps are of the previous topic
            break
        committed = {**stamp.committed, **committed}
        cuts = {**stamp.cuts, **cuts}
        if stamp.full:
            whole = True
            break
    return Resolved(
        epoch=epoch,
        topic_id=topic_id,
        committed={**old, **committed},
        cuts=cuts,
        landing_id=landing_id,
        needed_from=needed_from,
        whole=whole,
        written_before=before,
        old_slots=frozenset(old_slots),
    )


def find_own(commits: Iterable[Commit], table: Table, own: Stamp) -> int | None:
    """Return the table version that has exactly this stamp; None: there is none.

    A commit that was sent again and skipped was either committed before, or a later writer's commit
    precedes it: only its own stamp tells which (†).
    """
    for commit in commits:
        stamp = read_stamp(commit.metadata, table)
        if isinstance(stamp, Stamp) and (stamp.writer, stamp.epoch, stamp.sequence) == (
            own.writer,
            own.epoch,
            own.sequence,
        ):
            return commit.version
    return None
