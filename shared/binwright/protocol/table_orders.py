"""A person steers a table: a record of the group's orders topic."""

from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import Number
from binwright.protocol.names import TopicName


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOrder:
    """A person pauses a table, or lets it land again: its newest order counts."""

    topic: TopicName  # the table's name: its topic's, if it has no other one
    paused: bool  # false: it lands again
    by: str  # a name for people; it proves nothing
    reason: str = ""  # for people
    at_ms: Number = 0  # wall clock, ms since 1970
    kind: Literal["table-order/1"] = "table-order/1"

    @property
    def table(self) -> str:
        """Return the table that is meant."""
        return self.topic
