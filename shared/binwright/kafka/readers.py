"""Reads control partitions: one Kafka client for many of them, each with a reader of its own.

aiokafka's `assign` with a changed list discards all fetched records and fetches under way, so
changes are gathered for a moment, and every partition continues at its buffer's position.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import (
    IllegalStateError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from binwright.kafka.aiokafka_patches import fetcher_has_died
from binwright.kafka.client import stop_client, translate_errors
from binwright.protocol.errors import BrokerUnavailable, ExternalError, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import Record
from binwright.runtime.backoff import until_set
from binwright.runtime.logs import log

FETCHER_UNREACHABLE = LogEvent.warning(
    "fetcher.unreachable", "Kafka cannot be reached for the control topics; it is tried again."
)
FETCHER_FAILED = LogEvent.error(
    "fetcher.failed", "A Kafka client failed unexpectedly; another one replaces it."
)
FETCHER_DIED = LogEvent.error(
    "fetcher.died", "A Kafka client stopped fetching; another one replaces it."
)
RECORDS_SKIPPED = LogEvent.warning(
    "records.skipped", "Retention deleted records of a control topic before they were read."
)

GATHER_S, SPACING_S = 0.02, 0.3
"""Changes of the assignment are gathered for `GATHER_S` and at least `SPACING_S` apart, so that
fetches succeed between them while many readers are added."""
MOST_PARTITIONS = 64
"""Partitions of one client. While a fetch waits, its broker checks all partitions of the fetch for
each record appended to any of them: a fetch of a thousand partitions keeps a broker busy."""
POLL_S = 1.0
RETRY_S = 0.5  # after a fault
READ_RECORDS = 1_000  # returned by one read
MOST_FETCHED = 1_000  # records of one poll
MOST_WAITING = 5_000  # buffered records of a partition; fetching of it pauses above that


class PartitionBuffer:
    """The fetch position of one partition, and its fetched records until they are read."""

    def __init__(self, offset: int) -> None:
        self.next = offset  # to be fetched
        self.assigned = False  # until then fetched records belong to its previous reader
        self.records: deque[Record] = deque()
        self.fault: KafkaError | None = None
        self.changed = asyncio.Event()

    def append(self, records: list[Any]) -> None:
        """Append fetched records."""
        self.records.extend(
            Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, r.headers)
            for r in records
        )
        self.next = records[-1].offset + 1
        self.changed.set()

    def drop(self) -> None:
        """Drop the records; a fault stays."""
        self.records.clear()
        if not self.fault:
            self.changed.clear()

    def fail(self, fault: KafkaError) -> None:
        """Make `get` raise `fault` once the buffered records are read."""
        self.fault = fault
        self.changed.set()

    async def get(self, most: int, timeout_s: float) -> list[Record]:
        """Return up to `most` records, or none after `timeout_s`; raise a fault that was set."""
        await until_set(self.changed, timeout_s)
        taken = [self.records.popleft() for _ in range(min(most, len(self.records)))]
        fault = None
        if not taken:
            fault, self.fault = self.fault, None
        if not self.records and not self.fault:
            self.changed.clear()
        if fault:
            raise fault
        return taken


class SharedConsumer:
    """A consumer of aiokafka without a group, for as many partitions as are added."""

    def __init__(self, open_client: Callable[[], Awaitable[Any]]) -> None:
        """Use a started client from `open_client`, and a new one when that one breaks."""
        self._open_client = open_client
        self._client: Any = None
        self._buffers: dict[KafkaPartition, PartitionBuffer] = {}
        self._paused: set[KafkaPartition] = set()
        self._due: asyncio.TimerHandle | None = None
        self._assigned_at = -SPACING_S
        self._fetching: asyncio.Task[None] | None = None

    def has_room_for(self, partition: KafkaPartition) -> bool:
        """Return whether this partition can be added; it cannot have two buffers."""
        return len(self._buffers) < MOST_PARTITIONS and partition not in self._buffers

    def __bool__(self) -> bool:
        """Return whether any partition is read."""
        return bool(self._buffers)

    async def open(self) -> None:
        """Connect; raise what `open_client` raises."""
        self._client = await self._open_client()
        self._fetching = asyncio.create_task(self._fetch())

    async def close(self) -> None:
        """Close the connections."""
        if self._due:
            self._due.cancel()
        if self._fetching:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)
        await self._close_client()

    def add(self, partition: KafkaPartition, offset: int) -> PartitionBuffer:
        """Add a partition, read from `offset` on; return its buffer."""
        buffer = self._buffers[partition] = PartitionBuffer(offset)
        self._change()
        return buffer

    def seek(self, partition: KafkaPartition, offset: int) -> None:
        """Continue at `offset`; buffered records are dropped."""
        buffer = self._buffers[partition]
        buffer.next = offset
        buffer.drop()
        self._resume(partition)
        # Not assigned yet, or nothing is: it will be, at this offset.
        with contextlib.suppress(IllegalStateError, AssertionError, AttributeError):
            self._client.seek(partition, offset)

    def drop(self, partition: KafkaPartition, buffer: PartitionBuffer) -> None:
        """Stop reading a partition; a repeated call has no effect."""
        if self._buffers.get(partition) is buffer:
            del self._buffers[partition]
            self._paused.discard(partition)
            self._change()

    def wanted(self, partition: KafkaPartition) -> None:
        """Resume a paused partition if its buffer has room and its reader has handled the fault."""
        buffer = self._buffers[partition]
        if partition in self._paused and not buffer.fault and len(buffer.records) < MOST_FETCHED:
            self._resume(partition)

    def last_response_ms(self, partition: KafkaPartition) -> int | None:
        """Return when a broker last answered for this partition, ms; None if it is not assigned."""
        try:
            when: int | None = self._client.last_poll_timestamp(partition)
        except (AssertionError, IllegalStateError, AttributeError):
            return None
        return when

    # --- inside ----------------------------------------------------------------------------------

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client:
            await stop_client(client)

    def _pause(self, partitions: Iterable[KafkaPartition]) -> None:
        for partition in self._buffers.keys() & set(partitions) - self._paused:
            self._paused.add(partition)
            with contextlib.suppress(IllegalStateError):  # not assigned any more, or not yet
                self._client.pause(partition)

    def _resume(self, partition: KafkaPartition) -> None:
        if partition in self._paused:
            self._paused.discard(partition)
            if self._client:
                self._client.resume(partition)

    def _change(self) -> None:
        if self._due is None:
            loop = asyncio.get_running_loop()
            at = max(loop.time() + GATHER_S, self._assigned_at + SPACING_S)
            self._due = loop.call_at(at, self._assign)

    def _assign(self) -> None:
        self._due, self._assigned_at = None, asyncio.get_running_loop().time()
        if not self._buffers or self._client is None:
            return
        self._client.assign(list(self._buffers))
        for partition, buffer in self._buffers.items():
            self._client.seek(partition, buffer.next)
            buffer.assigned = True
        self._client.pause(*self._paused)

    async def _fetch(self) -> None:
        while True:
            try:
                await self._poll()
            except OffsetOutOfRangeError as exc:
                self._fail(exc, set(exc.args[0]))
            except TopicAuthorizationFailedError as exc:
                self._fail(exc, {p for p in self._buffers if p.topic in exc.args})
            except KafkaError as exc:
                self._fail(exc, set(self._buffers))
                await asyncio.sleep(RETRY_S)
            except ExternalError as exc:
                log(FETCHER_UNREACHABLE, reason=str(exc))
                await asyncio.sleep(RETRY_S)
            except Exception:  # noqa: BLE001 - a defect in aiokafka or here: readers must not wait without end
                log(FETCHER_FAILED, then="a new client continues", exc_info=True)
                await self._close_client()
                await asyncio.sleep(RETRY_S)

    async def _poll(self) -> None:
        if self._client and fetcher_has_died(self._client):
            log(FETCHER_DIED, then="a new client continues")
            await self._close_client()
        if not self._client:
            self._client = await self._open_client()
            self._assign()
        fetched = await self._client.getmany(
            timeout_ms=round(POLL_S * 1000), max_records=MOST_FETCHED
        )
        for partition, records in fetched.items():
            buffer = self._buffers.get(partition)
            if buffer and buffer.assigned:
                buffer.append(records)
                if len(buffer.records) > MOST_WAITING:
                    self._pause([partition])
        await asyncio.sleep(0)  # getmany may return without having waited

    def _fail(self, fault: KafkaError, partitions: set[KafkaPartition]) -> None:
        """Pause these partitions until their readers have handled the fault."""
        self._pause(partitions)
        for partition in partitions:
            if buffer := self._buffers.get(partition):
                buffer.fail(fault)


def check_within(partition: KafkaPartition, offset: int, end: int) -> None:
    """Raise `TopicMissing` if the partition ends before `offset`."""
    if offset > end:
        raise TopicMissing(
            f"{partition.topic}-{partition.partition} ends at {end}, before offset {offset}: "
            "it was truncated, or the topic was recreated"
        )


class KafkaReader:
    """One partition, each record once; see `Reader`.

    During broker restarts and leader moves `read` returns nothing. It raises `BrokerUnavailable`
    once no broker has answered for `patience_s` of waiting in it; the next call continues at the
    same position. Records that retention deleted before they were read are skipped and logged.
    """

    def __init__(  # noqa: PLR0917 - what its maker knows
        self,
        shared: SharedConsumer,
        partition: KafkaPartition,
        buffer: PartitionBuffer,
        bounds: Callable[[], Awaitable[tuple[int, int]]],
        patience_s: float,
        closed: Callable[[SharedConsumer], Awaitable[None]],
    ) -> None:
        """Read `buffer`, a buffer of `shared`; `bounds` returns the first offset and the end."""
        self._shared, self._partition, self._buffer = shared, partition, buffer
        self._bounds, self._patience_s, self._closed = bounds, patience_s, closed
        self._next = buffer.next
        self._silent_s = 0.0
        self._doing = f"read {self}"

    def __str__(self) -> str:
        """Name the partition."""
        return f"{self._partition.topic}-{self._partition.partition}"

    @property
    def position(self) -> int:
        """The offset of the record to be read next; of one that is not there any more, or later."""
        return self._next

    def seek(self, offset: int) -> None:
        """Continue at another offset."""
        self._next = offset
        self._shared.seek(self._partition, offset)

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Return the next records, or none after `timeout_s`.

        Raises:
            BrokerUnavailable: No answer for longer than the patience; reading may continue.
            TopicMissing: The partition does not exist any more, or was recreated.
        """
        loop = asyncio.get_running_loop()
        begin, answered = loop.time(), self._answered()
        records: Sequence[Record] = ()
        with translate_errors(self._doing):
            try:
                records = await self._fetched(timeout_s)
            except OffsetOutOfRangeError as exc:
                try:
                    await self._skip()
                except BrokerUnavailable:
                    self._buffer.fail(exc)  # raised again by the next read
                    raise
        if records or self._answered() != answered:
            self._silent_s = 0.0
        else:
            self._silent_s += loop.time() - begin
            await self._raise_if_silent()
        return records

    def _answered(self) -> int | None:
        """Return when a broker last answered a fetch, ms; it answers at least twice a second."""
        return self._shared.last_response_ms(self._partition)

    async def _fetched(self, timeout_s: float) -> Sequence[Record]:
        self._shared.wanted(self._partition)
        records = await self._buffer.get(READ_RECORDS, timeout_s)
        if records:
            self._next = records[-1].offset + 1
        return records

    async def _skip(self) -> None:
        first, end = await self._bounds()
        check_within(self._partition, self._next, end)
        if self._next < first:
            log(RECORDS_SKIPPED, partition=str(self), wanted=self._next, first=first)
        self.seek(max(first, self._next))

    async def _raise_if_silent(self) -> None:
        if self._silent_s < self._patience_s:
            return
        silent_s, self._silent_s = self._silent_s, 0.0
        await self._bounds()  # tells a missing topic from missing brokers
        raise BrokerUnavailable(f"read {self}: no broker has answered for {silent_s:.0f} s")

    async def close(self) -> None:
        """Close the connections that no other reader uses."""
        self._shared.drop(self._partition, self._buffer)
        await self._closed(self._shared)
