"""Sticky assignment that counts its generations, which aiokafka's does not.

Each member brings what it was given last, and with two that bring the same partition the later
generation counts. aiokafka never hands the number to its assignor: all bring -1, and a controller
that slept through its session could take the lead back from the one that was chosen meanwhile. So
the number goes along with the assignment.
"""

from collections.abc import Mapping

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)


class CountingSticky(StickyPartitionAssignor):  # type: ignore[misc]
    """aiokafka's sticky assignor; the memory is the class's, so each member makes a class of it."""

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Fit `StickyPartitionAssignor.assign`; the next generation's number is the user data."""
        brought = (cls.parse_member_metadata(member).generation for member in members.values())
        user_data = str(1 + max(0, *brought)).encode()
        return {
            member: ConsumerProtocolMemberAssignment(given.version, given.assignment, user_data)
            for member, given in super().assign(cluster, members).items()
        }

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Fit `StickyPartitionAssignor.on_assignment`; an assignor without numbers tells none."""
        super().on_assignment(assignment)
        if assignment.user_data:
            cls.on_generation_assignment(int(assignment.user_data))
