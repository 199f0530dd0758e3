"""One Kafka partition read in order, by hand: no group, no commits."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.ports import Record
from binwright.shell.broker import translated
from binwright.shell.shared_consumer import Place, SharedConsumer

log = structlog.get_logger()

READ_RECORDS = 1000


def check_within(partition: TopicPartition, offset: int, end: int) -> None:
    """Raise `TopicMissing` if the partition ends before `offset`."""
    if offset > end:
        raise TopicMissing(
            f"{partition.topic}-{partition.partition} ends at {end}, before offset {offset}: "
            "it was cut, or made anew"
        )


class KafkaReader:
    """One partition, each record once; see `Reader`.

    Broker restarts and leader moves pass silently, `read` then returns nothing. It raises
    `BrokerUnavailable` once the brokers have been silent for `patience_s` of waiting in it; call it
    again and it goes on where it was. Records that retention took first are skipped and logged.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what the bus knows
        self,
        shared: SharedConsumer,
        partition: TopicPartition,
        place: Place,
        bounds: Callable[[], Awaitable[tuple[int, int]]],
        patience_s: float,
        closed: Callable[[SharedConsumer], Awaitable[None]],
    ) -> None:
        """Read `place`, which is in `shared`; `bounds` tells the first offset kept and the end."""
        self._shared, self._partition, self._place = shared, partition, place
        self._bounds, self._patience_s, self._closed = bounds, patience_s, closed
        self._next = place.next
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
            BrokerUnavailable: Silence for longer than the patience; reading may go on.
            TopicMissing: The partition is gone, or is another one by now.
        """
        loop = asyncio.get_running_loop()
        begin, answered = loop.time(), self._answered()
        records: Sequence[Record] = ()
        with translated(self._doing):
            try:
                records = await self._fetched(timeout_s)
            except OffsetOutOfRangeError as exc:
                try:
                    await self._skip()
                except BrokerUnavailable:
                    self._place.fail(exc)  # to be looked at again
                    raise
        if records or self._answered() != answered:
            self._silent_s = 0.0
        else:
            self._silent_s += loop.time() - begin
            await self._complain()
        return records

    def _answered(self) -> int | None:
        """Return when a broker last answered a fetch; they do at least twice a second."""
        return self._shared.answered(self._partition)

    async def _fetched(self, timeout_s: float) -> Sequence[Record]:
        self._shared.wanted(self._partition)
        records = await self._place.take(READ_RECORDS, timeout_s)
        if records:
            self._next = records[-1].offset + 1
        return records

    async def _skip(self) -> None:
        first, end = await self._bounds()
        check_within(self._partition, self._next, end)
        if self._next < first:
            log.warning("records.missed", partition=str(self), wanted=self._next, first=first)
        self._next = max(first, self._next)
        self._shared.seek(self._partition, self._next)

    async def _complain(self) -> None:
        if self._silent_s < self._patience_s:
            return
        silent_s, self._silent_s = self._silent_s, 0.0
        await self._bounds()  # tells a missing topic from missing brokers
        raise BrokerUnavailable(f"read {self}: no broker has answered for {silent_s:.0f} s")

    async def close(self) -> None:
        """Let go of connections."""
        self._shared.drop(self._partition, self._place)
        await self._closed(self._shared)
