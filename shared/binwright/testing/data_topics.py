"""Data topics computed from growth rates, with fakes of a consumer's and a monitor's client."""

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import inf

from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import (
    GroupOffset,
    LogSample,
    ReadProgress,
    Record,
    Records,
    TopicState,
    UndecodableBatch,
)
from binwright.protocol.selection import Selection
from binwright.runtime.clock import loop_s
from binwright.testing.partition_log import FakePartitionLog, size_of

SHORTEST_S = 0.001  # a wait below the virtual clock's resolution would never end


class FakeTopics:
    """The brokers' state: partitions, their growth, each group's offsets. A `LogSampler`.

    Attributes:
        silent: Topics about which requests fail, and of which no records are returned.
        in_zones: Partitions -> the zones in which they can be read.
    """

    def __init__(self, partitions: Mapping[str, int] | None = None) -> None:
        self.logs: dict[TopicPartition, FakePartitionLog] = {}
        self.offsets: defaultdict[str, dict[TopicPartition, GroupOffset]] = defaultdict(dict)
        self.silent: set[str] = set()
        self.in_zones: dict[TopicPartition, tuple[str, ...]] = {}
        self._made: Counter[str] = Counter()
        self.changed = asyncio.Event()  # replaced at each change besides the steady growth
        for topic, number in (partitions or {}).items():
            self.create(topic, number)

    def create(self, topic: str, partitions: int) -> None:
        """Create the topic, or add partitions up to `partitions`."""
        self._made[topic] += TopicPartition(topic, 0) not in self.logs
        for number in range(partitions):
            self.logs.setdefault(TopicPartition(topic, number), FakePartitionLog(loop_s()))

    def delete(self, topic: str) -> None:
        """Delete the topic; if it is recreated, its offsets begin at 0."""
        for partition in [p for p in self.logs if p.topic == topic]:
            del self.logs[partition]

    def grow(
        self, partition: TopicPartition, bytes_per_s: float, record_bytes: int = 1_000
    ) -> None:
        """Make the partition grow from now on, in records of `record_bytes`."""
        self.log(partition).grow(loop_s(), bytes_per_s / record_bytes, record_bytes)
        self.wake()

    def produce(self, partition: TopicPartition, *values: bytes | None) -> int:
        """Append one record for each value; return the offset of the first."""
        log, at_ms = self.log(partition), round(loop_s() * 1000)
        first = log.end(loop_s())
        log.add(loop_s(), [Record(first + i, at_ms, None, v) for i, v in enumerate(values)])
        self.wake()
        return first

    def skip(self, partition: TopicPartition, offsets: int) -> None:
        """Append offsets without records, as transactions and compaction leave them."""
        self.log(partition).add(loop_s(), [None] * offsets)
        self.wake()

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        """Delete the records before this offset, as retention does."""
        log = self.log(partition)
        log.start = max(log.start, min(before, log.end(loop_s())))

    def cut(self, partition: TopicPartition, end: int) -> None:
        """Delete the records from this offset on, as an unclean election does."""
        self.log(partition).cut(loop_s(), end)

    def topic_id(self, topic: str) -> str:
        """Return the topic's id, new with each creation; raise `TopicMissing`."""
        self.log(TopicPartition(topic, 0))
        return f"{topic}-{self._made[topic]}"

    def log(self, partition: TopicPartition) -> FakePartitionLog:
        """Return the partition's log; raise `TopicMissing`."""
        try:
            return self.logs[partition]
        except KeyError:
            raise TopicMissing(f"no such partition: {partition}") from None

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (first retained offset, end offset); raise `TopicMissing`."""
        log = self.log(partition)
        return log.start, log.end(loop_s())

    async def sample(
        self, wanted: Selection, measure_batches: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return a sample of the topics; see `LogSampler.sample`."""
        now = loop_s()
        seen: dict[str, dict[int, LogSample | None]] = {topic: {} for topic in wanted.topics}
        for partition, log in sorted(self.logs.items(), key=lambda item: item[0]):
            topic, number = partition
            if topic in wanted.topics or wanted.matches_pattern(topic):
                batch = (
                    log.record_bytes or None if number in measure_batches.get(topic, ()) else None
                )
                seen.setdefault(topic, {})[number] = (
                    LogSample(log.leader, log.start, log.end(now), log.size(now), now, batch)
                    if log.leader is not None
                    else None
                )
        return seen

    def zones(self, topic: str) -> Mapping[int, Collection[str]]:
        """Return the zones of a topic's partitions; see `LogSampler.zones`."""
        return {p.partition: zones for p, zones in self.in_zones.items() if p.topic == topic}

    def wake(self) -> None:
        """Wake all fetches that wait for data."""
        self.changed.set()
        self.changed = asyncio.Event()


