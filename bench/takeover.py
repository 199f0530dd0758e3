"""`make bench NAME=takeover`: how soon a controller acts that takes over a large group after a day.

Partition 0 of the metadata topic is written as a day of 200 consumers' reports leaves it at its
worst. The segment that is being written and the one before are not compacted: the reports of almost
twenty minutes stand there, each a batch of its own. Of all before them there is what the broker's
cleaner leaves; time stamps are back-dated, and the bench waits until it has been there. Then the
consumers (simulated) report on, a monitor measures a partition without a reader, and a controller
starts: the product's process. The bench prints how long after its claim it has asked the
consumers, decided, and had the new partition read.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench import figures
from bench.fake_consumers import FakeConsumer, measurement
from binwright.kafka.control_records import (
    COMMANDS_CONFIG,
    CONTROLLER_PARTITION,
    METADATA_CONFIG,
    METRICS_CONFIG,
    messages,
)
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.local.child import Child, Command
from binwright.local.kafka import run_broker
from binwright.protocol import wire
from binwright.protocol.metadata import (
    Claim,
    Hello,
    Inbound,
    Planned,
    Report,
    Started,
    TableReport,
    decode_inbound,
)
from binwright.protocol.model import BytesPerSecond, Slot
from binwright.protocol.model import TopicPartition as KafkaPartition
from binwright.protocol.wire import split_message
from binwright.runtime.environment import clean_environment
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.group import Settings, load_settings

CONSUMERS, TOPICS, PER_TOPIC = 200, 10, 1_000
EACH = TOPICS * PER_TOPIC // CONSUMERS
RATE, LIMIT = 1_000.0, 1.5 * EACH * 1_000.0
GROUP, METRICS = "takeover", "bench.metrics"
METADATA = f"{GROUP}.metadata"
SEGMENT_S = 600  # as in METADATA_CONFIG
HISTORY_S = 3 * SEGMENT_S - 60
"""Three segments: the first is compacted, the second too young for it, the third being written."""
AHEAD_S = 150
"""What writing and cleaning take at most: history ends by so much later than it is written."""
CLEANED_MOST_S, ACTED_MOST_S = 120.0, 120.0
NAMES = [f"topic-{number:02}" for number in range(TOPICS)]
NEW = KafkaPartition(NAMES[0], PER_TOPIC)
ROOT = Path(__file__).parents[1]


def reads(slot: int) -> list[KafkaPartition]:
    """Return what a consumer reads."""
    numbers = range(slot * EACH, (slot + 1) * EACH)
    return [KafkaPartition(NAMES[n // PER_TOPIC], n % PER_TOPIC) for n in numbers]


def writes(slot: int) -> list[str]:
    """Return the tables that a consumer writes: each topic's first reader does."""
    return [reads(slot)[0].topic] if reads(slot)[0].partition == 0 else []


def report(slot: int, epoch: int) -> Report:
    """Return what a consumer reports each second."""
    tables = {
        topic: TableReport(
            state="landing",
            committed={KafkaPartition(topic, number): 123_456_789 for number in range(PER_TOPIC)},
            age_s=1.5,
            rows=98_765_432,
            commits=12_345,
        )
        for topic in writes(slot)
    }
    return Report(
        slot=Slot(slot),
        epoch=epoch,
        term=CONSUMERS,
        ready=True,
        reading=dict.fromkeys(reads(slot), 123_456_789),
        writing=tables,
        rate=EACH * RATE,
        staged_rows=98_765_432,
        staged_bytes=1_234_567,
    )


def plan() -> Planned:
    """Return the group's last plan, which stands there once."""
    targets = {p: Slot(slot) for slot in range(CONSUMERS) for p in reads(slot)}
    return Planned(
        term=CONSUMERS,
        reasons=("bench",),
        consumers=CONSUMERS,
        moves={},
        rscore=0.0,
        rates=dict.fromkeys(targets, BytesPerSecond(RATE)),
        targets=targets,
    )


