"""Reads one Kafka partition in order, without a consumer group and without commits."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from binwright.kafka.client import translate_errors
from binwright.kafka.shared_consumer import PartitionBuffer, SharedConsumer
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.ports.kafka import Record

log = structlog.get_logger()

READ_RECORDS = 1000


def check_within(partition: TopicPartition, offset: int, end: int) -> None:
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

    def __init__(  # noqa: PLR0913, PLR0917 - what the bus knows
        self,
        shared: SharedConsumer,
        partition: TopicPartition,
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
            log.warning("records.skipped", partition=str(self), wanted=self._next, first=first)
        self._next = max(first, self._next)
        self._shared.seek(self._partition, self._next)

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
