"""The consumer process: `python -m binwright.consumer --slot N`."""

import argparse
import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.metadata import version
from uuid import uuid4

import structlog

from binwright.consumer.decide.buffer import BatchConfig
from binwright.consumer.decide.land.compaction import CompactionConfig
from binwright.consumer.decide.land.states import WriterConfig
from binwright.consumer.decide.memory import MemoryShares, memory_shares
from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.ingest import Ingest, IngestConfig
from binwright.consumer.land.announcements import LandingTopic
from binwright.consumer.land.backfill import PIECE_BYTES, EarlierStager
from binwright.consumer.land.context import SharedLake, WriterContext
from binwright.consumer.land.maintenance import MaintenanceConfig, TableMaintenance
from binwright.consumer.land.orders import TableOrders
from binwright.consumer.land.replay import BadRecordDecoder
from binwright.consumer.land.writers import Writers
from binwright.consumer.mailbox import open_mailbox
from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.consumer.read.ranges import RangeReader
from binwright.consumer.report_metrics import consumer_samples
from binwright.consumer.stage.added_columns import AddedColumns
from binwright.consumer.stage.file_staging import FileStaging
from binwright.consumer.stage.file_writer import RowWriter
from binwright.consumer.stage.timings import Timings
from binwright.kafka.batches import LARGE_BYTES
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.own_topics import check_own
from binwright.protocol.errors import SettingsError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import Slot
from binwright.runtime.clock import wall_ms
from binwright.runtime.health import serve_health
from binwright.runtime.logs import log
from binwright.runtime.memory import give_back_freed_memory, memory_limit
from binwright.runtime.run import background_tasks
from binwright.runtime.secret_files import secret_at_start
from binwright.runtime.serve import serve
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.group import Settings
from binwright.runtime.traces import open_traces
from binwright.tables.ports import Lake, Table
from binwright.tables.targets import Target

HELLO_SENT = LogEvent.info("hello.sent", "The consumer process sent its `Hello` and has its epoch.")
DRAIN_OVERDUE = LogEvent.warning(
    "drain.overdue",
    "The graceful exit took longer than `consumer.drain_timeout_s`; the consumer ends without a "
    "`Goodbye`.",
)

DAY_S = 86_400.0


