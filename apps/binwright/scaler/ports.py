"""What the scaler needs of the world; adapters and tests' fakes fit these."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.lags import Committed, LogEnds
from binwright.scaler.decide.members import GroupDescription, Members
from binwright.scaler.decide.sizing import WorkloadStatus


class ScaledWorkload(Protocol):
    """What runs a group's consumers, in a number of equal replicas."""

    def status(self) -> WorkloadStatus | None:
        """Return its replicas as last seen; None: it is not there.

        Raises:
            ExternalError: It is not known now.
        """

    async def scale(self, replicas: int, ending: Collection[str] = ()) -> None:
        """Set the number of replicas; raise an `ExternalError` if that fails.

        Args:
            replicas: That there are to be.
            ending: Names of replicas that end if the number is less than it was.
        """

    async def replicas_of(self, members: Members) -> Mapping[str, Replica]:
        """Return what runs each member, as far as that is known; raise an `ExternalError`."""


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The committed offsets of groups; a group is in one of the two."""

    offsets: dict[str, Committed] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)  # group -> why its offsets are not known


class GroupLookup(Protocol):
    """Consumer groups in Kafka, as `groups.ConsumerGroups` looks them up."""

    async def committed(self, groups: Collection[str]) -> CommittedOffsets:
        """Return the committed offsets of groups, or a fault of each."""

    async def described(self, groups: Collection[str]) -> Mapping[str, GroupDescription | str]:
        """Return the members of each group, or why they are not known."""


class EndLookup(Protocol):
    """Ends of logs, as `ends.TopicEnds` looks them up."""

    async def look_up(
        self, topics: Collection[str], windows: Mapping[str, float] | None = None
    ) -> Mapping[str, LogEnds]:
        """Return the logs of topics, as far as they are known; that there is no such topic, too.

        Args:
            topics: To be looked up.
            windows: Over which times, seconds, the rates of some are taken; of others as usual.
        """
