"""Control topics in memory: real offsets, several readers, failures, and virtual time."""

import asyncio
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from binwright.protocol.errors import BrokerUnavailable, RecordTooLarge, TopicMissing
from binwright.protocol.ports.kafka import Record, TopicDescription

READ_RECORDS = 500
"""One `read` returns at most this many, so that no caller relies on getting all records."""


@dataclass(slots=True)
class _Log:
    records: list[Record] = field(default_factory=list)
    start: int = 0
    end: int = 0


def loop_ms() -> int:
    """Return the time as a `FakeControlTopics` stamps records, ms."""
    return int(asyncio.get_running_loop().time() * 1000)


class FakeControlTopics:
    """Kafka's control topics in memory.

    The guarantees are Kafka's: offsets only increase, concurrent publishes to a partition keep
    their order, a record is visible before its `publish` returns, and a reader waits through an
    outage. All waits use the running loop's clock, so `looptime` skips them.

    Attributes:
        latency_s: How long a `publish` takes.
        patience_s: How long an outage lasts before calls give up with `BrokerUnavailable`.
        configs: Topic -> the `config` that `ensure` created it with; tests may change them.
        replicas: Of every topic.
        brokers: How many are alive.
        unreadable: Topics of which `oldest` returns none, for lack of rights.
        largest_record: The limit on the key and value of a record, bytes.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        latency_s: float = 0.0,
        patience_s: float = 30.0,
    ) -> None:
        """Create `topics`: name -> number of partitions."""
        self.latency_s = latency_s
        self.patience_s = patience_s
        self.configs: dict[str, dict[str, str]] = {}
        self.replicas = self.brokers = 3
        self.largest_record = 1 << 20
        self.unreadable: set[str] = set()
        self._topics = {
            name: [_Log() for _ in range(count)] for name, count in (topics or {}).items()
        }
        self._made: Counter[str] = Counter()
        self._reading: Counter[str] = Counter()
        self._changed = asyncio.Condition()
        self._turns: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._down = False
        self._failures: list[bool] = []

    # --- the port --------------------------------------------------------------------------------

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        """Append and return the offset; see the port."""
        async with self._turns[topic, partition]:  # fair: first called, first appended
            await self._until_up()
            await asyncio.sleep(self.latency_s)
            log = self._log(topic, partition)
            if len(key) + len(value) > self.largest_record:
                raise RecordTooLarge(f"publish to {topic}-{partition}: {len(value)} bytes")
            appended = self._failures.pop(0) if self._failures else None
            if appended is False:
                raise BrokerUnavailable("injected failure: the record was not appended")
            offset = await self._append(log, key, value)
            if appended:
                raise BrokerUnavailable("injected failure: the record was appended, the reply lost")
            return offset

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset of the next record; see the port."""
        await self._until_up()
        return self._log(topic, partition).end

    async def offset_at(self, topic: str, partition: int, at_ms: int) -> int:
        """Return the offset of the first record of this time or later; see the port."""
        await self._until_up()
        log = self._log(topic, partition)
        later = (record.offset for record in log.records if record.timestamp_ms >= at_ms)
        return next(later, log.end)

    async def reader(self, topic: str, partition: int, offset: int) -> "FakeReader":
        """Return a reader from `offset` on, or from the oldest record; see the port."""
        await self._until_up()
        log = self._log(topic, partition)
        if offset > log.end:
            raise TopicMissing(f"{topic}-{partition} ends at {log.end}, before offset {offset}")
        self._reading[topic] += 1
        return FakeReader(self, topic, partition, max(offset, log.start))

    async def oldest(self, topic: str, partition: int) -> Sequence[Record] | None:
        """Return the oldest records; see the port."""
        await self._until_up()
        return None if topic in self.unreadable else self._log(topic, partition).records[:10]

    async def partitions(self, topic: str) -> int:
        """Return the number of partitions; see the port."""
        await self._until_up()
        return len(self._topics.get(topic, ()))

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id; see the port."""
        await self._until_up()
        self._log(topic, 0)
        return f"{topic}-{self._made[topic]}"

    async def ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create the topic or add partitions; see the port."""
        await self._until_up()
        if topic not in self._topics:
            self._topics[topic] = []
            self._made[topic] += 1
            self.configs[topic] = dict(config)
        logs = self._topics[topic]
        logs.extend(_Log() for _ in range(partitions - len(logs)))

    async def describe(self, topic: str, names: Collection[str]) -> TopicDescription:
        """Return the topic's configuration; see the port."""
        await self._until_up()
        self._log(topic, 0)
        known = self.configs.get(topic, {})
        config = {name: value for name, value in known.items() if name in names}
        return TopicDescription(config, self.replicas, self.brokers)

    # --- for tests -------------------------------------------------------------------------------

    def readers(self, topic: str) -> int:
        """Return the number of open readers of the topic."""
        return self._reading[topic]

    def read_no_more(self, topic: str) -> None:
        """Count down the topic's open readers."""
        self._reading[topic] -= 1

    def fail_next(self, times: int = 1, *, landed: bool = False) -> None:
        """Make the next publishes raise `BrokerUnavailable`; `landed`: after appending."""
        self._failures += [landed] * times

    async def go_down(self) -> None:
        """Begin an outage: calls wait until `come_up`, or fail after `patience_s`."""
        self._down = True

    async def come_up(self) -> None:
        """End the outage."""
        self._down = False
        await self._wake()

    def records(self, topic: str, partition: int = 0) -> tuple[Record, ...]:
        """Return the partition's records, oldest first."""
        return tuple(self._log(topic, partition).records)

    async def remove(self, topic: str, partition: int, key: bytes) -> None:
        """Append a record without a value, as another tool does to remove what a key has."""
        await self._append(self._log(topic, partition), key, None)

    def trim(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset, as retention does."""
        log = self._log(topic, partition)
        log.start = max(log.start, min(before, log.end))
        log.records = [record for record in log.records if record.offset >= log.start]

    def compact(self, topic: str, partition: int) -> None:
        """Retain only the last record of each key, at its offset."""
        log = self._log(topic, partition)
        last = {record.key: record.offset for record in log.records}
        log.records = [record for record in log.records if last[record.key] == record.offset]

    def cut(self, topic: str, partition: int, end: int) -> None:
        """Delete the records from `end` on, as an unclean election does."""
        log = self._log(topic, partition)
        log.records = [record for record in log.records if record.offset < end]
        log.end = min(log.end, end)

    def delete(self, topic: str) -> None:
        """Delete the topic: if it is recreated, its offsets begin at 0."""
        del self._topics[topic]

    # --- for its readers -------------------------------------------------------------------------

    async def fetch(
        self, topic: str, partition: int, offset: int, timeout_s: float
    ) -> Sequence[Record]:
        """Return records from `offset` on as soon as there are any; none after `timeout_s`."""
        records: Sequence[Record] = ()

        def look() -> bool:
            nonlocal records
            if not self._down:
                log = self._log(topic, partition)
                if offset > log.end:
                    raise TopicMissing(f"{topic}-{partition} was recreated, {offset} is gone")
                first = bisect_left(log.records, offset, key=lambda record: record.offset)
                records = tuple(log.records[first : first + READ_RECORDS])
            return bool(records)

        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(look)
        except TimeoutError:
            return ()
        return records

    @property
    def is_down(self) -> bool:
        """Whether there is an outage."""
        return self._down

    # --- inside ----------------------------------------------------------------------------------

    def _log(self, topic: str, partition: int) -> _Log:
        logs = self._topics.get(topic, ())
        if not 0 <= partition < len(logs):
            raise TopicMissing(f"there is no partition {topic}-{partition}")
        return logs[partition]

    async def _append(self, log: _Log, key: bytes, value: bytes | None) -> int:
        now_ms = loop_ms()
        log.records.append(Record(log.end, now_ms, key, value))
        log.end += 1
        await self._wake()
        return log.end - 1

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _until_up(self) -> None:
        try:
            async with asyncio.timeout(self.patience_s), self._changed:
                await self._changed.wait_for(lambda: not self._down)
        except TimeoutError as exc:
            raise BrokerUnavailable(f"injected outage, for {self.patience_s:g} s now") from exc


class FakeReader:
    """One partition of a `FakeControlTopics`, read in order."""

    def __init__(self, bus: FakeControlTopics, topic: str, partition: int, offset: int) -> None:
        self._bus, self._topic, self._partition = bus, topic, partition
        self._next = offset
        self._silent_s = 0.0
        self._closed = False

    @property
    def position(self) -> int:
        """The offset to read next."""
        return self._next

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Return the next records, or none after `timeout_s`; see `Reader.read`."""
        if self._closed:
            raise RuntimeError("read from a closed reader")
        records = await self._bus.fetch(self._topic, self._partition, self._next, timeout_s)
        if records:
            self._next = records[-1].offset + 1
        self._silent_s = self._silent_s + timeout_s if self._bus.is_down else 0.0
        if self._silent_s >= self._bus.patience_s:
            self._silent_s = 0.0
            raise BrokerUnavailable(f"injected outage, for {self._bus.patience_s:g} s now")
        return records

    def seek(self, offset: int) -> None:
        """Continue at another offset."""
        self._next = offset

    async def close(self) -> None:
        """Close the reader."""
        if not self._closed:
            self._bus.read_no_more(self._topic)
        self._closed = True
