"""What Kafka knows of the topics of one table."""

import asyncio
from collections.abc import Collection, Mapping

from binwright.consumer.decide.land.chain import same_topic
from binwright.consumer.decide.land.states import (
    KafkaState,
    LandedOffsets,
    QueryKafka,
    Unclear,
)
from binwright.consumer.land.context import WriterContext
from binwright.kafka.control_records import landing_partition
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import TopicState
from binwright.protocol.texts import first_of
from binwright.tables.ports import PartitionOffsets

KAFKA_TIMEOUT_S = 10.0  # of a query about one table
SHOWN = 10  # of topics in a message


class KafkaQueries:
    """Queries for the writer of one table; they raise errors of Kafka."""

    def __init__(self, context: WriterContext, table: str) -> None:
        self._context, self._table = context, table
        self._last = KafkaState({}, {}, landing_id=None)

    async def state(self, query: QueryKafka) -> KafkaState | Unclear:
        """Query Kafka; of topics of which nothing is known for now, the others are not held up."""
        bus, partition = self._context.bus, landing_partition(self._table)
        landing_topic = self._context.landing_topic
        try:
            async with asyncio.timeout(KAFKA_TIMEOUT_S):
                topics = await self._context.reader.topic_states(query.topics)
                known = {t: each for t, each in sorted(topics.items()) if each is not None}
                unknown = topics.keys() - known
                if not known and unknown:
                    raise BrokerUnavailable(f"Kafka does not describe {_some(unknown)} now")
                if not known:
                    raise TopicMissing(f"no such topics: {_some(query.topics)}")
                landing_id = await bus.topic_id(landing_topic)
                landing_end = await bus.end(landing_topic, partition)
                new = {p for t in query.begins_of & known.keys() for p in _partitions(known[t])}
                group = await self._context.reader.committed(new) if new else {}
        except TimeoutError:
            return Unclear(f"Kafka did not answer within {KAFKA_TIMEOUT_S:g} s")
        topic_ids = {topic: each.topic_id for topic, each in known.items()}
        self._last = KafkaState(
            topic_ids,
            {p: bounds for each in known.values() for p, bounds in each.bounds.items()},
            landing_id=landing_id,
            landing_end=landing_end,
            readable={p: end for each in known.values() for p, end in each.readable.items()},
            leaderless=frozenset(p for each in known.values() for p in each.leaderless),
            unknown=frozenset(unknown),
            group={p: o.offset for p, o in group.items() if o.topic_id == topic_ids[p.topic]},
        )
        return self._last

    async def landed_offsets(
        self, highest: PartitionOffsets, topic_ids: Mapping[str, str | None]
    ) -> LandedOffsets:
        """Return what has landed, by the highest offsets of the rows and the group's offsets.

        Rows do not carry a topic id. If a partition's committed offset belongs to another topic of
        the same name, so do its rows, and neither counts.

        Raises:
            BrokerUnavailable: There are rows of a topic of which nothing is known for now (†): they
                would land again.
        """
        if unknown := self._last.unknown & {p.topic for p in highest}:
            raise BrokerUnavailable(
                f"what has landed of {_some(unknown)} is not known before Kafka describes it"
            )
        own = {p for p in highest if p.topic in topic_ids}
        asked = {*self._last.bounds, *self._last.leaderless, *own}
        offsets = await self._context.reader.committed(asked)
        return LandedOffsets(
            highest_offsets={
                p: offset
                for p, offset in highest.items()
                if p not in offsets or same_topic(offsets[p].topic_id, topic_ids[p.topic])
            },
            group={p: o.offset for p, o in offsets.items() if o.topic_id == topic_ids[p.topic]},
        )


def _partitions(state: TopicState) -> Collection[TopicPartition]:
    return state.bounds.keys() | state.leaderless


def _some(topics: Collection[str]) -> str:
    return first_of(sorted(topics), SHOWN)
