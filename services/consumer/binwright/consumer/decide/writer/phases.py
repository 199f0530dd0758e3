"""The state of a table's writer: one phase after the other, up to landing."""

from dataclasses import dataclass

from binwright.consumer.decide.writer.chain import Chain
from binwright.consumer.decide.writer.landing import Landing
from binwright.consumer.decide.writer.requests import TopicState, WriterConfig
from binwright.protocol.model import Slot
from binwright.protocol.stamp import Resolved

FIRST_LOOK, LONGER = 128, 16
"""How many commits of the history are read at first; by how much that is multiplied each time."""


@dataclass(frozen=True, slots=True)
class ReadingHistory:
    """Reads the history, for the last epoch that was claimed."""

    limit: int = FIRST_LOOK
    skipped: int = 0  # the epoch whose claim was skipped; 0: none was sent


@dataclass(frozen=True, slots=True)
class Claiming:
    """Sends a claim, repeatedly until it is committed or skipped."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Resolving:
    """The claim is committed. What is in the table is read only now (†)."""

    epoch: int
    topic_state: TopicState | None = None
    limit: int = FIRST_LOOK
    fenced: frozenset[Slot] = frozenset()  # consumers of version 0.1 that can no longer write
    to_fence: tuple[Slot, ...] = ()
    found: Resolved | None = None  # from the history, if it does not reach back far enough


@dataclass(frozen=True, slots=True)
class Lost:
    """Another writer has claimed the table: this writer has ended."""

    reason: str


Phase = ReadingHistory | Claiming | Resolving | Landing | Lost


@dataclass(frozen=True, slots=True)
class Writer:
    """A table's writer, from the grant of the role until it loses it or stops."""

    config: WriterConfig
    phase: Phase = ReadingHistory()

    @property
    def chain(self) -> Chain | None:
        """Return what is committed and pending; None before the writer has resolved it."""
        return self.phase.chain if isinstance(self.phase, Landing) else None
