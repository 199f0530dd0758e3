"""A member of one of today's groups, as a process: polls and notes what it got until SIGTERM."""

import argparse
import asyncio
import os
import signal
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from confluent_kafka import Consumer

from bench.handover.marks import Marks

POLL_S = 0.1
ASSIGNORS = {"aiokafka-range": RangePartitionAssignor, "aiokafka-sticky": StickyPartitionAssignor}
PROTOCOLS: dict[str, dict[str, str]] = {
    "cooperative-sticky": {"partition.assignment.strategy": "cooperative-sticky"},
    "kip-848": {"group.protocol": "consumer"},
}
KINDS = (*ASSIGNORS, *PROTOCOLS)


async def poll_aiokafka(wanted: argparse.Namespace, marks: Marks) -> None:
    """Poll with aiokafka until asked to end; leave the group in good order."""
    consumer = AIOKafkaConsumer(
        wanted.topic,
        bootstrap_servers=wanted.bootstrap,
        group_id=wanted.group,
        partition_assignment_strategy=(ASSIGNORS[wanted.kind],),
        auto_offset_reset="latest",
        auto_commit_interval_ms=1000,
    )
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    await consumer.start()
    while not asked.is_set():
        batches = await consumer.getmany(timeout_ms=round(POLL_S * 1000))
        marks.add({tp.partition: (rs[0].offset, rs[-1].offset) for tp, rs in batches.items()})
    await consumer.stop()


def poll_confluent(wanted: argparse.Namespace, marks: Marks) -> None:
    """Poll with librdkafka until asked to end; leave the group in good order."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": wanted.bootstrap,
            "group.id": wanted.group,
            "auto.offset.reset": "latest",
            "auto.commit.interval.ms": 1000,
            **PROTOCOLS[wanted.kind],
        }
    )
    consumer.subscribe([wanted.topic])
    while not asked:
        ranges: dict[int, tuple[int, int]] = {}
        for message in consumer.consume(1, POLL_S) + consumer.consume(1000, 0):
            if message.error() is None:
                partition, offset = message.partition(), message.offset()
                ranges[partition] = (ranges.get(partition, (offset, 0))[0], offset)
        marks.add(ranges)
    consumer.close()


def main() -> None:
    """Be a member until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    for name in ("--bootstrap", "--topic", "--group", "--marks"):
        parser.add_argument(name, required=True)
    wanted = parser.parse_args()
    marks = Marks(Path(wanted.marks), os.getpid())
    if wanted.kind in ASSIGNORS:
        asyncio.run(poll_aiokafka(wanted, marks))
    else:
        poll_confluent(wanted, marks)


if __name__ == "__main__":
    main()
