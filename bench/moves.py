"""`make bench NAME=moves`: leaders and replicas that move under load, on real brokers.

Three of them, or more with `--brokers`; every partition is on three.

What is measured:

- **pauses**: the longest time between two records of a partition, of consumers, while leaders move
  in batches of several sizes; with Kafka's own `replica.fetch.backoff.ms` (1,000) and with 100;
- **kills**: `binwright brokers apply` is killed at 20 points of its run, and started again: which
  throttles are left at the end;
- **lost**: confirmed records that no consumer read.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
from asyncio.subprocess import DEVNULL
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from tests.integration.brokers.helpers import make_topic

from bench.figures import add_option, progress
from binwright.balancer import plan_file
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.decide.reassignment import CopyLimits
from binwright.balancer.executor import Executor, read_throttles
from binwright.balancer.ports import Replicas, Targets
from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.kafka.client import client_options
from binwright.local.kafka import run_brokers
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import configure_logging
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.testing.records import in_rows

TOPIC, PARTITIONS = "moves", 24
EVERY_S = 0.02
RECORD_BYTES = 1_000
ROUNDS = 4
SETTLE_S = 2.0
LONGEST_RUN_S = 60.0
COPIED, COPIED_PARTITIONS, COPIED_BYTES = "copied", 4, 2_000_000
KILLS = 20
KILL_STEP_S = 0.15
RATE = 2_000_000
REPLICAS = 3


@dataclass(slots=True)
class Arrivals:
    """When a consumer got the records of each partition, and which."""

    last_at: dict[TopicPartition, float] = field(default_factory=dict)
    longest: dict[TopicPartition, float] = field(default_factory=lambda: defaultdict(float))
    numbers: dict[TopicPartition, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, partition: TopicPartition, values: Sequence[bytes | None]) -> None:
        now = loop_s()
        if values and partition in self.last_at:
            self.longest[partition] = max(self.longest[partition], now - self.last_at[partition])
        if values:
            self.last_at[partition] = now
        self.numbers[partition].update(int(value[:12]) for value in values if value)

    def pauses(self) -> list[float]:
        """Return the longest gap of each partition since the last call, s."""
        found = list(self.longest.values())
        self.longest.clear()
        return found


class Traffic:
    """Numbered records to every partition, and two consumers that read all of them."""

    def __init__(self, kafka: KafkaSettings, partitions: Sequence[TopicPartition]) -> None:
        self._kafka, self._partitions = kafka, partitions
        self.confirmed = dict.fromkeys(partitions, 0)
        self.consumers = {"KafkaIntake": Arrivals(), "AIOKafkaConsumer": Arrivals()}
        self.longest_send_s = 0.0
        self._stopping = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Traffic"]:
        options = client_options(self._kafka)
        async with (
            AIOKafkaProducer(**options, acks="all", enable_idempotence=True) as producer,
            KafkaDataReader(self._kafka, "bench") as intake,
            AIOKafkaConsumer(**options, auto_offset_reset="earliest") as consumer,
        ):
            readers = [
                asyncio.create_task(self._read_intake(intake)),
                asyncio.create_task(self._read_consumer(consumer)),
            ]
            writers = [asyncio.create_task(self._write(producer, p)) for p in self._partitions]
            yield self
            self._stopping.set()
            await asyncio.gather(*writers)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_RUN_S):
                    while self.lost():  # noqa: ASYNC110 - the readers fill it
                        await asyncio.sleep(0.1)
            for task in readers:
                task.cancel()
            await asyncio.wait(readers)

    async def _write(self, producer: AIOKafkaProducer, partition: TopicPartition) -> None:
        while not self._stopping.is_set():
            value = b"%012d" % self.confirmed[partition] + bytes(RECORD_BYTES)
            began = loop_s()
            await producer.send_and_wait(partition.topic, value, partition=partition.partition)
            self.longest_send_s = max(self.longest_send_s, loop_s() - began)
            self.confirmed[partition] += 1
            await asyncio.sleep(EVERY_S)

    async def _read_intake(self, intake: KafkaDataReader) -> None:
        for partition in self._partitions:
            await intake.start(partition, 0)
        arrivals = self.consumers["KafkaIntake"]
        while True:
            with contextlib.suppress(BrokerUnavailable):
                for partition, records in (await intake.fetch(1 << 20, 0.5)).items():
                    arrivals.add(partition, [row.value for row in in_rows([records])])

    async def _read_consumer(self, consumer: AIOKafkaConsumer) -> None:
        consumer.assign([KafkaPartition(*partition) for partition in self._partitions])
        arrivals = self.consumers["AIOKafkaConsumer"]
        while True:
            for found, records in (await consumer.getmany(timeout_ms=500)).items():
                arrivals.add(TopicPartition(*found), [record.value for record in records])

    def lost(self) -> int:
        """Return how many confirmed records a consumer has not read."""
        return sum(
            len({*range(count)} - arrivals.numbers[partition])
            for partition, count in self.confirmed.items()
            for arrivals in self.consumers.values()
        )


def rotated(turn: int, brokers: int) -> dict[TopicPartition, Replicas]:
    """Return a placement in which every partition has another leader than in the last turn."""
    return {TopicPartition(TOPIC, n): _ring(n, turn, brokers) for n in range(PARTITIONS)}


def _ring(number: int, turn: int, brokers: int) -> Replicas:
    """Return brokers that follow each other; the turn says which of them leads."""
    return tuple(1 + (number + (turn + k) % REPLICAS) % brokers for k in range(REPLICAS))


async def carry_out(admin: AdminClient, targets: Targets, limits: CopyLimits) -> None:
    async with asyncio.timeout(LONGEST_RUN_S):
        await Executor(admin, targets, limits).run()


async def leader_moves(
    kafka: KafkaSettings, batches: Sequence[int], brokers: int
) -> dict[str, Any]:
    """Move all leaders again and again; return the longest pauses for each size of a batch."""
    placed = rotated(0, brokers)
    placement = {p.partition: replicas for p, replicas in placed.items()}
    await make_topic(kafka, TOPIC, placement, {"min.insync.replicas": "2"})
    found: dict[str, Any] = {}
    turn = 0
    async with AdminClient(kafka) as admin, Traffic(kafka, [*placed]).running() as traffic:
        await asyncio.sleep(2 * SETTLE_S)
        for batch in (0, *batches):
            pauses: dict[str, list[float]] = defaultdict(list)
            for arrivals in traffic.consumers.values():
                arrivals.pauses()
            traffic.longest_send_s = 0.0
            for _ in range(ROUNDS):
                if batch:
                    turn += 1
                    await carry_out(admin, rotated(turn, brokers), CopyLimits(leaders=batch))
                await asyncio.sleep(SETTLE_S)
                for name, arrivals in traffic.consumers.items():
                    pauses[name] += arrivals.pauses()
            found[str(batch)] = {
                "leaders_moved": ROUNDS * PARTITIONS * bool(batch),
                "longest_send_s": round(traffic.longest_send_s, 3),
                **{name: _summary(values) for name, values in pauses.items()},
            }
            sys.stderr.write(f"bench: leaders, {batch} at once: {found[str(batch)]}\n")
    found["lost"] = traffic.lost()
    found["confirmed"] = sum(traffic.confirmed.values())
    return found


def _summary(pauses: list[float]) -> dict[str, float]:
    ranked = sorted(pauses)
    return {
        "median_s": round(statistics.median(ranked), 3),
        "p99_s": round(ranked[round(0.99 * (len(ranked) - 1))], 3),
        "longest_s": round(ranked[-1], 3),
    }


async def kills(kafka: KafkaSettings, directory: Path, count: int, brokers: int) -> dict[str, Any]:
    """Kill `apply` at points of its run, and continue it; return what was left at each end."""
    partitions = [TopicPartition(COPIED, n) for n in range(COPIED_PARTITIONS)]
    places: list[Targets] = [
        dict.fromkeys(partitions, (1, 2)),
        {p: (REPLICAS + p.partition % (brokers - 2), 1) for p in partitions},
    ]
    one = {"min.insync.replicas": "1"}
    await make_topic(kafka, COPIED, dict.fromkeys(range(COPIED_PARTITIONS), (1, 2)), one)
    async with AIOKafkaProducer(**client_options(kafka), acks="all") as producer:
        for partition in partitions:
            for _ in range(COPIED_BYTES // 100_000):
                await producer.send(COPIED, bytes(100_000), partition=partition.partition)
        await producer.flush()
    found: dict[str, Any] = {"left": 0, "killed_with_throttles": 0, "killed_while_copying": 0}
    limits = CopyLimits(rate=RATE, copies=1)
    async with (
        AdminClient(kafka) as admin,
        Traffic(kafka, [*rotated(0, brokers)]).running() as traffic,
    ):
        for number in range(count):
            targets = places[(number + 1) % 2]
            file = directory / f"plan-{number}.json"
            plan_file.write(file, targets)
            await _killed(kafka, file, admin, number)
            state = await admin.state()
            found["killed_while_copying"] += bool(state.reassignments)
            found["killed_with_throttles"] += bool((await read_throttles(admin, state)).ours)
            await carry_out(admin, targets, limits)
            state = await admin.state()
            left = (await read_throttles(admin, state)).ours
            found["left"] += bool(left)
            placed = all(state.partitions[p].replicas == r for p, r in targets.items())
            sys.stderr.write(f"bench: kill {number}: placed={placed} left={bool(left)}\n")
            found["unplaced"] = found.get("unplaced", 0) + (not placed)
    return {"kills": count, **found, "lost": traffic.lost()}


async def _killed(kafka: KafkaSettings, file: Path, admin: AdminClient, number: int) -> None:
    """Start `apply`, and kill it: some time after it set its throttles, or while it copies."""
    command = (sys.executable, "-m", "binwright.cli", "brokers", "apply", str(file), "--no-probe")
    options = ("--throttle", str(RATE), "--copies", "1")
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    process = await asyncio.create_subprocess_exec(
        *command, *options, *servers, stdout=DEVNULL, stderr=DEVNULL
    )
    async with asyncio.timeout(LONGEST_RUN_S):
        while process.returncode is None:
            if await _begun(admin, copying=number % 2 == 1):
                break
            await asyncio.sleep(0.02)
    if number % 2 == 0:
        await asyncio.sleep(KILL_STEP_S * number)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _begun(admin: AdminClient, *, copying: bool) -> bool:
    state = await admin.state()
    return bool(state.reassignments if copying else (await read_throttles(admin, state)).ours)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"brokers": options.brokers, "leaders": {}}
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as name:
        for backoff_ms in options.backoff:
            settings = {"replica.fetch.backoff.ms": str(backoff_ms)}
            home = Path(name) / f"backoff-{backoff_ms}"
            count = options.brokers
            racks = [f"rack-{number % REPLICAS}" for number in range(count)]
            async with run_brokers(home, count=count, settings=settings, racks=racks) as brokers:
                servers = ",".join(broker.bootstrap_servers for broker in brokers)
                kafka = KafkaSettings(bootstrap_servers=servers)
                found["leaders"][str(backoff_ms)] = await leader_moves(
                    kafka, options.batches, count
                )
                if backoff_ms == options.backoff[-1] and options.kills:
                    found["killed"] = await kills(kafka, Path(name), options.kills, count)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench NAME=moves", description=__doc__)
    parser.add_argument("--brokers", type=int, default=REPLICAS, help="three or more")
    parser.add_argument("--backoff", type=int, nargs="+", default=[1000, 100], help="ms")
    parser.add_argument("--batches", type=int, nargs="*", default=[24, 10, 3])
    parser.add_argument("--kills", type=int, default=KILLS)
    add_option(parser)
    options = parser.parse_args()
    if options.brokers < REPLICAS:
        parser.error(f"--brokers: at least {REPLICAS}")
    configure_logging("error", "console")
    progress("moves", asyncio.run(measure(options)), options.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
