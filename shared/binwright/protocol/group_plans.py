"""What the scaler publishes to the assignors inside the members of an ordinary consumer group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from binwright.protocol.fields import Number, Partition
from binwright.protocol.wire import Decode, sole_decoder


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """Which partitions one member of a Kafka consumer group is to read; the last one counts.

    The leader of the group gives each bin to a member, by the rule in `docs/design/assignor.md`;
    only members that are to read nothing are named.
    """

    group: str  # Kafka's name of the group
    generation: Number  # grows by one when the bins change; repeated plans have the same
    at_ms: Number  # wall clock, ms since 1970, of this record
    valid_ms: Number  # an assignor ignores the plan that is older, by its own clock
    bins: tuple[Mapping[Partition, Number], ...]  # each for one member: thousandths of its capacity
    reason: str  # for people: why the bins changed
    leaving: tuple[str, ...] = ()  # ids of members that read nothing any more, as they are to end
    kind: Literal["group-plan/1"] = "group-plan/1"
    KEY: ClassVar = "{0.group}"

    def is_valid(self, now_ms: int) -> bool:
        """Return whether the plan is in force at this time, ms since 1970; clocks may differ."""
        return abs(now_ms - self.at_ms) <= self.valid_ms


decode_group_plan: Decode[GroupPlan] = sole_decoder(GroupPlan)
"""Of the plans topic."""
