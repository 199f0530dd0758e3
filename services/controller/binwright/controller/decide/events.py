"""The events of the controller's machine, and the actions that its shell carries out."""

from collections.abc import Mapping
from dataclasses import dataclass

from binwright.group.fold import Measured, RecordRead
from binwright.group.group import Group
from binwright.group.plans import Pack
from binwright.protocol.commands import Command
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Inbound
from binwright.protocol.model import Assignment, Slot
from binwright.protocol.ports.fleet import Disruption

# --- events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Packed:
    """The result of `Pack`."""

    now: float
    target: Assignment


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; sent about once a second."""

    now: float
    wall_ms: int = 0  # wall clock, ms since 1970: when orders end, and frozen hours begin


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """The fleet reports that a process has ended."""

    now: float
    slot: Slot
    process: str  # its name, as in its `Hello`


@dataclass(frozen=True, slots=True)
class Disrupted:
    """The fleet reports other disruptions than before: these are all there are."""

    now: float
    disruptions: Mapping[Slot, Disruption]


Event = RecordRead | Measured | Packed | Tick | ProcessEnded | Disrupted


# --- actions: the shell carries them out in order ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Publish:
    """Append to metadata partition 0."""

    message: Inbound


@dataclass(frozen=True, slots=True)
class Send:
    """Append to a slot's own partition."""

    slot: Slot
    message: Command


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Append to the partition of every slot that has one, whether or not the slot runs."""

    message: Command


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Run exactly these slots."""

    slots: frozenset[Slot]


@dataclass(frozen=True, slots=True)
class Renew:
    """Let the fleet restart these disrupted slots, one by one, and no others."""

    slots: frozenset[Slot]


@dataclass(frozen=True, slots=True)
class Destroy:
    """Kill the process of this slot, without a grace period: it is declared dead."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class StepDown:
    """Another controller leads: stop, and send no more commands."""

    term: int  # of the other controller


Action = Publish | Send | Broadcast | Pack | Reconcile | Renew | Destroy | StepDown | Log

Update = tuple[Group, tuple[Action, ...]]
"""A changed group, and what the shell must do, in order."""
