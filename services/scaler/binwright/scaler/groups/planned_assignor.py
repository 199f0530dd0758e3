"""An assignor for aiokafka that follows the controller's plan; eager, as all of aiokafka's are.

    async with follow_plans("orders", bootstrap_servers=servers) as plans:
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=servers,
            group_id="orders",
            partition_assignment_strategy=[planned_assignor(plans)],
        )

aiokafka does not know the cooperative protocol: a rebalance stops every member, with any assignor.
Without a valid plan partitions are assigned as by its sticky assignor.
"""

from collections.abc import Mapping
from typing import ClassVar

import structlog
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from binwright.kafka.generation_sticky import GenerationStickyAssignor
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.assignor.mapping import target
from binwright.scaler.decide.assignor.members import Member
from binwright.scaler.groups.plan_reader import PlanReader

log = structlog.get_logger()

PROTOCOL = "binwright-eager"
"""Not the name of the assignor for Java: an eager and a cooperative member cannot share a group."""


class PlannedAssignor(GenerationStickyAssignor):
    """Use `planned_assignor`: the state is in the class, so each member needs a subclass."""

    name = PROTOCOL
    plans: ClassVar[PlanReader]

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Fit `AbstractPartitionAssignor.assign`; runs in the group's leader."""
        plan = cls.plans.valid_plan()
        if plan is None:
            log.info("plan.absent", group=cls.plans.group)
            return super().assign(cluster, members)
        log.info("plan.followed", group=plan.group, generation=plan.generation)
        found = {name: cls._member(one) for name, one in members.items()}
        topics = {topic for member in found.values() for topic in member.topics}
        partitions = [
            TopicPartition(topic, number)
            for topic in topics
            for number in cluster.partitions_for_topic(topic) or ()
        ]
        chosen = target(plan.bins, found, partitions)
        user_data = cls.next_generation(members)
        return {
            name: ConsumerProtocolMemberAssignment(cls.version, _rows(chosen, name), user_data)
            for name in members
        }

    @classmethod
    def _member(cls, metadata: ConsumerProtocolMemberMetadata) -> Member:
        known = cls.parse_member_metadata(metadata)
        return Member(
            topics=frozenset(known.subscription),
            owned=frozenset(TopicPartition(*partition) for partition in known.partitions),
            generation=known.generation,
        )


def planned_assignor(plans: PlanReader) -> type[PlannedAssignor]:
    """Return the assignor of one member, which reads its plans from `plans`."""
    return type("Planned", (PlannedAssignor,), {"plans": plans})


def _rows(chosen: Mapping[TopicPartition, str], name: str) -> list[tuple[str, list[int]]]:
    """Return the partitions of one member, by topic."""
    rows: dict[str, list[int]] = {}
    for partition in sorted(p for p, one in chosen.items() if one == name):
        rows.setdefault(partition.topic, []).append(partition.partition)
    return list(rows.items())
