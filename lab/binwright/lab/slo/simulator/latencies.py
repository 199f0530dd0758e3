"""The latency of every record: from its arrival to the end of its work."""

from array import array

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Latencies:
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
        found: Floats = np.repeat(np.array(self._waited), records) + position * self._service_s
        return found

    def last_of_runs(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Return when the last record of each run was done, its latency, both s, and by whom."""
        work = np.array(self._records) * self._service_s
        done: Floats = np.array(self._began) + work
        latency: Floats = np.array(self._waited) + work
        return done, latency, np.array(self._consumers, dtype=np.int64)
