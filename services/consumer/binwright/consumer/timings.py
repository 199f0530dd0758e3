"""How long a consumer's writing takes, and how old rows are when it makes them readable."""

from dataclasses import dataclass, field

from binwright.runtime.clock import wall_ms
from binwright.runtime.metrics import Distribution
from binwright.runtime.settings import Target
from binwright.runtime.traces import Attribute, Span, Trace, untraced


def _staging() -> Distribution:
    return Distribution("binwright_staging_seconds")


@dataclass(frozen=True, slots=True)
class Timings:
    """What the process has measured so far; all times in seconds.

    Attributes:
        staging: Of staged files.
        commits: Of commits with rows to each table that was claimed.
        oldest_rows: Ages of the oldest row of each of these commits, from its fetch on.
        group: Whose consumer it is, in traces.
        trace: Takes a span for each commit with rows.
    """

    staging: Distribution = field(default_factory=_staging)
    commits: dict[Target, Distribution] = field(default_factory=dict)
    oldest_rows: dict[Target, Distribution] = field(default_factory=dict)
    group: str = ""
    trace: Trace = untraced

    def begin(self, target: Target) -> None:
        """Have a table's histograms, all zero: its first commit is an increase to Prometheus."""
        self.commits.setdefault(target, Distribution("binwright_commit_seconds"))
        self.oldest_rows.setdefault(target, Distribution("binwright_oldest_row_age_seconds"))

    def committed(self, target: Target, files: int, took_s: float, oldest_s: float) -> None:
        """Count a commit with rows, and trace it: from the fetch of its oldest row to its end.

        Args:
            target: The table.
            files: How many staged files it landed.
            took_s: How long it took.
            oldest_s: Age of its oldest row now.
        """
        self.begin(target)
        self.commits[target].observe(took_s)
        self.oldest_rows[target].observe(oldest_s)
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
