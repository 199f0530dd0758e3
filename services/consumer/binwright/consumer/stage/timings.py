"""How long a consumer's writing takes, and how old rows are when it makes them readable."""

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Histogram

from binwright.consumer.metrics import COMMIT_SECONDS, OLDEST_ROW_AGE_SECONDS, STAGING_SECONDS
from binwright.runtime.clock import wall_ms
from binwright.runtime.exposition import histogram
from binwright.runtime.traces import Attribute, Span, Trace, untraced
from binwright.tables.targets import Target


@dataclass(slots=True)
class Timings:
    """What the process has measured so far, for Prometheus; all times in seconds.

    Attributes:
        group: Whose consumer it is.
        slot: Its number.
        registry: Of the metrics.
        trace: Takes a span for each commit with rows.
        staging: Of staged files.
    """

    group: str = ""
    slot: int = 0
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    trace: Trace = untraced
    staging: Histogram = field(init=False)
    _commits: Histogram = field(init=False)
    _oldest_rows: Histogram = field(init=False)

    def __post_init__(self) -> None:
        staging = histogram(STAGING_SECONDS, self.registry)
        self.staging = staging.labels(self.group, self.slot)
        self._commits = histogram(COMMIT_SECONDS, self.registry)
        self._oldest_rows = histogram(OLDEST_ROW_AGE_SECONDS, self.registry)

    def begin(self, target: Target) -> None:
        """Have a table's histograms, all zero: its first commit is an increase to Prometheus."""
        for each in (self._commits, self._oldest_rows):
            each.labels(self.group, target.topic, target.name)

    def committed(self, target: Target, files: int, took_s: float, oldest_s: float) -> None:
        """Count a commit with rows, and trace it: from the fetch of its oldest row to its end.

        Args:
            target: The table.
            files: How many staged files it landed.
            took_s: How long it took.
            oldest_s: Age of its oldest row now.
        """
        self._commits.labels(self.group, target.topic, target.name).observe(took_s)
        self._oldest_rows.labels(self.group, target.topic, target.name).observe(oldest_s)
        now_ms = wall_ms()
        fetched_ms, began_ms = now_ms - 1000 * oldest_s, now_ms - 1000 * took_s
        facts: dict[str, Attribute] = {
            "binwright.group": self.group,
            "binwright.topic": target.topic,
            "binwright.table": target.name,
            "binwright.files": files,
        }
        waited = Span("stage and wait", fetched_ms, began_ms)
        appended = Span("append", began_ms, now_ms)
        self.trace(Span("commit", fetched_ms, now_ms, facts, (waited, appended)))
