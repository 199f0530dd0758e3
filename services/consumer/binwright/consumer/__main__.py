"""A consumer as a process: `python -m binwright.consumer --slot N`."""

import argparse
import asyncio
import os
import socket
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from uuid import uuid4

import structlog

from binwright.consumer.ingest import Ingest, IngestRules
from binwright.consumer.intake import KafkaIntake
from binwright.consumer.landing import Tables
from binwright.consumer.mailbox import open_mailbox
from binwright.consumer.table import DeltaLake
from binwright.core.batch import BatchRules
from binwright.core.errors import SettingsError
from binwright.core.model import Slot
from binwright.shell.bus import KafkaBus
from binwright.shell.health import served
from binwright.shell.serve import serve
from binwright.shell.settings import Settings

log = structlog.get_logger()


def wall_ms() -> int:
    """Return the wall clock, to stamp messages with."""
    return time.time_ns() // 1_000_000


async def consume(settings: Settings, slot: Slot) -> None:
    """Be the consumer of `slot` until told to leave; drain when cancelled.

    Raises:
        SettingsError: No topic is named, or the group has no such slot.
        UserError: A table cannot be had.
        Fenced: Another process is this slot now.
        WorldError: Kafka cannot be reached, or no controller made a place for the slot.
    """
    if not 0 <= slot < settings.controller.max_slots:
        raise SettingsError(f"--slot must be 0 to {settings.controller.max_slots - 1}")
    if not settings.topics:
        raise SettingsError('no topics: set topics = ["…"] or BINWRIGHT_TOPICS=\'["…"]\'')
    structlog.contextvars.bind_contextvars(slot=slot)
    chosen = settings.consumer
    async with (
        served(settings.health) as health,
        DeltaLake(settings.lake, chosen.write_timeout_s, early=settings.topics) as lake,
        KafkaBus(settings.kafka) as bus,
        KafkaIntake(settings.kafka, settings.group, settings.topics, chosen.isolation) as intake,
    ):
        process = f"{socket.gethostname()}/{os.getpid()}/{uuid4().hex[:8]}"
        mailbox = await open_mailbox(
            bus, settings.metadata_topic, slot, process, version("binwright")
        )
        log.info("hello.said", epoch=mailbox.epoch, process=process)
        ingest = Ingest(
            mailbox=mailbox,
            intake=intake,
            tables=Tables(lake, settings.group, slot, mailbox.epoch),
            topics=settings.topics,
            rules=IngestRules(
                batch=BatchRules(chosen.batch_bytes, chosen.batch_wait_s, chosen.batch_cap_bytes),
                from_latest=chosen.start == "latest",
                report_s=chosen.report_s,
                relief_s=chosen.drain_timeout_s / 2,
            ),
            wall_ms=wall_ms,
            beat=health.beat,
        )
        health.ready = lambda: "" if ingest.consumer.ready else "its claims do not stand yet"
        try:
            await _until_drained(ingest, chosen.drain_timeout_s)
        finally:
            await mailbox.reader.close()


async def _until_drained(ingest: Ingest, patience_s: float) -> None:
    """Work; when cancelled, give away what is read and say Goodbye, or leave silently."""
    working = asyncio.create_task(ingest.run())
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
            log.warning("drain.overdue", seconds=patience_s, then="left silently, to be fenced")
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
