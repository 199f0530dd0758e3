"""Deletes old staged files that no table's writer deleted, of whichever consumer and table."""

import asyncio

import structlog

from binwright.consumer.decide.collection import TopicLog, may_be_collected
from binwright.protocol.errors import BrokerUnavailable, StagingUnavailable, TopicMissing
from binwright.protocol.ports.kafka import DataReader
from binwright.tables.ports import Staging

log = structlog.get_logger()

FIRST_COLLECTION_S, COLLECTION_S = 60.0, 3600.0


async def collect_regularly(staging: Staging, reader: DataReader, age_s: float) -> None:
    """Delete files of this age or older every hour, until cancelled."""
    await asyncio.sleep(FIRST_COLLECTION_S)
    while True:
        try:
            tables = sorted(await staging.topics())
        except StagingUnavailable as exc:
            log.warning("staging.collect_failed", table=None, reason=str(exc))
            tables = []
        for table in tables:
            try:
                await _collect(staging, reader, table, age_s)
            except (StagingUnavailable, BrokerUnavailable) as exc:
                log.warning("staging.collect_failed", table=table, reason=str(exc))
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
        log.error(
            "staging.kept",
            table=table,
            files=len(kept),
            reason="they have rows that have not landed, and Kafka no longer has them",
        )
    if delete := set(old) - kept:
        await staging.delete(table, delete)
        log.warning("staging.collected", table=table, files=len(delete))


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
