"""An assignor for aiokafka that follows the scaler's plans; eager, as all of aiokafka's are.

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

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.errors import LeaderNotAvailableError, NoError, UnknownTopicOrPartitionError, for_code

from binwright.kafka.aiokafka_patches import inner_client, keep_to_own_topics
from binwright.kafka.client import stop_client, translate_errors
from binwright.kafka.frames import Metadata
from binwright.kafka.generation_sticky import GenerationStickyAssignor
from binwright.protocol.errors import ExternalError
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log
from binwright.scaler.decide.mapping import target
from binwright.scaler.decide.members import EAGER, GroupMember
from binwright.scaler.plans_topic import PLANS_TOPIC, decoded_plan, plan_partition

PLANS_UNREACHABLE = LogEvent.warning(
    "plans.unreachable",
    "An aiokafka member cannot read the plans topic; the last plan counts until it is too old.",
)
PLANS_MISSING = LogEvent.info(
    "plans.missing",
    "The plans topic does not exist; a member assigns without a plan until it does.",
)
PLAN_ABSENT = LogEvent.info(
    "plan.absent",
    "An aiokafka member found no valid plan for its group; it assigns as the sticky assignor does.",
)
PLAN_FOLLOWED = LogEvent.info(
    "plan.followed", "An aiokafka member assigns partitions by the scaler's plan."
)

FIRST_READ_S = 2.0
"""A member joins its group after this time at the latest, whether or not plans could be read."""
POLL_MS = 1000
LONGEST_RETRY_S = 60.0


class PlanReader:
    """The last plan of one group. aiokafka assigns without waiting, so it must be known before."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.plan: GroupPlan | None = None
        self.has_read = asyncio.Event()  # to the end of the topic, once

    def valid_plan(self) -> GroupPlan | None:
        """Return the last plan, if it is in force now."""
        return self.plan if self.plan and self.plan.is_valid(wall_ms()) else None

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record of the topic; one without a value ends that of its group."""
        if key != self.group.encode():
            return
        if value is None:
            self.plan = None
        elif (plan := decoded_plan(value, self.group)) is not None:
            self.plan = plan

    async def run(self, topic: str, options: dict[str, Any]) -> None:
        """Read the topic for ever; while that fails, the last plan counts until it is too old."""
        pause = Backoff(LONGEST_RETRY_S)
        while True:
            consumer = AIOKafkaConsumer(
                **options, enable_auto_commit=False, auto_offset_reset="earliest"
            )
            keep_to_own_topics(consumer)
            try:
                with translate_errors(f"read {topic}"):
                    await consumer.start()
                    await self._read(consumer, topic, pause)
            except ExternalError as exc:
                log(PLANS_UNREACHABLE, group=self.group, topic=topic, reason=str(exc))
            finally:
                await stop_client(consumer)
            await asyncio.sleep(pause.next())

    async def _read(self, consumer: AIOKafkaConsumer, topic: str, pause: Backoff) -> None:
        """Read until the topic has another number of partitions, or is gone."""
        if not (count := await _partition_count(consumer, topic)):
            self.has_read.set()
            log(PLANS_MISSING, group=self.group, topic=topic)
            return
        partition = KafkaPartition(topic, plan_partition(self.group, count))
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        end = (await consumer.end_offsets([partition]))[partition]
        # The group's plans may be in another partition once there are more.
        while len(consumer.partitions_for_topic(topic) or ()) == count:
            if not self.has_read.is_set() and await consumer.position(partition) >= end:
                self.has_read.set()
            pause.reset()
            records = await consumer.getmany(partition, timeout_ms=POLL_MS)
            for record in records.get(partition, ()):
                self.take(record.key, record.value)


async def _partition_count(consumer: AIOKafkaConsumer, topic: str) -> int:
    """Return how many partitions a topic has; 0: it does not exist, and is not created.

    No public method of a consumer tells that of one topic: `topics` requests those of all.
    """
    client = inner_client(consumer)
    metadata = await client.send(client.get_random_node(), Metadata([topic]))
    ((code, _, _, partitions),) = metadata.topics
    error = for_code(code)
    if error in (NoError, LeaderNotAvailableError, UnknownTopicOrPartitionError):
        return len(partitions)
    raise error(topic)


@contextlib.asynccontextmanager
async def follow_plans(
    group: str, *, topic: str = PLANS_TOPIC, **options: Any
) -> AsyncIterator[PlanReader]:
    """Read the plans of `group` while the block runs, on a connection of its own.

    It waits until the plans are read, for `FIRST_READ_S` at most, and raises nothing of Kafka's: a
    member without plans falls back to the sticky assignment.

    Args:
        group: The `group_id` of the member.
        topic: That plans are published in.
        options: Of the connection, as for `AIOKafkaConsumer`: servers, security.
    """
    reader = PlanReader(group)
    reading = asyncio.create_task(reader.run(topic, options))
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_READ_S):
                await reader.has_read.wait()
        yield reader
    finally:
        reading.cancel()
        await asyncio.wait([reading])


class PlannedAssignor(GenerationStickyAssignor):
    """Use `planned_assignor`: the state is in the class, so each member needs a subclass."""

    name = EAGER
    plans: ClassVar[PlanReader]

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Fit `AbstractPartitionAssignor.assign`; runs in the group's leader."""
        plan = cls.plans.valid_plan()
        if plan is None:
            log(PLAN_ABSENT, group=cls.plans.group)
            return super().assign(cluster, members)
        log(PLAN_FOLLOWED, group=plan.group, generation=plan.generation)
        group = {name: cls._member(one) for name, one in members.items()}
        topics = {topic for member in group.values() for topic in member.topics}
        partitions = [
            TopicPartition(topic, number)
            for topic in topics
            for number in cluster.partitions_for_topic(topic) or ()
        ]
        readers = target(plan.bins, group, partitions, plan.leaving)
        user_data = cls.next_generation(members)
        return {
            name: ConsumerProtocolMemberAssignment(cls.version, _rows(readers, name), user_data)
            for name in members
        }

    @classmethod
    def _member(cls, metadata: ConsumerProtocolMemberMetadata) -> GroupMember:
        known = cls.parse_member_metadata(metadata)
        return GroupMember(
            topics=frozenset(known.subscription),
            owned=frozenset(TopicPartition(*partition) for partition in known.partitions),
            generation=known.generation,
        )


def planned_assignor(plans: PlanReader) -> type[PlannedAssignor]:
    """Return the assignor of one member, which reads its plans from `plans`."""
    return type("Planned", (PlannedAssignor,), {"plans": plans})


def _rows(readers: Mapping[TopicPartition, str], name: str) -> list[tuple[str, list[int]]]:
    """Return the partitions of one member, by topic."""
    rows: dict[str, list[int]] = {}
    for partition in sorted(p for p, one in readers.items() if one == name):
        rows.setdefault(partition.topic, []).append(partition.partition)
    return list(rows.items())
