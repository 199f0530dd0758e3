"""A consumer as a process: `python -m binwright.consumer --slot N`."""

import argparse
import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from uuid import uuid4

import structlog

from binwright.consumer.ingest import Ingest, IngestRules
from binwright.consumer.intake import KafkaIntake
from binwright.consumer.mailbox import open_mailbox
from binwright.consumer.staging import FileStaging
from binwright.consumer.writer.housekeeping import HousekeepingRules
from binwright.consumer.writer.opening import lake_opener
from binwright.consumer.writer.writers import Writers
from binwright.core.consumer.batch import BatchRules
from binwright.core.errors import SettingsError
from binwright.core.model import Slot
from binwright.core.ports import Table
from binwright.core.writer.requests import WriterRules
from binwright.shell.bus import KafkaBus
from binwright.shell.health import served
from binwright.shell.report_gauges import consumer_samples
from binwright.shell.run import meanwhile
from binwright.shell.serve import serve
from binwright.shell.settings import Settings

log = structlog.get_logger()


def wall_ms() -> int:
    """Return the wall clock, to stamp messages with."""
    return time.time_ns() // 1_000_000


async def consume(settings: Settings, slot: Slot) -> None:
    """Be the consumer of `slot` until told to leave; drain when cancelled.

    Raises:
        SettingsError: The group has no such slot.
        Superseded: Another process is this slot now.
        WorldError: Kafka cannot be reached, or no controller made a place for the slot.
    """
    if not 0 <= slot < settings.controller.max_slots:
        raise SettingsError(f"--slot must be 0 to {settings.controller.max_slots - 1}")
    structlog.contextvars.bind_contextvars(slot=slot)
    chosen = settings.consumer
    async with (
        AsyncExitStack() as stack,
        served(settings.health) as health,
        FileStaging(settings.staging_path) as staging,
        KafkaBus(settings.kafka) as bus,
        KafkaIntake(settings.kafka, settings.group, chosen.isolation) as intake,
    ):
        process = f"{socket.gethostname()}/{os.getpid()}/{uuid4().hex[:8]}"
        cluster = await intake.cluster_id()
        mailbox = await open_mailbox(
            bus, settings.metadata_topic, slot, process, version("binwright"), wall_ms
        )
        log.info("hello.sent", epoch=mailbox.epoch, process=process)
        ingest = Ingest(
            mailbox=mailbox,
            intake=intake,
            staging=staging,
            landing_topic=settings.landing_topic,
            rules=_ingest_rules(settings),
            wall_ms=wall_ms,
            beat=health.beat,
        )
        writers = Writers(
            open_lake=lake_opener(
                stack, settings.lake, settings.staging_path, chosen.write_timeout_s
            ),
            bus=bus,
            landing_topic=settings.landing_topic,
            intake=intake,
            staging=staging,
            rules=_writer_rules(settings, cluster, process),
            housekeeping=_housekeeping_rules(settings),
            on_lost=ingest.lost,
            on_written=ingest.written,
            on_gap=ingest.gap,
        )
        health.measures.append(lambda: consumer_samples(settings.group, ingest.report()))
        health.ready = lambda: "" if ingest.ready.is_set() else f"{staging} cannot be written yet"

        async def warm_up() -> None:
            await ingest.ready.wait()
            await intake.warm_up(settings.topics)

        try:
            async with meanwhile(warm_up()):
                await _until_drained(ingest, writers, chosen.drain_timeout_s)
        finally:
            await mailbox.reader.close()


def _ingest_rules(settings: Settings) -> IngestRules:
    chosen = settings.consumer
    return IngestRules(
        batch=BatchRules(chosen.batch_bytes, settings.staging_interval_s, chosen.batch_cap_bytes),
        from_latest=chosen.start == "latest",
        report_s=chosen.report_s,
        drain_s=chosen.drain_timeout_s / 2,
        staged_bytes=settings.staging.max_bytes,
        staged_keep_s=settings.staging.keep_s,
    )


def _writer_rules(
    settings: Settings, cluster: str, process: str
) -> Callable[[str, int], WriterRules]:
    def rules(topic: str, term: int) -> WriterRules:
        return WriterRules(
            table=Table(topic, settings.group, cluster),
            writer=f"{process}/{uuid4().hex[:8]}",
            term=term,
            from_latest=settings.consumer.start == "latest",
            freshness_s=settings.lake.freshness_s,
            batch_bytes=settings.lake.batch_bytes,
        )

    return rules


def _housekeeping_rules(settings: Settings) -> HousekeepingRules:
    lake = settings.lake
    return HousekeepingRules(lake.compact_files, lake.vacuum_interval_s, lake.target_file_bytes)


async def _until_drained(ingest: Ingest, writers: Writers, patience_s: float) -> None:
    """Work; when cancelled, give away what is read and say Goodbye, or leave silently."""
    working = asyncio.create_task(ingest.run(writers))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        if working.cancelled():
            raise
        ingest.leave()
        try:
            async with asyncio.timeout(patience_s):
                await working
        except TimeoutError:
            log.warning("drain.overdue", seconds=patience_s, then="left silently")
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one consumer with the settings of the file and the environment."""
    parser = argparse.ArgumentParser(prog="python -m binwright.consumer", description=__doc__)
    parser.add_argument("--slot", type=int, required=True, help="the consumer's number, 0 or more")
    parser.add_argument("--realm", help="whose process this is; only for telling it from others")
    slot = Slot(parser.parse_args(arguments).slot)
    return serve(lambda settings: consume(settings, slot))


if __name__ == "__main__":
    sys.exit(main())
