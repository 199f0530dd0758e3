"""What a Delta commit says about itself, and what the next writer of the table learns from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Commit, Table
from binwright.core.writer.chain import same_topic

COMMITS_PER_EPOCH = 1 << 24
_KIND, _OLD_KIND = "binwright-stamp/2", "binwright-stamp/1"


def app_id(table: Table) -> str:
    """Return the Delta app id under which all writers of the table commit."""
    return f"binwright/{table.group}/{table.topic}"


def old_app_id(group: str, slot: Slot) -> str:
    """Return the app id under which a consumer of version 0.1 wrote."""
    return f"binwright/{group}/{slot}"


def txn_version(epoch: int, sequence: int = 0) -> int:
    """Return the app id's version of a writer's commit; 0 is its claim.

    Raises:
        ValueError: The epoch has used up its numbers: claim again.
    """
    if not 0 <= sequence < COMMITS_PER_EPOCH:
        raise ValueError(f"an epoch has {COMMITS_PER_EPOCH} commits, this would be {sequence}")
    return epoch * COMMITS_PER_EPOCH + sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The `userMetadata` of a commit by a table's writer.

    `committed` names the partitions that the commit changed, and all of them if it is `full`.
    Announcements of the landing topic before `needed_from` are over; the number holds for the
    landing topic with `landing_id` only. A claim has sequence 0 and says nothing of offsets.
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
    """What a commit of version 0.1 says: one consumer's partitions of this table."""

    slot: Slot
    topic_id: str | None
    committed: Mapping[int, int]


def read_stamp(text: str | None, table: Table) -> Stamp | OldStamp | None:
    """Read a commit's `userMetadata`; None if it is no stamp of this group and cluster.

    Other writers of the table may say what they like: nothing else is refused.
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
    """What a table's history says."""

    epoch: int  # the highest claimed; 0: none is known
    topic_id: str | None  # of which topic `committed` is; None: not known, or not told
    committed: Mapping[int, int]
    cuts: Mapping[int, int]
    landing_id: str | None
    needed_from: int
    whole: bool  # it reached back as far as is needed: nothing older can say more
    written_before: bool  # the group has landed something, or decided where to begin
    old_slots: frozenset[Slot]  # consumers of version 0.1 that wrote here


def resolve(commits: Iterable[Commit], table: Table, topic_id: str | None) -> Resolved:
    """Say what is committed, from the newest commit back to the last full stamp.

    Stamps of one writer after the other only grow, so what is newest counts. Of version 0.1, where
    each consumer stamped for itself, the highest counts, of the whole history.

    Args:
        commits: Newest first.
        table: Whose stamps count.
        topic_id: Which topic of this name there is now; stamps about another end the search.
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
            whole = True  # all that is older is about the topic before
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
    """Return the table version in which this very stamp stands, if it does.

    A commit that was sent again and skipped landed before, or a later writer's stands above it:
    only the own stamp tells which (†).
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
