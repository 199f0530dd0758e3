"""A monitor's rate beside the bytes that were really appended."""

import asyncio
import struct
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from aiokafka import AIOKafkaProducer

from binwright.monitor.decide.estimator import TopicRates
from binwright.monitor.sampling import KafkaLogs
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.selection import Selection

PASS_S = 0.1
WINDOW_S = 2.0
BEAT_S = 0.02  # a batch each; a hundredth of the window
NOISE = Random(1).randbytes(1 << 16)
HEADER = struct.Struct(">qi11xi")  # base offset, bytes after these two, last offset's delta


@dataclass
class Ledger:
    """What was appended to a partition: end offsets, and the bytes up to there."""

    ends: list[int] = field(default_factory=lambda: [0])
    sums: list[int] = field(default_factory=lambda: [0])

    def add(self, end: int, size: int) -> None:
        self.ends.append(end)
        self.sums.append(self.sums[-1] + size)

    def upto(self, offset: int) -> float:
        """Return the bytes before `offset`; within a batch by its share of records."""
        after = bisect_right(self.ends, offset)
        if after == len(self.ends):
            return self.sums[-1]
        first, last = self.ends[after - 1], self.ends[after]
        share = (offset - first) / (last - first)
        return self.sums[after - 1] + share * (self.sums[after] - self.sums[after - 1])

    @classmethod
    def from_segments(cls, directory: Path) -> "Ledger":
        """Read it from a log's own files, control batches and all."""
        made = cls()
        for file in sorted(directory.glob("*.log")):
            content, at = file.read_bytes(), 0
            while at + HEADER.size < len(content):
                base, length, delta = HEADER.unpack_from(content, at)
                if not length:
                    break
                made.add(base + delta + 1, length + 12)
                at += length + 12
        return made


@dataclass
class BatchProducer:
    """Appends a batch each beat, and books it."""

    producer: AIOKafkaProducer
    topic: str
    record_bytes: int = 1000
    batch_bytes: int = 10_000
    keys: int = 0  # 0: none; else so many, again and again
    ledger: Ledger = field(default_factory=Ledger)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        beat = loop.time()
        while True:
            await self.write()
            beat = max(beat + BEAT_S, loop.time())
            await asyncio.sleep(beat - loop.time())

    async def write(self) -> None:
        batch = self.producer.create_batch()
        count = max(1, self.batch_bytes // self.record_bytes)
        for number in range(count):
            key = b"%d" % (number % self.keys) if self.keys else None
            at = (number * 131 + len(self.ledger.ends) * 7) % (len(NOISE) - self.record_bytes)
            # Half of it can be compressed.
            half = self.record_bytes // 2
            value = NOISE[at : at + half] + bytes(self.record_bytes - half)
            assert batch.append(key=key, value=value, timestamp=None)
        batch.close()
        sent: Any = await self.producer.send_batch(batch, self.topic, partition=0)
        done = await sent
        self.ledger.add(done.offset + count, batch.size())


@dataclass
class Meter:
    """A monitor's passes over some topics of one partition."""

    logs: KafkaLogs
    topics: frozenset[str]
    seen: defaultdict[str, list[tuple[float, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    reported: defaultdict[str, list[tuple[float, PartitionRate]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    async def run(self) -> None:
        rates = {topic: TopicRates(WINDOW_S) for topic in self.topics}
        while True:
            await asyncio.gather(self._pass(rates), asyncio.sleep(PASS_S))

    async def _pass(self, rates: dict[str, TopicRates]) -> None:
        blind = {topic: known.lacking_sizes() for topic, known in rates.items()}
        found = await self.logs.sample(Selection(self.topics), blind)
        now = asyncio.get_running_loop().time()
        for topic, samples in found.items():
            if not samples:
                rates[topic] = TopicRates(WINDOW_S)
                continue
            (rate,) = rates[topic].feed(now, samples)
            if (sample := samples[0]) is not None and sample.at is not None:
                self.seen[topic].append((sample.at, sample.end))
            self.reported[topic].append((now - rate.age_s, rate))

    def errors(self, topic: str, ledger: Ledger) -> list[tuple[float, float]]:
        """Return (when, relative error) of every rate said over a warm window."""
        known = [(at, ledger.upto(end)) for at, end in self.seen[topic]]
        found = []
        for at, rate in self.reported[topic]:
            if rate.rate is None or rate.quality in ("warming", "stale"):
                continue
            true = (between(known, at) - between(known, at - rate.window_s)) / rate.window_s
            if true > 0:
                found.append((at, abs(rate.rate - true) / true))
        return found


def between(known: list[tuple[float, float]], at: float) -> float:
    """Return the bytes at a moment, as if they had come evenly between two looks."""
    after = bisect_right(known, (at, float("inf")))
    if after in (0, len(known)):
        return known[min(after, len(known) - 1)][1]
    (t0, b0), (t1, b1) = known[after - 1], known[after]
    return b0 + (b1 - b0) * (at - t0) / (t1 - t0)


def longest_deviation(errors: list[tuple[float, float]], share: float) -> float:
    """Return the longest time on end, seconds, in which rates were more than `share` off."""
    longest, since = 0.0, None
    for at, error in errors:
        since = (at if since is None else since) if error > share else None
        if since is not None:
            longest = max(longest, at - since)
    return longest