class FakePace:
    """Limits how much the readers of a process fetch together; up to a second's worth at once."""

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self._room, self._at = bytes_per_s, loop_s()

    def room(self) -> int:
        """Return how many bytes may be fetched now."""
        now = loop_s()
        if self.bytes_per_s == inf:
            return sys.maxsize
        self._room = min(self._room + (now - self._at) * self.bytes_per_s, self.bytes_per_s)
        self._at = now
        return int(self._room)

    def spend(self, size: int) -> None:
        """Count fetched bytes."""
        self._room -= size


class FakeDataReader:
    """An `DataReader`: one consumer's client of `FakeTopics`.

    Attributes:
        pace: Limits what is fetched.
        torn: Partition -> a batch that cannot be decoded, or that is large.
    """

    def __init__(
        self, topics: FakeTopics, group: str = "binwright", *, linger_s: float = 0.1
    ) -> None:
        self.linger_s = linger_s  # the least wait of a fetch that finds no records at once
        self.pace = FakePace(inf)
        self._topics, self._offsets = topics, topics.offsets[group]
        self._positions: dict[TopicPartition, int] = {}
        self._lost: dict[TopicPartition, tuple[int, int]] = {}
        self._passed: dict[TopicPartition, int] = {}
        self.torn: dict[TopicPartition, UndecodableBatch] = {}
        self._given_up: dict[TopicPartition, UndecodableBatch] = {}
        self._large_before: dict[TopicPartition, int] = {}
        self._failing = 0

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the started partitions -> next offset."""
        return dict(self._positions)

    def fail_next(self, calls: int = 1) -> None:
        """Make the next calls to the broker raise `BrokerUnavailable`."""
        self._failing += calls

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fit `DataReader.start`."""
        self._check_reachable(partition.topic)
        self._topics.log(partition)
        self._positions[partition] = offset
        self._topics.wake()

    def stop(self, partition: TopicPartition) -> None:
        """Fit `DataReader.stop`."""
        self._positions.pop(partition, None)
        self._passed.pop(partition, None)
        self._large_before.pop(partition, None)

    async def fetch(self, max_bytes: int, timeout_s: float) -> Mapping[TopicPartition, Records]:
        """Fit `DataReader.fetch`."""
        await self._request()
        deadline = loop_s() + timeout_s
        while not (records := self._take(max_bytes)) and (left := deadline - loop_s()) > 0:
            try:
                rest = max(min(left, max(self._due_in(), self.linger_s)), SHORTEST_S)
                async with asyncio.timeout(rest):
                    await self._topics.changed.wait()
            except TimeoutError:
                continue
        return records

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Fit `DataReader.bounds`."""
        await self._request(*partitions)
        of_logs = {p: self._topics.bounds(p) for p in partitions}
        return {
            p: bounds for p, bounds in of_logs.items() if self._topics.log(p).leader is not None
        }

    async def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        """Fit `DataReader.offsets_at`."""
        await self._request(*partitions)
        found: dict[TopicPartition, int] = {}
        for p in partitions:
            log = self._topics.log(p)
            for offset, record in log.read(loop_s(), log.start):
                if record is not None and record.timestamp_ms >= at_ms:
                    found[p] = offset
                    break
        return found

    async def partitions(self, topic: str) -> Collection[TopicPartition]:
        """Fit `DataReader.partitions`."""
        await self._request(TopicPartition(topic, 0))
        self._topics.log(TopicPartition(topic, 0))
        return [p for p in self._topics.logs if p.topic == topic]

    async def topic_id(self, topic: str) -> str | None:
        """Fit `DataReader.topic_id`."""
        await self._request(TopicPartition(topic, 0))
        topic_id = self._topics.topic_id(topic)
        if all(log.leader is None for p, log in self._topics.logs.items() if p.topic == topic):
            raise BrokerUnavailable(f"no partition of topic {topic} has a leader")
        return topic_id

    async def topic_states(self, topics: Collection[str]) -> Mapping[str, TopicState | None]:
        """Fit `DataReader.topic_states`."""
        await self._request()
        states: dict[str, TopicState | None] = {}
        for topic in topics:
            logs = {p: log for p, log in self._topics.logs.items() if p.topic == topic}
            led = {p: log for p, log in logs.items() if log.leader is not None}
            if topic in self._topics.silent or (logs and not led):
                states[topic] = None
            elif logs:
                states[topic] = TopicState(
                    self._topics.topic_id(topic),
                    {p: self._topics.bounds(p) for p in led},
                    {p: log.readable_end(loop_s()) for p, log in led.items()},
                    frozenset(logs) - led.keys(),
                )
        return states

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Fit `DataReader.committed`."""
        await self._request(*partitions)
        return {p: self._offsets[p] for p in partitions if p in self._offsets}

    async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Fit `DataReader.commit`."""
        await self._request(*offsets)
        self._offsets.update(offsets)

    def jumps(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Fit `DataReader.jumps`."""
        lost, self._lost = self._lost, {}
        return lost

    def progress(self) -> ReadProgress:
        """Fit `DataReader.progress`: records that are in no log have no stored size."""
        logs, now = self._topics.logs, loop_s()
        readable = ((p, at) for p, at in self._positions.items() if p in logs)
        known = {p: (at, logs[p].readable_end(now)) for p, at in readable}
        return ReadProgress(0, known)

    def passed(self) -> Mapping[TopicPartition, int]:
        """Fit `DataReader.passed`."""
        passed, self._passed = self._passed, {}
        return passed

    def undecodable(self) -> Mapping[TopicPartition, UndecodableBatch]:
        """Fit `DataReader.undecodable`."""
        given_up, self._given_up = self._given_up, {}
        return given_up

    def stuck(self) -> Mapping[TopicPartition, str]:
        """Fit `DataReader.stuck`: no partition is, as batches are given up at once."""
        return {}

    def allow_large(self, partition: TopicPartition, before: int) -> None:
        """Fit `DataReader.allow_large`."""
        self._large_before[partition] = before

    async def _request(self, *about: TopicPartition) -> None:
        await asyncio.sleep(0)
        for partition in about:
            self._check_reachable(partition.topic)
        if self._failing:
            self._failing -= 1
            raise BrokerUnavailable("injected failure")

    def _check_reachable(self, topic: str) -> None:
        if topic in self._topics.silent:
            raise BrokerUnavailable(f"injected failure: no reply about {topic}")

    def _logs(self) -> list[tuple[TopicPartition, FakePartitionLog]]:
        logs = self._topics.logs  # a deleted topic has no records, which is not an error
        readable = (p for p in self._positions if p in logs)
        return [(p, logs[p]) for p in readable if p.topic not in self._topics.silent]

    def _due_in(self) -> float:
        return min((log.grows_in(loop_s()) for _, log in self._logs()), default=inf)

    def _take(self, max_bytes: int) -> dict[TopicPartition, Records]:
        taken: dict[TopicPartition, Records] = {}
        max_bytes = min(max_bytes, self.pace.room())
        for partition, log in self._logs():
            if max_bytes <= 0:
                break
            if records := self._read(partition, log, max_bytes):
                taken[partition] = Records.of(records)
                size = sum(map(size_of, records))
                max_bytes -= size
                self.pace.spend(size)
        for partition in taken:  # to the end of the order, so that fast ones do not starve others
            self._positions[partition] = self._positions.pop(partition)
        return taken

    def _read(
        self, partition: TopicPartition, log: FakePartitionLog, max_bytes: int
    ) -> list[Record]:
        wanted, end = self._positions[partition], log.end(loop_s())
        if not log.start <= wanted <= end:
            self._lost[partition] = (wanted, log.start)
            if wanted > end:  # the log was truncated or recreated: only a new `start` continues
                del self._positions[partition]
                return []
            wanted = log.start
        records: list[Record] = []
        begin, torn = wanted, self._torn(partition)
        if torn is not None and torn.first <= wanted < torn.next:
            self.stop(partition)
            self._given_up[partition] = torn
            return []
        for offset, record in log.read(loop_s(), wanted):
            if log.open_from is not None and offset >= log.open_from:
                break
            if torn is not None and offset == torn.first:
                break
            wanted = offset + 1
            if record is not None:
                records.append(record)
                max_bytes -= size_of(record)
            if max_bytes <= 0:
                break
        if wanted > (records[-1].offset + 1 if records else begin):
            self._passed[partition] = wanted
        self._positions[partition] = wanted
        return records

    def _torn(self, partition: TopicPartition) -> UndecodableBatch | None:
        torn = self.torn.get(partition)
        if torn is None or (torn.large and torn.next <= self._large_before.get(partition, 0)):
            return None
        return torn
