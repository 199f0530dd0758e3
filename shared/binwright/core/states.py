"""The states of a controller's machine; see `machine` for how they follow one another."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.core.approval import Kept
from binwright.core.group import Group
from binwright.core.messages import Report
from binwright.core.model import Slot
from binwright.core.moving import Goal


@dataclass(frozen=True, slots=True)
class Synchronize:
    """A claim is out; what partition 0 held before it is history. Then everybody is asked."""

    group: Group
    since: float
    answers: Mapping[Slot, Report] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sentinel:
    """Nothing is wanted; each measurement is compared with the assignment."""

    group: Group
    since: float
    kept: Kept | None = field(default=None, compare=False)  # as at the last tick


@dataclass(frozen=True, slots=True)
class Reassign:
    """The packing works; its answer is weighed."""

    group: Group
    since: float
    forced_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manage:
    """Group Management: a plan is being carried out."""

    group: Group
    since: float
    aim: Goal
    kept: frozenset[Slot] = frozenset()  # to be there afterwards, whatever they hold


@dataclass(frozen=True, slots=True)
class Deposed:
    """Another controller reigns. The end."""

    group: Group
    since: float


State = Synchronize | Sentinel | Reassign | Manage | Deposed
