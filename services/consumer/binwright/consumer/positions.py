"""Where partitions begin, and whether their topics are still those that were claimed for."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from binwright.consumer.landing import Tables
from binwright.core.errors import BrokerUnavailable, TopicMissing, TopicRecreated
from binwright.core.model import TopicPartition
from binwright.core.ports import Hint, Intake
from binwright.core.stamp import same_topic

log = structlog.get_logger()

RETRY_S = 1.0


class Positions:
    """What tables, hints and topics together say about offsets."""

    def __init__(self, intake: Intake, tables: Tables, *, from_latest: bool) -> None:
        self._intake, self._tables, self._from_latest = intake, tables, from_latest

    async def claim(self, topic: str) -> None:
        """Shut out older epochs of this slot from the topic's table; see `Tables.claim`.

        Raises:
            TopicMissing: There is no such topic now.
        """
        await self._tables.claim(topic, await self._topic_id(topic))

    async def _topic_id(self, topic: str) -> str | None:
        """Ask for it, as long as it takes: whose offsets these are decides where to begin."""
        while True:
            try:
                return await self._intake.topic_id(topic)
            except BrokerUnavailable as exc:
                log.warning("topic.unknown", topic=topic, reason=str(exc))
                await asyncio.sleep(RETRY_S)

    async def check(self, topic: str) -> None:
        """Raise `TopicRecreated` if what was fetched may be of another topic than claimed for."""
        try:
            found = await self._topic_id(topic)
        except TopicMissing:
            return  # what we have is of the one that was deleted
        if not same_topic(found, self._tables.topic_ids[topic]):
            # Only a new process resolves anew where to begin; the fleet starts one.
            raise TopicRecreated(f"topic {topic} was deleted and made anew, its id is {found} now")

    async def offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the next offset to land of each; the fences must stand before (†).

        Raises:
            BrokerUnavailable, TopicMissing: Kafka does not say what there is.
        """
        hints = await self._intake.hints(partitions)
        bounds = await self._intake.bounds(partitions)
        known: dict[TopicPartition, int] = {}
        for topic in sorted({p.topic for p in partitions}):
            known |= await self._tables.resolve([p for p in partitions if p.topic == topic], hints)
        return {p: self._first(p, known.get(p), *bounds[p]) for p in partitions}

    def _first(self, partition: TopicPartition, known: int | None, begin: int, end: int) -> int:
        rule = end if self._from_latest else begin
        if known is not None and known > end:
            log.error("topic.recreated", partition=str(partition), landed=known, end=end)
            return rule
        return rule if known is None else known

    async def hint(self, topic: str, landed: Mapping[TopicPartition, int]) -> None:
        """Tell Kafka's tools where we are: what is read now, and our own last commit (†)."""
        if not landed:
            return
        tables = self._tables
        commit = tables.versions[topic], tables.ids[topic], tables.topic_ids[topic]
        try:
            await self._intake.hint({p: Hint(offset, *commit) for p, offset in landed.items()})
        except BrokerUnavailable as exc:
            log.warning("hint.failed", topic=topic, reason=str(exc))  # it is only a hint
