"""Data topics made of arithmetic, and a consumer's and a monitor's view of them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import inf

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import GroupOffset, LogSample, Record
from binwright.core.selection import Selection
from binwright.testing.topics import FakeLog, size_of

SHORTEST_S = 0.001  # a wait below the virtual clock's resolution would never end


class FakeTopics:
    """What a broker holds: partitions, how fast they grow, each group's offsets. A `Logs`.

    Attributes:
        silent: Topics of which nothing is told, and nothing can be fetched.
    """

    def __init__(self, partitions: Mapping[str, int] | None = None) -> None:
        self.logs: dict[TopicPartition, FakeLog] = {}
        self.offsets: defaultdict[str, dict[TopicPartition, GroupOffset]] = defaultdict(dict)
        self.silent: set[str] = set()
        self._made: Counter[str] = Counter()
        self.changed = asyncio.Event()  # replaced at each change that nobody can foresee
        for topic, number in (partitions or {}).items():
            self.create(topic, number)

    def create(self, topic: str, partitions: int) -> None:
        """Create the topic, or grow it to `partitions`."""
        self._made[topic] += TopicPartition(topic, 0) not in self.logs
        for number in range(partitions):
            self.logs.setdefault(TopicPartition(topic, number), FakeLog(_now()))

    def delete(self, topic: str) -> None:
        """Remove the topic; create it again and its offsets begin at 0."""
        for partition in [p for p in self.logs if p.topic == topic]:
            del self.logs[partition]

    def grow(
        self, partition: TopicPartition, bytes_per_s: float, record_bytes: int = 1_000
    ) -> None:
        """Let it grow from now on by so much, in records of `record_bytes`."""
        self.log(partition).grow(_now(), bytes_per_s / record_bytes, record_bytes)
        self.wake()

    def produce(self, partition: TopicPartition, *values: bytes | None) -> int:
        """Append one record for each value; return the offset of the first."""
        log, at_ms = self.log(partition), round(_now() * 1000)
        first = log.end(_now())
        log.add(_now(), [Record(first + i, at_ms, None, v) for i, v in enumerate(values)])
        self.wake()
        return first

    def skip(self, partition: TopicPartition, offsets: int) -> None:
        """Use up offsets without a record, as transactions and compaction do."""
        self.log(partition).add(_now(), [None] * offsets)
        self.wake()

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        """Let retention take everything before this offset."""
        log = self.log(partition)
        log.start = max(log.start, min(before, log.end(_now())))

    def cut(self, partition: TopicPartition, end: int) -> None:
        """Lose the records from this offset on, as an unclean election does."""
        self.log(partition).cut(_now(), end)

    def topic_id(self, topic: str) -> str:
        """Return which topic of this name it is; raise `TopicMissing`."""
        self.log(TopicPartition(topic, 0))
        return f"{topic}-{self._made[topic]}"

    def log(self, partition: TopicPartition) -> FakeLog:
        """Return the partition's log; raise `TopicMissing`."""
        try:
            return self.logs[partition]
        except KeyError:
            raise TopicMissing(f"no such partition: {partition}") from None

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (first offset kept, end offset); raise `TopicMissing`."""
        log = self.log(partition)
        return log.start, log.end(_now())

    async def sample(
        self, wanted: Selection, weigh: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return what a monitor sees; see `Logs.sample`."""
        now = _now()
        seen: dict[str, dict[int, LogSample | None]] = {topic: {} for topic in wanted.topics}
        for partition, log in sorted(self.logs.items(), key=lambda item: item[0]):
            topic, number = partition
            if topic in wanted.topics or wanted.fits(topic):
                weighed = log.record_bytes or None if number in weigh.get(topic, ()) else None
                seen.setdefault(topic, {})[number] = (
                    LogSample(log.leader, log.start, log.end(now), log.size(now), now, weighed)
                    if log.leader is not None
                    else None
                )
        return seen

    def wake(self) -> None:
        """Let everybody who waits for data look again."""
        self.changed.set()
        self.changed = asyncio.Event()


