"""A replica of the group: one consumer that polls, works a batch off, and commits."""

from dataclasses import dataclass, field
from enum import Enum, auto

from binwright.lab.slo.simulator.partition import Partition


class Phase(Enum):
    """What a consumer does; it reads in `READING` and `LEAVING` alone."""

    STARTING = auto()  # its pod is not up yet
    JOINING = auto()  # waits for an assignment
    READING = auto()
    REVOKING = auto()  # gives its partitions up
    LEAVING = auto()  # was asked to end, and reads until its partitions have moved
    ENDED = auto()


@dataclass(slots=True, eq=False)
class Consumer:
    """A consumer's state."""

    number: int  # the order in which consumers were started
    ordered_s: float
    phase: Phase = Phase.STARTING
    partitions: list[Partition] = field(default_factory=list)
    batch: list[tuple[Partition, int]] = field(default_factory=list)  # in work: records of each
    batch_ends_s: float = 0.0
    stop_ordered: bool = False
    is_stopping: bool = False  # has learned that it is to end
    revokes_next: bool = False  # learned of a rebalance within a batch
    first_s: float | None = None  # when its first batch began
    last_s: float = 0.0  # when its last batch was committed
    ended_s: float | None = None
    worked_s: float = 0.0

    @property
    def reads(self) -> bool:
        """Return whether it takes a batch now."""
        is_free = not self.batch
        return is_free and (
            (self.phase is Phase.READING and not self.is_stopping) or self.phase is Phase.LEAVING
        )

    @property
    def is_up(self) -> bool:
        """Return whether it is a member of the group."""
        return self.phase not in (Phase.STARTING, Phase.ENDED)
