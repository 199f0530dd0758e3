"""All messages, by the topic that they are read from; `wire` encodes and decodes them.

`docs/design/protocol.md` describes which process sends each one, and when;
`docs/reference/messages.md` is generated from the docstrings and the comments behind the fields.
Every message has a versioned `kind`: increase the version when a field changes its meaning. Readers
skip unknown kinds.
"""

from typing import Protocol

from binwright.protocol.commands import Claim, Command, Dead
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.measurements import Measurement, Needs
from binwright.protocol.plans import Accepted, Approved, Planned, Proposed, Withdrawn
from binwright.protocol.reports import Gap, Goodbye, Hello, Report, Started, Stopped
from binwright.protocol.staged import Staged

Inbound = (
    Claim
    | Hello
    | Report
    | Stopped
    | Gap
    | Started
    | Goodbye
    | Dead
    | Planned
    | Proposed
    | Approved
    | Accepted
    | Withdrawn
)  # the records of metadata partition 0
"""Records of metadata partition 0."""


Message = Inbound | Command | Staged | Measurement | Needs | GroupPlan
"""Messages that several programs know."""


class AnyMessage(Protocol):
    """A frozen dataclass with a versioned kind: one of these, or a program's own."""

    @property
    def kind(self) -> str:
        """Return the message's name and version."""
