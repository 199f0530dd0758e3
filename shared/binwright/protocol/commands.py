"""What a controller commands slot i, in partition i of the commands topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import Epoch, KnownOffsets, Partition, Revision, SlotNumber, Term
from binwright.protocol.names import TopicName
from binwright.protocol.wire import Decode, decoder


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuery:
    """Asks for a `Report`: after it, the consumer takes no command of an older term."""

    term: Term  # the controller's that asks
    kind: Literal["state-query/1"] = "state-query/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReading:
    """Stop fetching these, drop what is not staged, and reply at once."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    partitions: tuple[Partition, ...]  # not one of them is fetched after this
    kind: Literal["stop-reading/1"] = "stop-reading/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReading:
    """Read these from these offsets on, also those that it reads already."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    offsets: KnownOffsets  # where to begin; null: at the committed offset, else by consumer.start
    kind: Literal["start-reading/1"] = "start-reading/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWriting:
    """Stop being the writer of these tables once the commit in flight has ended."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    tables: tuple[TopicName, ...]  # by their topics
    kind: Literal["stop-writing/1"] = "stop-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWriting:
    """Become the writer of these tables: claim each, then land what is staged."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    tables: tuple[TopicName, ...]  # by their topics
    kind: Literal["start-writing/1"] = "start-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """This process was declared dead, or a newer one has its slot: exit."""

    term: Term
    epoch: Epoch  # of the process that it is for
    kind: Literal["leave/1"] = "leave/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReading:
    """All split partitions that this consumer owns or helps to stage; others are split no more."""

    term: Term
    epoch: Epoch  # of the process that it is for
    partitions: Mapping[Partition, tuple[SlotNumber, ...]]  # -> its owner, then its helpers
    kind: Literal["split-reading/1"] = "split-reading/1"


_ToReaders = StopReading | StartReading | SplitReading
Command = StateQuery | _ToReaders | StopWriting | StartWriting | Leave

decode_command: Decode[Command] = decoder(Command)
