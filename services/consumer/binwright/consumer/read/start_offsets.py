"""Finds the offset at which a partition begins, and why a log ends before the wanted offset."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from binwright.consumer.decide.land.chain import same_topic
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import DataReader, GroupOffset
from binwright.runtime.backoff import Backoff
from binwright.runtime.logs import log

OFFSETS_NOT_COMMITTED = LogEvent.warning(
    "offsets.not_committed", "Offsets could not be committed to Kafka; the table has them."
)
LOG_CUT = LogEvent.error(
    "log.cut",
    "A partition's log is shorter than what was read of it (an unclean leader election); reading "
    "goes on at its end.",
)
OFFSET_UNKNOWN = LogEvent.error(
    "offset.unknown",
    "The committed offset lies beyond the partition's end and has not landed; reading begins at "
    "the first offset kept.",
)
TOPIC_UNKNOWN = LogEvent.warning(
    "topic.unknown", "Kafka does not return the id of a topic; staging of the topic waits."
)

Bounds = Mapping[TopicPartition, tuple[int, int]]
"""(First offset kept, end offset) of each partition whose leader answers."""

RECHECK_S = 1.0  # a log counts as truncated if its end is the same after this time


class Lookup(Enum):
    """What must be found out about a partition before it can be fetched."""

    KNOWN = "nothing: it begins at a known offset"
    BEGIN = "where the group begins it"
    FIRST = "the first offset kept: its topic was recreated"
    OUT_OF_RANGE = "why it ends before the known offset"


@dataclass(frozen=True, slots=True)
class PendingStart:
    """A partition that is about to be fetched."""

    partition: TopicPartition
    need: Lookup
    offset: int = 0  # the known or the wanted offset
    seen: bool = False  # records up to `offset` were fetched of the current topic


@dataclass(frozen=True, slots=True)
class StartPosition:
    """The offset where a partition begins."""

    pending: PendingStart
    offset: int
    cut: bool = False  # it is the end of a truncated log


@dataclass(frozen=True, slots=True)
class TopicRecreated:
    """The topic has another id than the one that is read."""

    topic_id: str | None


class StartOffsets:
    """Looks up where partitions of one topic begin; all raise `BrokerUnavailable`."""

    def __init__(
        self,
        reader: DataReader,
        *,
        from_latest: bool,
        is_current: Callable[[PendingStart], bool],
    ) -> None:
        """Ask `reader`.

        Args:
            reader: Answers queries about partitions.
            from_latest: Whether a partition without a committed offset begins at its end.
            is_current: Whether the answer is still of use: the partition may have been stopped.
        """
        self._reader, self._from_latest, self._is_current = reader, from_latest, is_current

    async def find(
        self, topic: str, topic_id: str | None, batch: Collection[PendingStart]
    ) -> AsyncIterator[StartPosition | PendingStart | TopicRecreated]:
        """Yield each result as it is found; a `PendingStart` is another lookup that is needed.

        Args:
            topic: The topic of all partitions.
            topic_id: The id of the topic that is read under this name.
            batch: The lookups, all but `Lookup.KNOWN`.

        Raises:
            TopicMissing: Some partitions do not exist; results of the others were yielded.
            BrokerUnavailable: The leaders of some are not known or do not answer; likewise.
        """
        existing = set(await self._reader.partitions(topic))
        begin = [
            entry
            for entry in batch
            if entry.need is not Lookup.OUT_OF_RANGE and entry.partition in existing
        ]
        known = await self._reader.bounds([entry.partition for entry in begin]) if begin else {}
        located = [entry for entry in begin if entry.partition in known]
        async for result in self._starts(topic_id, located, known):
            yield result
        unled = [entry.partition for entry in begin if entry.partition not in known]
        for pending in batch:
            if pending.need is Lookup.OUT_OF_RANGE and self._is_current(pending):
                if (start := await self._out_of_range(topic, topic_id, pending)) is not None:
                    yield start
                else:
                    unled.append(pending.partition)
        if missing := [
            entry.partition
            for entry in batch
            if entry.partition not in existing and self._is_current(entry)
        ]:
            raise TopicMissing(f"no such partitions: {', '.join(map(str, missing))}")
        if unled:
            raise BrokerUnavailable(f"no leader answers for {', '.join(map(str, unled))}")

    async def _starts(
        self, topic_id: str | None, batch: Collection[PendingStart], bounds: Bounds
    ) -> AsyncIterator[StartPosition | PendingStart]:
        by_group = [entry.partition for entry in batch if entry.need is Lookup.BEGIN]
        committed = await self._reader.committed(by_group) if by_group else {}
        await self._commit_first_ends(topic_id, set(by_group) - committed.keys(), bounds)
        for pending in batch:
            begin, end = bounds[pending.partition]
            last = committed.get(pending.partition)
            if last is None or not same_topic(last.topic_id, topic_id):
                latest = self._from_latest and pending.need is Lookup.BEGIN
                yield StartPosition(pending, end if latest else begin)
            elif last.offset <= end:
                yield StartPosition(pending, last.offset)
            elif self._is_current(pending):
                seen = last.topic_id is not None
                yield PendingStart(pending.partition, Lookup.OUT_OF_RANGE, last.offset, seen=seen)

    async def _commit_first_ends(
        self, topic_id: str | None, new: Collection[TopicPartition], bounds: Bounds
    ) -> None:
        """With `latest`, commit the ends where the group begins to read.

        The table's writer may claim hours later: what was staged until then must land.
        """
        if not (self._from_latest and new):
            return
        try:
            await self._reader.commit({p: GroupOffset(bounds[p][1], topic_id) for p in new})
        except BrokerUnavailable as exc:  # reading goes on: also where it may not commit
            log(OFFSETS_NOT_COMMITTED, partitions=len(new), reason=str(exc))

    async def _out_of_range(
        self, topic: str, topic_id: str | None, pending: PendingStart
    ) -> StartPosition | TopicRecreated | None:
        """Distinguish a recreated topic from a truncated log and from a lagging broker.

        Returns:
            None if no leader answers.
        """
        current_id = await self._reader.topic_id(topic)
        if not same_topic(current_id, topic_id):
            return TopicRecreated(current_id)
        if (bounds := await self._confirmed_bounds(pending)) is None:
            return None
        begin, end = bounds
        where = {"partition": str(pending.partition), "wanted": pending.offset, "end": end}
        if end >= pending.offset:
            return StartPosition(pending, pending.offset)
        if pending.seen or await self._landed_beyond(pending, topic_id, end):
            missing = pending.offset - end
            log(LOG_CUT, **where, missing=missing, then="reading continues at its end")
            return StartPosition(pending, end, cut=True)
        log(OFFSET_UNKNOWN, **where, then="reading begins at the first offset kept")
        return StartPosition(pending, begin)

    async def _confirmed_bounds(self, pending: PendingStart) -> tuple[int, int] | None:
        """Return first and end offset; check an end before the wanted offset twice."""
        partition = pending.partition
        if (first := (await self._reader.bounds([partition])).get(partition)) is None:
            return None
        begin, end = first
        if end < pending.offset:
            await asyncio.sleep(RECHECK_S)
            if (second := (await self._reader.bounds([partition])).get(partition)) is None:
                return None
            _, later = second
            if later < end:
                raise BrokerUnavailable(f"the end of {partition} decreases, from {end} to {later}")
            end = later if later >= pending.offset else end  # records after the first look are read
        return begin, end

    async def _landed_beyond(self, pending: PendingStart, topic_id: str | None, end: int) -> bool:
        """Return whether the group landed offsets of this topic id beyond its present end."""
        last = (await self._reader.committed([pending.partition])).get(pending.partition)
        if last is None or last.topic_id is None:
            return False
        return last.topic_id == topic_id and last.offset > end


async def successor(reader: DataReader, topic: str, topic_id: str | None) -> TopicRecreated | None:
    """Return the topic that exists now, if it is not the one of this id; asked until Kafka answers.

    None for a topic that was deleted: none has its name yet.
    """
    pause = Backoff(5.0)
    while True:
        try:
            current_id = await reader.topic_id(topic)
        except TopicMissing:
            return None
        except BrokerUnavailable as exc:
            log(TOPIC_UNKNOWN, topic=topic, reason=str(exc))
            await asyncio.sleep(pause.next())
        else:
            return None if same_topic(current_id, topic_id) else TopicRecreated(current_id)
