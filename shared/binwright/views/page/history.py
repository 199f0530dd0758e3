"""A group's load and consumers over the last hour, for the charts of the page."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from binwright.runtime.settings import ControllerSettings
from binwright.views.status import Status

STEP_S = 5.0
POINTS = 720  # an hour


@dataclass(slots=True)
class History:
    """The last `POINTS` samples, oldest first; while Kafka is away there are none.

    Attributes:
        step_s: Between samples at present: more than `STEP_S` where one costs much.
    """

    step_s: float = STEP_S
    _points: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=POINTS))

    def add(self, at_ms: int, status: Status, controller: ControllerSettings) -> None:
        """Take a sample: the group at that moment of the wall clock."""
        live = [each.slot for each in status.consumers if each.state != "silent"]
        limit = round(sum(map(controller.limits.for_slot, live)))
        load, staging = round(status.load), round(status.staging)
        age_s = round(status.age_s, 1)
        self._points.append((at_ms, load, staging, limit, len(live), status.lag, age_s))

    def to_json(self) -> dict[str, Any]:
        """Return it for the page."""
        names = ("at_ms", "load", "staging", "limit", "consumers", "lag", "age_s")
        return {"step_s": self.step_s, "fields": names, "points": tuple(self._points)}
