"""Partitions and consumers of a load of records, and the latency of each record."""

from array import array
from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray


class RecordPartition:
    """A queue of records by the time they arrived."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.owner: RecordConsumer | None = None
        self._waiting: deque[tuple[float, int]] = deque()
        self._end = 0
        self._committed = 0

    @property
    def lag(self) -> int:
        """Return how many records have arrived and are not committed."""
        return self._end - self._committed

    def append(self, arrived_s: float, records: int) -> None:
        """Add records that arrive together."""
        if records:
            self._waiting.append((arrived_s, records))
            self._end += records

    def take(self, most: int) -> list[tuple[float, int]]:
        """Remove and return the oldest records, up to `most`: when they arrived, how many."""
        taken = []
        while self._waiting and most > 0:
            arrived_s, records = self._waiting[0]
            if records > most:
                self._waiting[0] = (arrived_s, records - most)
                records = most
            else:
                self._waiting.popleft()
            taken.append((arrived_s, records))
            most -= records
        return taken

    def commit(self, records: int) -> None:
        """Commit this many records more."""
        self._committed += records


class Phase(Enum):
    """What a consumer does; it reads in `READING` and `LEAVING` alone."""

    STARTING = auto()  # its pod is not up yet
    JOINING = auto()  # waits for an assignment
    READING = auto()
    REVOKING = auto()  # gives its partitions up
    LEAVING = auto()  # was asked to end, and reads until its partitions have moved
    ENDED = auto()


@dataclass(slots=True, eq=False)
class RecordConsumer:
    """A consumer's state."""

    number: int  # the order in which consumers were started
    phase: Phase = Phase.STARTING
    partitions: list[RecordPartition] = field(default_factory=list)
    # In work: records of each partition.
    batch: list[tuple[RecordPartition, int]] = field(default_factory=list)
    batch_ends_s: float = 0.0
    stop_ordered: bool = False
    is_stopping: bool = False  # has learned that it is to end
    revokes_next: bool = False  # learned of a rebalance within a batch
    first_s: float | None = None  # when its first batch began
    last_s: float = 0.0  # when its last batch was committed
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


Floats = NDArray[np.float64]


class RecordLatencies:
    """Collects runs of records that arrived together and are worked off one after the other."""

    def __init__(self, service_s: float) -> None:
        self._service_s = service_s
        self._began = array("d")
        self._waited = array("d")
        self._records = array("q")
        self._consumers = array("q")

    def add(self, began_s: float, arrived_s: float, records: int, consumer: int) -> None:
        """Add records that arrived at one time, the first of which is begun at another."""
        self._began.append(began_s)
        self._waited.append(began_s - arrived_s)
        self._records.append(records)
        self._consumers.append(consumer)

    def every(self) -> Floats:
        """Return the latency of each record, s, in the order in which they were worked off."""
        records = np.array(self._records)
        before = np.repeat(np.cumsum(records) - records, records)
        position = np.arange(records.sum()) - before + 1
        latencies: Floats = np.repeat(np.array(self._waited), records) + position * self._service_s
        return latencies

    def last_of_runs(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Return when the last record of each run was done, its latency, both s, and by whom."""
        work = np.array(self._records) * self._service_s
        done: Floats = np.array(self._began) + work
        latency: Floats = np.array(self._waited) + work
        return done, latency, np.array(self._consumers, dtype=np.int64)
