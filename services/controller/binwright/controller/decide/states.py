"""The states of a controller's machine; see `machine` for its transitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.controller.decide.approval import RestoredState
from binwright.controller.decide.events import Action
from binwright.controller.decide.moves import Goal
from binwright.group.group import Group
from binwright.protocol.metadata import Report
from binwright.protocol.model import Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class Synchronize:
    """The claim is sent. Once it is read back, every consumer is asked for a report.

    All records of partition 0 before the claim are history.
    """

    group: Group
    since: float
    replies: Mapping[Slot, Report] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sentinel:
    """No plan is under way; each measurement is compared with the assignment."""

    group: Group
    since: float
    restored_state: RestoredState | None = field(default=None, compare=False)  # as of the last tick


@dataclass(frozen=True, slots=True)
class Reassign:
    """The packing runs; its result is evaluated next."""

    group: Group
    since: float
    triggered_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manage:
    """Group Management: a plan is being carried out."""

    group: Group
    since: float
    goal: Goal
    kept_slots: frozenset[Slot] = frozenset()  # run afterwards too, even if they own nothing
    moves: frozenset[TopicPartition] = frozenset()  # of the plan, between consumers
    frozen: bool = False  # a freeze has taken the moves away that had not begun


@dataclass(frozen=True, slots=True)
class SteppedDown:
    """Another controller leads; this one does nothing more."""

    group: Group
    since: float


Leading = Sentinel | Reassign | Manage
"""The states in which this controller leads and knows the owners."""

State = Synchronize | Leading | SteppedDown
Step = tuple[State, tuple[Action, ...]]
"""The next state, and what the shell must do, in order."""