class FakeIntake:
    """An `Intake`: one consumer's view of `FakeTopics`."""

    def __init__(
        self, topics: FakeTopics, group: str = "binwright", *, linger_s: float = 0.1
    ) -> None:
        self.linger_s = linger_s  # the rest between two fetches that found nothing at once
        self._topics, self._offsets = topics, topics.offsets[group]
        self._positions: dict[TopicPartition, int] = {}
        self._lost: dict[TopicPartition, tuple[int, int]] = {}
        self._failing = 0

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """Return what is started, and the next offset of each."""
        return dict(self._positions)

    def fail_next(self, calls: int = 1) -> None:
        """Let the next calls that ask the broker end in `BrokerUnavailable`."""
        self._failing += calls

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fit `Intake.start`."""
        self._answer_about(partition.topic)
        self._topics.log(partition)
        self._positions[partition] = offset
        self._topics.wake()

    def stop(self, partition: TopicPartition) -> None:
        """Fit `Intake.stop`."""
        self._positions.pop(partition, None)

    async def fetch(
        self, max_bytes: int, timeout_s: float
    ) -> Mapping[TopicPartition, Sequence[Record]]:
        """Fit `Intake.fetch`."""
        await self._answer()
        deadline = _now() + timeout_s
        while not (found := self._take(max_bytes)) and (left := deadline - _now()) > 0:
            try:
                rest = max(min(left, max(self._due_in(), self.linger_s)), SHORTEST_S)
                async with asyncio.timeout(rest):
                    await self._topics.changed.wait()
            except TimeoutError:
                continue
        return found

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Fit `Intake.bounds`."""
        await self._answer(*partitions)
        return {partition: self._topics.bounds(partition) for partition in partitions}

    async def partitions(self, topic: str) -> Collection[TopicPartition]:
        """Fit `Intake.partitions`."""
        await self._answer(TopicPartition(topic, 0))
        self._topics.log(TopicPartition(topic, 0))
        return [p for p in self._topics.logs if p.topic == topic]

    async def topic_id(self, topic: str) -> str | None:
        """Fit `Intake.topic_id`."""
        await self._answer(TopicPartition(topic, 0))
        return self._topics.topic_id(topic)

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Fit `Intake.committed`."""
        await self._answer(*partitions)
        return {p: self._offsets[p] for p in partitions if p in self._offsets}

    async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Fit `Intake.commit`."""
        await self._answer(*offsets)
        self._offsets.update(offsets)

    def lost(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Fit `Intake.lost`."""
        lost, self._lost = self._lost, {}
        return lost

    async def _answer(self, *about: TopicPartition) -> None:
        await asyncio.sleep(0)
        for partition in about:
            self._answer_about(partition.topic)
        if self._failing:
            self._failing -= 1
            raise BrokerUnavailable("the fake broker was told to fail")

    def _answer_about(self, topic: str) -> None:
        if topic in self._topics.silent:
            raise BrokerUnavailable(f"the fake broker was told to be silent about {topic}")

    def _logs(self) -> list[tuple[TopicPartition, FakeLog]]:
        logs = self._topics.logs  # a deleted topic has nothing to read, and that is no error
        readable = (p for p in self._positions if p in logs)
        return [(p, logs[p]) for p in readable if p.topic not in self._topics.silent]

    def _due_in(self) -> float:
        return min((log.grows_in(_now()) for _, log in self._logs()), default=inf)

    def _take(self, max_bytes: int) -> dict[TopicPartition, Sequence[Record]]:
        found: dict[TopicPartition, Sequence[Record]] = {}
        for partition, log in self._logs():
            if max_bytes <= 0:
                break
            if records := self._read(partition, log, max_bytes):
                found[partition] = records
                max_bytes -= sum(map(size_of, records))
        for partition in found:  # to the end of the row: a fast partition starves nobody
            self._positions[partition] = self._positions.pop(partition)
        return found

    def _read(self, partition: TopicPartition, log: FakeLog, max_bytes: int) -> list[Record]:
        wanted, end = self._positions[partition], log.end(_now())
        if not log.start <= wanted <= end:
            self._lost[partition] = (wanted, log.start)
            if wanted > end:  # the log is another one now: only a new start can tell from where
                del self._positions[partition]
                return []
            wanted = log.start
        records: list[Record] = []
        for offset, record in log.read(_now(), wanted):
            wanted = offset + 1
            if record is not None:
                records.append(record)
                max_bytes -= size_of(record)
            if max_bytes <= 0:
                break
        self._positions[partition] = wanted
        return records


def _now() -> float:
    return asyncio.get_running_loop().time()
