"""Deletes old staged files that no table's writer deleted, of whichever consumer and table."""

import asyncio

from binwright.consumer.decide.collection import TopicLog, may_be_collected
from binwright.protocol.errors import BrokerUnavailable, StagingUnavailable, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import DataReader
from binwright.runtime.logs import log
from binwright.tables.ports import Staging

STAGING_COLLECT_FAILED = LogEvent.warning(
    "staging.collect_failed",
    "Old staged files could not be listed or deleted; it is tried again in an hour.",
)
STAGING_KEPT = LogEvent.error(
    "staging.kept",
    "Old staged files are not deleted: they have rows that have not landed, and that Kafka no "
    "longer has.",
)
STAGING_COLLECTED = LogEvent.warning(
    "staging.collected", "Old staged files that nobody deleted were deleted by age."
)

FIRST_COLLECTION_S, COLLECTION_S = 60.0, 3600.0


async def collect_regularly(staging: Staging, reader: DataReader, age_s: float) -> None:
    """Delete files of this age or older every hour, until cancelled."""
    await asyncio.sleep(FIRST_COLLECTION_S)
    while True:
        try:
            tables = sorted(await staging.directories())
        except StagingUnavailable as exc:
            log(STAGING_COLLECT_FAILED, table=None, reason=str(exc))
            tables = []
        for table in tables:
            try:
                await _collect(staging, reader, table, age_s)
            except (StagingUnavailable, BrokerUnavailable) as exc:
                log(STAGING_COLLECT_FAILED, table=table, reason=str(exc))
        await asyncio.sleep(COLLECTION_S)


async def _collect(staging: Staging, reader: DataReader, table: str, age_s: float) -> None:
    if not (old := await staging.older(table, age_s)):
        return
    footers = await staging.footers(table, old)
    # A file of an older version does not have its topic, which has its table's name then.
    topic_of = {name: footer.topic or table for name, footer in footers.items()}
    logs = {topic: await _topic_log(reader, topic) for topic in sorted({*topic_of.values()})}
    kept = {
        name
        for name, footer in footers.items()
        if (topic_log := logs[topic_of[name]]) and not may_be_collected(footer, topic_log)
    }
    if kept:
        log(
            STAGING_KEPT,
            table=table,
            files=len(kept),
            reason="they have rows that have not landed, and Kafka no longer has them",
        )
    if delete := set(old) - kept:
        await staging.delete(table, delete)
        log(STAGING_COLLECTED, table=table, files=len(delete))


async def _topic_log(reader: DataReader, topic: str) -> TopicLog | None:
    """Return what Kafka has of the topic; None: the topic does not exist."""
    try:
        topic_id = await reader.topic_id(topic)
        partitions = await reader.partitions(topic)
        bounds = await reader.bounds(partitions)
        committed = await reader.committed(partitions)
        if await reader.topic_id(topic) != topic_id:
            raise BrokerUnavailable(f"topic {topic} is being recreated")
    except TopicMissing:
        return None
    return TopicLog(
        topic_id,
        {p.partition: begin for p, (begin, _) in bounds.items()},
        {p.partition: o.offset for p, o in committed.items() if o.topic_id == topic_id},
    )
