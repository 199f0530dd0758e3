"""One Kafka partition read in order, by hand: no group, no commits."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.ports import Record
from binwright.shell.broker import stop_client, translated

log = structlog.get_logger()

READ_RECORDS = 1000


class KafkaReader:
    """One partition, each record once; see `Reader`.

    Broker restarts and leader moves pass silently, `read` then returns nothing. It raises
    `BrokerUnavailable` once the brokers have been silent for `patience_s` of waiting in it; call it
    again and it goes on where it was. Records that retention took first are skipped and logged.
    """

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        partition: TopicPartition,
        bounds: Callable[[], Awaitable[tuple[int, int]]],
        patience_s: float,
    ) -> None:
        """Own `consumer`; `bounds` tells the first offset kept and the end."""
        self._consumer, self._partition, self._bounds = consumer, partition, bounds
        self._patience_s = patience_s
        self._next = 0
        self._silent_s = 0.0

    def __str__(self) -> str:
        """Name the partition."""
        return f"{self._partition.topic}-{self._partition.partition}"

    @property
    def position(self) -> int:
        """The offset of the record to be read next; of one that is not there any more, or later."""
        return self._next

    async def seek(self, offset: int) -> None:
        """Go to `offset`, or to the oldest record if that is later.

        Raises:
            BrokerUnavailable: Nobody tells what there is.
            TopicMissing: There is no such partition, or it ends before `offset`.
        """
        first, end = await self._bounds()
        if offset > end:
            raise TopicMissing(
                f"{self} ends at {end}, before offset {offset}: it was cut, or made anew"
            )
        if self._partition not in self._consumer.assignment():
            self._consumer.assign([self._partition])
        self._next = max(first, offset)
        self._consumer.seek(self._partition, self._next)

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Return the next records, or none after `timeout_s`.

        Raises:
            BrokerUnavailable: Silence for longer than the patience; reading may go on.
            TopicMissing: The partition is gone, or is another one by now.
        """
        loop = asyncio.get_running_loop()
        begin, answered = loop.time(), self._answered()
        records: Sequence[Record] = ()
        with translated(f"read {self}"):
            try:
                records = await self._fetched(timeout_s)
            except OffsetOutOfRangeError:
                await self._skip()
        if records or self._answered() != answered:
            self._silent_s = 0.0
        else:
            self._silent_s += loop.time() - begin
            await self._complain()
        return records

    def _answered(self) -> int | None:
        """Return when a broker last answered a fetch; they do at least twice a second."""
        when: int | None = self._consumer.last_poll_timestamp(self._partition)
        return when

    async def _fetched(self, timeout_s: float) -> Sequence[Record]:
        found = await self._consumer.getmany(
            timeout_ms=round(timeout_s * 1000), max_records=READ_RECORDS
        )
        records = [
            Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, r.headers)
            for r in found.get(self._partition, ())
        ]
        if records:
            self._next = records[-1].offset + 1
        return records

    async def _skip(self) -> None:
        wanted = self._next
        await self.seek(wanted)
        if wanted < self._next:
            log.warning("records.missed", partition=str(self), wanted=wanted, first=self._next)

    async def _complain(self) -> None:
        if self._silent_s < self._patience_s:
            return
        silent_s, self._silent_s = self._silent_s, 0.0
        await self._bounds()  # tells a missing topic from missing brokers
        raise BrokerUnavailable(f"read {self}: no broker has answered for {silent_s:.0f} s")

    async def close(self) -> None:
        """Let go of connections."""
        await stop_client(self._consumer)
