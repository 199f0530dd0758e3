"""How long a consumer's writing takes, and how old rows are when it makes them readable."""

from dataclasses import dataclass, field

from binwright.runtime.metrics import Distribution


def _staging() -> Distribution:
    return Distribution("binwright_staging_seconds")


@dataclass(frozen=True, slots=True)
class Timings:
    """What the process has measured so far; all times in seconds.

    Attributes:
        staging: Of staged files.
        commits: Topic -> of commits with rows to its table.
        oldest_rows: Topic -> ages of the oldest row of each of these commits, from its fetch on.
    """

    staging: Distribution = field(default_factory=_staging)
    commits: dict[str, Distribution] = field(default_factory=dict)
    oldest_rows: dict[str, Distribution] = field(default_factory=dict)

    def committed(self, topic: str, took_s: float, oldest_s: float) -> None:
        """Count a commit with rows to a topic's table.

        Args:
            topic: The data topic.
            took_s: How long it took.
            oldest_s: Age of its oldest row now.
        """
        self.commits.setdefault(topic, Distribution("binwright_commit_seconds")).observe(took_s)
        self.oldest_rows.setdefault(
            topic, Distribution("binwright_oldest_row_age_seconds")
        ).observe(oldest_s)
