"""What a Delta commit says about itself, and what the next owner of a partition learns from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from binwright.core.messages import Offset, Partition, SlotNumber
from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Commit, Hint

WRITES_PER_EPOCH = 1 << 24


def app_id(group: str, slot: Slot) -> str:
    """Return the Delta app id under which everything of a slot is written."""
    return f"binwright/{group}/{slot}"


def write_version(number: int, sequence: int = 0) -> int:
    """Return the app id's version of an epoch's write; 0 is its claim.

    Raises:
        ValueError: The epoch has used up its numbers: a new process is needed.
    """
    if not 0 <= sequence < WRITES_PER_EPOCH:
        raise ValueError(f"an epoch has {WRITES_PER_EPOCH} writes, this would be {sequence}")
    return number * WRITES_PER_EPOCH + sequence


def fence_version(number: int) -> int:
    """Return the version of a fence: above all of the epochs up to `number`, below any later."""
    return write_version(number, WRITES_PER_EPOCH - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The `userMetadata` of a data commit.

    `landed` names every partition of this table that the writer holds and has landed up to, with
    the next offset to land after this commit: never one that it only read ahead (†). `topic_id`
    tells of which topic: offsets of an earlier one of the same name mean nothing.
    """

    group: str
    slot: SlotNumber
    epoch: Annotated[int, Field(ge=0)]
    sequence: Annotated[int, Field(ge=0)]
    landed: Mapping[Partition, Offset]
    topic_id: str | None = None
    kind: Literal["binwright-stamp/1"] = "binwright-stamp/1"

    def encode(self) -> str:
        """Return JSON text; equal stamps are equal text."""
        landed = {str(p): offset for p, offset in sorted(self.landed.items())}
        fields = {"group": self.group, "slot": self.slot, "epoch": self.epoch}
        fields |= {"sequence": self.sequence, "landed": landed, "topic_id": self.topic_id}
        return orjson.dumps({**fields, "kind": self.kind}).decode()


_STAMP: TypeAdapter[Stamp] = TypeAdapter(Stamp)


def read_stamp(text: str | None, group: str) -> Stamp | None:
    """Read a commit's `userMetadata`; None if it is not a stamp of this group."""
    if text is None:
        return None
    try:
        stamp = _STAMP.validate_json(text)
    except ValidationError:
        return None  # other writers of the table may say what they like
    return stamp if stamp.group == group else None


def landed_already(
    commits: Sequence[Commit], group: str, slot: Slot, epoch: int, sequence: int
) -> int | None:
    """Return the table version in which this very write stands, if it does.

    A retried write that was skipped either landed before, or the slot is fenced: only the own
    stamp tells which.
    """
    for commit in commits:
        stamp = read_stamp(commit.metadata, group)
        if stamp and (stamp.slot, stamp.epoch, stamp.sequence) == (slot, epoch, sequence):
            return commit.version
    return None


def resolve(
    partition: TopicPartition,
    hint: Hint | None,
    commits: Sequence[Commit],
    group: str,
    topic_id: str | None = None,
) -> int | None:
    """Return the next offset to land, by the hint and the stamps; None if neither tells.

    The maximum of the hint and of every stamp later than it (†): a hint may lag behind the table,
    and the last stamp that names a partition may be older than its hint. A stamp about another
    topic of this name does not count; the hint must be about this one.
    """
    after = hint.version if hint else -1
    told = [hint.offset] if hint else []
    for commit in commits:
        stamp = read_stamp(commit.metadata, group) if commit.version > after else None
        if stamp and partition in stamp.landed and same_topic(stamp.topic_id, topic_id):
            told.append(stamp.landed[partition])
    return max(told, default=None)


def same_topic(one: str | None, other: str | None) -> bool:
    """Whether two ids may be one topic's: brokers before 2.8 tell none."""
    return one is None or other is None or one == other