class Log:
    """Partition 0, written with time stamps of our own."""

    def __init__(self, servers: str) -> None:
        self._failed: list[str] = []
        self.written = 0
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "compression.type": "lz4",
                # Each report comes from a process of its own: a batch has one record.
                "batch.num.messages": 1,
                "linger.ms": 0,
                "message.max.bytes": 1 << 20,
                "queue.buffering.max.messages": 20_000,
            }
        )

    def _sent(self, error: object, _message: object) -> None:
        if error is not None:
            self._failed.append(str(error))

    def append(self, message: Inbound, at_s: float) -> None:
        """Append a message as of then."""
        for key, value in split_message(wire.key(message), wire.encode(message)):
            self.record(key, value, at_s)

    def record(self, key: bytes, value: bytes, at_s: float) -> None:
        """Append a record as of then."""
        self.written += 1
        stamp = int(1000 * at_s)
        while True:
            try:
                self._producer.produce(
                    METADATA,
                    value,
                    key,
                    CONTROLLER_PARTITION,
                    on_delivery=self._sent,
                    timestamp=stamp,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def close(self) -> None:
        """Wait until all stands there."""
        if left := self._producer.flush(60):
            raise SystemExit(f"{left} records were not written within a minute")
        if self._failed:
            raise SystemExit(f"{len(self._failed)} records were refused: {self._failed[0]}")


def write_history(servers: str, seconds: int) -> int:
    """Write so many seconds of reports; return how many records that are."""
    log, first = Log(servers), time.time() + AHEAD_S - seconds
    for slot in range(CONSUMERS):  # the first records there are: offset and epoch are the slot
        log.append(Hello(slot=Slot(slot), process=f"played-{slot}", version="0"), first)
    log.append(Claim(controller="before", limit=BytesPerSecond(2.4e6)), first)
    log.append(plan(), first)
    records = [report(slot, slot) for slot in range(CONSUMERS)]
    each = [(wire.key(one), wire.encode(one)) for one in records]
    for second in range(seconds):
        for slot, (key, value) in enumerate(each):
            log.record(key, value, first + second + slot / CONSUMERS)
    log.close()
    return log.written


def count(servers: str, end: int) -> int:
    """Return how many records there are before `end`."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "count"})
    consumer.assign([TopicPartition(METADATA, CONTROLLER_PARTITION, OFFSET_BEGINNING)])
    found, deadline = 0, time.monotonic() + 120
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(10_000, 1.0):
                found += 1
                if (message.offset() or 0) >= end - 1:
                    return found
    finally:
        consumer.close()
    raise SystemExit(f"read {found} records, and not the last one, in two minutes")


def segments(directory: Path) -> list[int]:
    """Return what each segment of partition 0 takes on disk, bytes, the oldest first."""
    return [file.stat().st_size for file in sorted(directory.glob(f"data/{METADATA}-0/*.log"))]


async def cleaned(directory: Path) -> int:
    """Wait until the broker's cleaner has been at the first segment; return what is left, bytes."""
    deadline = time.monotonic() + CLEANED_MOST_S
    while True:
        first, *others = segments(directory)
        if others and first < max(others) / 10:
            return first + sum(others)
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing was compacted of segments of {first}, {others} bytes")
        await asyncio.sleep(1.0)


class FakeGroup:
    """The consumers and the monitor from now on."""

    def __init__(self, bus: KafkaControlTopics) -> None:
        self._bus = bus
        self.consumers = [FakeConsumer(bus, GROUP, Slot(slot)) for slot in range(CONSUMERS)]

    async def begin(self) -> None:
        """Continue as the processes of the history."""
        for slot, consumer in enumerate(self.consumers):
            reading = dict.fromkeys(reads(slot), 123_456_789)
            await consumer.resume(slot, reading, writes(slot))

    async def run(self) -> None:
        """Report and measure each second, and obey."""
        async with asyncio.TaskGroup() as tasks:
            for consumer in self.consumers:
                tasks.create_task(must_not_end(consumer.handle_commands()))
            tasks.create_task(must_not_end(self._each_second()))

    async def _each_second(self) -> None:
        loop, number = asyncio.get_running_loop(), 0
        while True:
            began, number = loop.time(), number + 1
            share = CONSUMERS // TOPICS
            for at, topic in enumerate(NAMES):
                # The first has a partition more than anybody reads.
                rates = [RATE] * (PER_TOPIC + (topic == NEW.topic))
                sent = measurement(topic, number, rates)
                own = self.consumers[at * share : (at + 1) * share]
                await asyncio.gather(
                    publish_message(self._bus, METRICS, 0, sent), *(each.report() for each in own)
                )
                await asyncio.sleep(max(0.0, began + (at + 1) / TOPICS - loop.time()))


def settings_of(servers: str) -> Settings:
    """Return what the controller and the players go by."""
    return load_settings(
        group=GROUP,
        topics=NAMES,
        kafka={"bootstrap_servers": servers},
        monitor={"topic": METRICS},
    )


def environment(servers: str) -> dict[str, str]:
    """Return the same for the controller's process."""
    return {
        "PYTHONPATH": str(ROOT),
        "BINWRIGHT_GROUP": GROUP,
        "BINWRIGHT_TOPICS": json.dumps(NAMES),
        "BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS": servers,
        "BINWRIGHT_MONITOR__TOPIC": METRICS,
        "BINWRIGHT_CONTROLLER__FLEET": "fixed",
        "BINWRIGHT_CONTROLLER__MAX_SLOTS": str(CONSUMERS),
        "BINWRIGHT_CONTROLLER__MIN_SLOTS": str(CONSUMERS),
        "BINWRIGHT_CONTROLLER__LIMIT_BYTES_PER_S": str(LIMIT),
    }


async def acted(bus: KafkaControlTopics, played: FakeGroup, child: Child) -> dict[str, Any]:
    """Return when the controller acted, seconds after its claim."""
    reader = await bus.reader(
        METADATA, CONTROLLER_PARTITION, await bus.end(METADATA, CONTROLLER_PARTITION)
    )
    claimed = planned = 0
    try:
        async with asyncio.timeout(ACTED_MOST_S):
            async for record, message in messages(reader, decode_inbound):
                match message:
                    case Claim():
                        claimed = record.timestamp_ms
                    case Planned():
                        planned = record.timestamp_ms
                    case Started(offsets=offsets) if NEW in offsets:
                        break
    except TimeoutError:
        raise SystemExit(f"no action within {ACTED_MOST_S:.0f} s: {child.tail()}") from None
    finally:
        await reader.close()
    asked = min(consumer.queried_ms for consumer in played.consumers)
    return {
        "asked after s": (asked - claimed) / 1e3,
        "acts after s": (planned - claimed) / 1e3,
        "new partition read after s": (record.timestamp_ms - claimed) / 1e3,
        "MB": psutil.Process(child.pid).memory_info().rss / 1e6,
    }


async def bench(directory: Path, seconds: int) -> dict[str, Any]:
    """Return the figures."""
    async with run_broker(directory / "broker") as broker:
        servers = broker.bootstrap_servers
        async with KafkaControlTopics(settings_of(servers).kafka) as bus:
            await bus.ensure(METRICS, 1, METRICS_CONFIG)
            await bus.ensure(METADATA, 1, METADATA_CONFIG)
            await bus.ensure(f"{GROUP}.commands", CONSUMERS, COMMANDS_CONFIG)
            written = await asyncio.to_thread(write_history, servers, seconds)
            left = await cleaned(directory / "broker")
            end = await bus.end(METADATA, CONTROLLER_PARTITION)
            found = {
                "records written": written,
                "records left": await asyncio.to_thread(count, servers, end),
                "MB left": left / 1e6,
            }
            played = FakeGroup(bus)
            await played.begin()
            async with background_tasks(must_not_end(played.run())):
                child = Child(
                    Command(
                        title="the controller",
                        argv=(sys.executable, "-m", "binwright.controller"),
                        directory=directory,
                        log=directory / "controller.log",
                        environment=clean_environment(environment(servers)),
                    )
                )
                try:
                    return {**found, **await acted(bus, played, child)}
                finally:
                    await child.kill()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print JSON."""
    parser = argparse.ArgumentParser(prog="make bench NAME=takeover", description=__doc__)
    parser.add_argument("--seconds", type=int, default=HISTORY_S, help="of reports written")
    parser.add_argument("--keep", type=Path, help="for data and logs; else a temporary directory")
    figures.add_option(parser)
    chosen = parser.parse_args(arguments)
    configure_logging("warning", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as name:
        directory = chosen.keep or Path(name)
        found = asyncio.run(bench(directory, chosen.seconds))
    figures.progress("takeover", found, chosen.figures)


if __name__ == "__main__":
    main()
