"""A sticky assignor that counts generations, which aiokafka's does not.

Each member sends its last assignment; if two send the same partition, the later generation wins.
aiokafka never passes the generation to its assignor, so all members send -1, and a controller that
was suspended for longer than its session could take leadership back from the one elected meanwhile.
So the number is sent along with the assignment.
"""

from collections.abc import Mapping

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)


class GenerationStickyAssignor(StickyPartitionAssignor):  # type: ignore[misc]
    """aiokafka's sticky assignor; it keeps state in the class, so each member needs a subclass."""

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Fit `StickyPartitionAssignor.assign`; the next generation's number is the user data."""
        user_data = cls.next_generation(members)
        return {
            member: ConsumerProtocolMemberAssignment(
                assignment.version, assignment.assignment, user_data
            )
            for member, assignment in super().assign(cluster, members).items()
        }

    @classmethod
    def next_generation(cls, members: Mapping[str, ConsumerProtocolMemberMetadata]) -> bytes:
        """Return the user data of the assignments that are made for these members."""
        known = (cls.parse_member_metadata(member).generation for member in members.values())
        return str(1 + max(0, *known)).encode()

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Fit `StickyPartitionAssignor.on_assignment`; older members send no number."""
        super().on_assignment(assignment)
        if assignment.user_data:
            cls.on_generation_assignment(int(assignment.user_data))
