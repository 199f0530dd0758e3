"""What a metric is, and the metrics of every service; `exposition` gives Prometheus their values.

Each program declares its own in a module `metrics` of its own.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

METRICS: dict[str, "Metric"] = {}
"""Those of the programs that are imported, by name."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What one metric is; a name that ends in `_total` only grows while the process lives.

    Attributes:
        where: Whose `/metrics` has it, as `tools.reference.metrics.WHERE` says.
        bounds: Of a histogram: the highest values of its buckets, ascending; the last one has none.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    where: str
    bounds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if METRICS.setdefault(self.name, self) != self:
            raise ValueError(f"{self.name} is declared twice")

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        """Return its type."""
        if self.bounds:
            return "histogram"
        return "counter" if self.name.endswith("_total") else "gauge"

    @property
    def series(self) -> tuple[str, ...]:
        """Return the names that it has in a query."""
        if self.bounds:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


GROUP, SLOT, TABLE = ("group",), ("group", "slot"), ("group", "topic", "table")
TARGET = ("target", "group")
SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Up to a few times the largest `lake.freshness_s` that is usual."""

UP = Metric("binwright_up", "1 while the service runs.", (), "service")
READY = Metric("binwright_ready", "1 while the service can do its work.", (), "service")
CLIENT_CERTIFICATE_EXPIRES_SECONDS = Metric(
    "binwright_client_certificate_expires_seconds",
    "Time until kafka.ssl_certificate_file expires, below 0 after that; 0: it is unreadable.",
    (),
    "service",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of a metric that is no histogram."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the metric's name."""
        return self.metric.name


def topic_label(topics: Collection[str]) -> str:
    """Return the label `topic` of a table's metric: empty if the table takes several topics."""
    return next(iter(topics)) if len(topics) == 1 else ""
