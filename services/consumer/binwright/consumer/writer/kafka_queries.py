"""What Kafka knows of the topics of one table."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain

from binwright.consumer.decide.writer.chain import same_topic
from binwright.consumer.decide.writer.states import (
    KafkaState,
    LandedOffsets,
    QueryKafka,
    Unclear,
)
from binwright.consumer.writer.context import WriterContext
from binwright.kafka.control_records import landing_partition
from binwright.protocol.errors import TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.lake import PartitionOffsets

KAFKA_TIMEOUT_S = 10.0  # of a query about one table


class KafkaQueries:
    """Queries for the writer of one table; they raise errors of Kafka."""

    def __init__(self, context: WriterContext, table: str) -> None:
        self._context, self._table = context, table

    async def state(self, query: QueryKafka) -> KafkaState | Unclear:
        """Query Kafka; topic ids first and last, so that the rest is about the same topics."""
        bus, partition = self._context.bus, landing_partition(self._table)
        landing_topic = self._context.landing_topic
        try:
            async with asyncio.timeout(KAFKA_TIMEOUT_S):
                topic_ids = await self._existing(query.topics)
                state = await self._bounds(topic_ids)
                landing_id = await bus.topic_id(landing_topic)
                landing_end = await bus.end(landing_topic, partition)
                known = (*state.bounds, *state.leaderless)
                new = {p for p in known if p.topic in query.begins_of}
                group = await self._context.reader.committed(new) if new else {}
                ids_after = await self._existing(query.topics)
        except TimeoutError:
            return Unclear(f"Kafka did not answer within {KAFKA_TIMEOUT_S:g} s")
        if changed := sorted(t for t in query.topics if topic_ids.get(t) != ids_after.get(t)):
            return Unclear(f"topic {changed[0]} is being recreated")
        return replace(
            state,
            landing_id=landing_id,
            landing_end=landing_end,
            group={p: o.offset for p, o in group.items() if o.topic_id == topic_ids[p.topic]},
        )

    async def landed_offsets(
        self, highest: PartitionOffsets, topic_ids: Mapping[str, str | None]
    ) -> LandedOffsets:
        """Return what has landed, by the highest offsets of the rows and the group's offsets.

        Rows do not carry a topic id. If a partition's committed offset belongs to another topic of
        the same name, so do its rows, and neither counts.
        """
        own = {p for p in highest if p.topic in topic_ids}
        offsets = await self._context.reader.committed({*await self._partitions(topic_ids), *own})
        return LandedOffsets(
            highest_offsets={
                p: offset
                for p, offset in highest.items()
                if p not in offsets or same_topic(offsets[p].topic_id, topic_ids[p.topic])
            },
            group={p: o.offset for p, o in offsets.items() if o.topic_id == topic_ids[p.topic]},
        )

    async def _existing(self, topics: Collection[str]) -> Mapping[str, str | None]:
        """Return the ids of those that exist; raise `TopicMissing` if none does."""
        ordered = sorted(topics)
        topic_id = self._context.reader.topic_id
        ids = await asyncio.gather(*map(topic_id, ordered), return_exceptions=True)
        found: dict[str, str | None] = {}
        missing: TopicMissing | None = None
        for topic, each in zip(ordered, ids, strict=True):
            if isinstance(each, TopicMissing):  # it holds no other topic of the table
                missing = each
            elif isinstance(each, BaseException):
                raise each
            else:
                found[topic] = each
        if missing is not None and not found:
            raise missing
        return found

    async def _bounds(self, topic_ids: Mapping[str, str | None]) -> KafkaState:
        partitions = await self._partitions(topic_ids)
        bounds = await self._context.reader.bounds(partitions)
        leaderless = frozenset(p for p in partitions if p not in bounds)
        return KafkaState(topic_ids, bounds, landing_id=None, leaderless=leaderless)

    async def _partitions(self, topics: Collection[str]) -> Collection[TopicPartition]:
        each = await asyncio.gather(*map(self._context.reader.partitions, topics))
        return [*chain.from_iterable(each)]
