"""What Prometheus sees of one steered group."""

from collections.abc import Iterator
from dataclasses import dataclass

from binwright.runtime.metrics import Sample


@dataclass
class GroupMetrics:
    """The numbers of one group, since this process leads.

    Attributes:
        group: Its name.
        passes: How often it was looked at.
        fault: Why the group cannot be steered now; empty if it can, or has no members.
        members: Of the group, at the last look; None: not known now.
        imbalance: Its largest load over the mean at that time; None: not known now.
        generation: Of the plan that was published last; None: there is none.
        rebalances: That were asked for.
        moved: Partitions that got another reader by them.
    """

    group: str
    passes: int = 0
    fault: str = ""
    members: int | None = None
    imbalance: float | None = None
    generation: int | None = None
    rebalances: int = 0
    moved: int = 0

    def see(self, members: int, imbalance: float | None) -> None:
        """Take what a look at the group has shown."""
        self.fault, self.members, self.imbalance = "", members, imbalance

    def fail(self, reason: str) -> None:
        """Take that the group cannot be steered now: what was seen of it is out of date."""
        self.fault, self.members, self.imbalance = reason, None, None

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the group."""
        numbers = {
            "passes_total": self.passes,
            "fault": bool(self.fault),
            "members": self.members,
            "imbalance": self.imbalance,
            "plan_generation": self.generation,
            "rebalances_total": self.rebalances,
            "moved_partitions_total": self.moved,
        }
        for name, value in numbers.items():
            if value is not None:
                yield Sample(f"binwright_steered_group_{name}", value, {"group": self.group})
