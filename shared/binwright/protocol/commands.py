"""What a controller publishes: its claim, deaths, and the commands that consumers obey."""

from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import Epoch, KnownOffsets, Partition, Revision, SlotNumber, Term

# --- to metadata partition 0 -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A controller starts to lead; the record's offset is its term."""

    controller: str  # unique to the process and this claim, so that it recognises its own
    kind: Literal["claim/1"] = "claim/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A consumer process is declared dead: its `Hello` counts no more."""

    slot: SlotNumber
    epoch: Epoch  # of the process that is meant
    term: Term
    kind: Literal["dead/2"] = "dead/2"


# --- to metadata partition i + 1, for slot i ---------------------------------------------------


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
    tables: tuple[str, ...]  # by their topics
    kind: Literal["stop-writing/1"] = "stop-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWriting:
    """Become the writer of these tables: claim each, then land what is staged."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    tables: tuple[str, ...]  # by their topics
    kind: Literal["start-writing/1"] = "start-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """This process was declared dead, or a newer one has its slot: exit."""

    term: Term
    epoch: Epoch  # of the process that it is for
    kind: Literal["leave/1"] = "leave/1"


Command = StateQuery | StopReading | StartReading | StopWriting | StartWriting | Leave
