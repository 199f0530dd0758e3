"""What the controller's machine is told, and what it asks its shell to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.core.messages import Command, Inbound, Measurement
from binwright.core.model import Assignment, Rates, Slot
from binwright.core.packing.capacity import Capacity

# --- events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heard:
    """A record of metadata partition 0, in order, own ones too."""

    now: float
    offset: int
    message: Inbound


@dataclass(frozen=True, slots=True)
class Measured:
    """One topic as the monitor saw it."""

    now: float
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class Packed:
    """The answer to `Pack`."""

    now: float
    target: Assignment


@dataclass(frozen=True, slots=True)
class Tick:
    """Time goes on; about once a second."""

    now: float


@dataclass(frozen=True, slots=True)
class Ended:
    """The fleet saw a process end."""

    now: float
    slot: Slot
    process: str  # its name, by its `Hello`


Event = Heard | Measured | Packed | Tick | Ended


# --- what the shell must do, in order ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Publish:
    """Append to metadata partition 0."""

    message: Inbound


@dataclass(frozen=True, slots=True)
class Tell:
    """Append to a slot's own partition."""

    slot: Slot
    message: Command


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Append to every slot's partition that exists, in the fleet or not."""

    message: Command


@dataclass(frozen=True, slots=True)
class Pack:
    """Run the packing and come back with `Packed`."""

    rates: Rates
    capacity: Capacity
    current: Assignment
    change: float | None = None  # the mean squared change of a rate, (bytes/s)^2, if observed


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Exactly these slots shall run."""

    slots: frozenset[Slot]


@dataclass(frozen=True, slots=True)
class Destroy:
    """End what runs as this slot, without grace: it is declared dead."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class StepDown:
    """Another controller reigns: stop, command nothing more."""

    term: int  # of the other


@dataclass(frozen=True, slots=True)
class Say:
    """Log an event for people."""

    event: str
    facts: Mapping[str, object] = field(default_factory=dict)


Action = Publish | Tell | Broadcast | Pack | Reconcile | Destroy | StepDown | Say