async def consume(settings: Settings, slot: Slot) -> None:
    """Run the consumer of `slot` until a controller ends it; drain when cancelled.

    Raises:
        SettingsError: The group has no such slot.
        Superseded: A newer process has this slot.
        ExternalError: Kafka cannot be reached, or no controller created the slot's partition.
    """
    if not 0 <= slot < settings.controller.max_slots:
        raise SettingsError(f"--slot must be 0 to {settings.controller.max_slots - 1}")
    for mask in filter(None, (table.mask for table in settings.tables)):
        if mask.key_file is not None:
            secret_at_start(mask.key_file, "tables.mask.key_file")
    structlog.contextvars.bind_contextvars(slot=slot)
    config = settings.consumer
    shares = memory_shares(memory_limit(), config.value_memory_bytes)
    memory = DecodingMemory(shares.values)
    async with (
        AsyncExitStack() as stack,
        serve_health(settings.health, settings.kafka.ssl_certificate_file) as health,
        open_traces(settings.traces, "binwright-consumer") as trace,
        FileStaging(
            settings.staging_path,
            memory,
            encoded_bytes=shares.encoded,
            moved=settings.staging.path is not None,
            in_place=settings.lake.commit == "auto",
        ) as staging,
        Decoders(settings, memory.most_bytes, added_of=AddedColumns(staging).of) as decoders,
        KafkaControlTopics(settings.kafka) as bus,
        _data_reader(settings, shares) as reader,
    ):
        process = f"{socket.gethostname()}/{os.getpid()}/{uuid4().hex[:8]}"
        cluster = await reader.cluster_id()
        await check_own(bus, settings.landing_topic)
        mailbox = await open_mailbox(
            bus,
            settings.metadata_topic,
            settings.commands_topic,
            slot,
            process,
            version("binwright"),
            wall_ms,
        )
        log(HELLO_SENT, epoch=mailbox.epoch, process=process)
        open_lake = lake_opener(stack, settings.lake, settings.staging_path, config.write_timeout_s)
        ranges = RangeReader(partial(_data_reader, settings, shares), staging)
        stack.push_async_callback(ranges.close)
        timings = Timings(settings.group, slot, health.registry, trace)
        context = WriterContext(
            lake=SharedLake(open_lake),
            targets=settings.targets,
            server=settings.lake.server,
            append_limit_s=config.write_timeout_s,
            bus=bus,
            landing_topic=settings.landing_topic,
            announcements=LandingTopic(bus, settings.landing_topic),
            orders=TableOrders(bus, settings.orders_topic),
            reader=reader,
            staging=staging,
            config=_writer_config(settings, cluster),
            maintenance=TableMaintenance(_maintenance_config(settings), settings.lake.server),
            bad_records=BadRecordDecoder(
                staging=staging,
                decoder_of=decoders.of,
                mask_of=decoders.mask_of,
                memory=memory,
            ),
            earlier=EarlierStager(
                reader=ranges,
                writer=RowWriter(staging=staging, decoder_of=decoders.of, mask_of=decoders.mask_of),
                piece_bytes=min(PIECE_BYTES, shares.part // 2),  # beside parts of split partitions
            ),
            timings=timings,
        )
        ingest = Ingest(
            mailbox=mailbox,
            reader=reader,
            part_reader=partial(_data_reader, settings, shares),
            staging=staging,
            landing_topic=settings.landing_topic,
            writers=partial(Writers, context),
            config=_ingest_config(settings, shares, decoders, cluster),
            wall_ms=wall_ms,
            timings=timings,
            beat=health.beat,
        )
        health.collectors.append(
            lambda: consumer_samples(settings.group, ingest.report(), wall_ms(), decoders.totals())
        )
        health.ready = lambda: "" if ingest.ready.is_set() else f"{staging} cannot be written yet"

        async def warm_up() -> None:
            await ingest.ready.wait()
            await reader.warm_up(settings.topics)

        try:
            async with background_tasks(warm_up()):
                await _until_drained(ingest, config.drain_timeout_s)
        finally:
            await mailbox.reader.close()


def _data_reader(settings: Settings, shares: MemoryShares) -> KafkaDataReader:
    config = settings.consumer
    return KafkaDataReader(
        settings.kafka,
        settings.group,
        config.isolation,
        config.batch_inflated_bytes,
        config.zone,
        large_bytes=min(LARGE_BYTES, shares.large),
    )


def lake_opener(
    stack: AsyncExitStack, lake: LakeSettings, staged: str, write_timeout_s: float
) -> Callable[[], Awaitable[Lake]]:
    """Return a function that opens a `SparkLake` with these arguments; `stack` closes it.

    Only then pyspark is imported: that takes a second and 100 MB in each process.
    """

    async def open_lake() -> Lake:
        module = await asyncio.to_thread(import_module, "binwright.consumer.land.lake.spark_lake")
        opened: Lake = await stack.enter_async_context(
            module.SparkLake(lake, staged, write_timeout_s)
        )
        return opened

    return open_lake


def _ingest_config(
    settings: Settings, shares: MemoryShares, decoders: Decoders, cluster: str
) -> IngestConfig:
    config = settings.consumer
    return IngestConfig(
        batch=BatchConfig(
            min(config.batch_bytes, shares.part),
            settings.staging_interval_s,
            min(config.batch_cap_bytes, shares.buffered),
            time.time() - time.monotonic(),
        ),
        targets=settings.targets,
        decoder_of=decoders.of,
        mask_of=decoders.mask_of,
        new_fields=decoders.new_fields,
        from_latest=config.start == "latest",
        freshness_s=settings.lake.freshness_s,
        report_s=config.report_s,
        zone=config.zone,
        drain_s=config.drain_timeout_s / 2,
        staged_bytes=settings.staging.max_bytes,
        staged_retention_s=settings.staging.retention_s,
        staging_owner=f"group {settings.group} of Kafka's cluster {cluster}",
    )


def _writer_config(settings: Settings, cluster: str) -> Callable[[Target], WriterConfig]:
    def config(target: Target) -> WriterConfig:
        owner, keep_s = (target.topic, settings.group, cluster), DAY_S * settings.keep_days(target)
        name = settings.register_as(target)
        raw = WriterConfig(
            table=Table(*owner, keep_s=keep_s, named=target.name, register_as=name),
            writer=uuid4().hex,
            from_latest=settings.consumer.start == "latest",
            freshness_s=settings.lake.freshness_s,
            staging_s=settings.staging_interval_s,
            batch_bytes=settings.lake.batch_bytes,
            in_place=settings.lake.commit == "auto",
            small_file_bytes=settings.lake.compact_below_bytes,
            masking=target.masking,
            from_earliest=target.entry is not None and target.entry.begin == "earliest",
            made_ms=wall_ms(),
        )
        if (entry := target.decoded) is None:
            return raw
        return replace(
            raw,
            table=replace(
                raw.table,
                columns=entry.table_columns,
                cluster_by=entry.cluster_by,
                statistics=entry.statistics,
                by_date=target.by_day,
                widen=entry.widen,
                primary_key=entry.primary_key,
                sequence_by=entry.sequence_by,
                skips_tombstones=entry.tombstones == "skip",
                where=entry.where,
            ),
            bad_share=entry.bad_share,
            fixed=entry.known if entry.new_fields == "add" else None,
            decoding=entry.decoding,
            keying=entry.keying,
            retention_s=settings.lake.vacuum_retention_s,
        )

    return config


def _maintenance_config(settings: Settings) -> MaintenanceConfig:
    lake = settings.lake
    return MaintenanceConfig(
        compaction=CompactionConfig(
            lake.compact_files, lake.compact_below_bytes, lake.target_file_bytes
        ),
        vacuum_interval_s=lake.vacuum_interval_s,
        cluster_bytes=lake.cluster_bytes,
    )


async def _until_drained(ingest: Ingest, timeout_s: float) -> None:
    """Run; when cancelled, hand partitions over, for `timeout_s` seconds at most, then return."""
    working = asyncio.create_task(ingest.run())
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        if working.cancelled():
            raise
        ingest.leave()
        try:
            async with asyncio.timeout(timeout_s):
                await working
        except TimeoutError:
            log(DRAIN_OVERDUE, seconds=timeout_s, then="left silently")
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one consumer with the settings of the file and the environment."""
    parser = argparse.ArgumentParser(prog="python -m binwright.consumer", description=__doc__)
    parser.add_argument("--slot", type=int, required=True, help="the consumer's number, 0 or more")
    parser.add_argument(
        "--instance",
        help="the group and cluster of this process: a label by which a fleet finds its processes",
    )
    slot = Slot(parser.parse_args(arguments).slot)
    give_back_freed_memory()
    return serve(lambda settings: consume(settings, slot), Settings)


if __name__ == "__main__":
    sys.exit(main())
