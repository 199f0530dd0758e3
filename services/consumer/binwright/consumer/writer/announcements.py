"""Reads the announcements of one table's staged files from the landing topic."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from zlib import crc32

import structlog

from binwright.consumer.writer.context import WriterContext
from binwright.kafka.control_records import LANDING_PARTITIONS, Decoder, read_or_log
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.messages import Staged
from binwright.protocol.ports.kafka import Reader
from binwright.protocol.wire import message_key

log = structlog.get_logger()

RETRY_S = 1.0

Announced = Sequence[tuple[int, Staged]]
"""Announcements of one table: offset in the landing topic and message, in offset order."""


def landing_partition(topic: str) -> int:
    """Return the partition of the landing topic that announces a data topic's files."""
    return crc32(topic.encode()) % LANDING_PARTITIONS


class Announcements:
    """The records of one table in the landing topic, read from a given offset."""

    def __init__(
        self,
        topic: str,
        context: WriterContext,
        *,
        on_announced: Callable[[Announced], Awaitable[None]],
        on_lost: Callable[[str], None],
    ) -> None:
        """Prepare; `begin` starts reading.

        Args:
            topic: The data topic of the table.
            context: The connection to the landing topic.
            on_announced: Called with each batch of announcements; reading waits until it returns.
            on_lost: Called with the reason when the landing topic was deleted, truncated or
                recreated; reading has ended.
        """
        self._topic, self._context = topic, context
        self._on_announced, self._on_lost = on_announced, on_lost
        self._reading: asyncio.Task[None] | None = None

    async def begin(self, offset: int) -> None:
        """Stop a reading under way, and read from this offset on."""
        await self.stop()
        self._reading = asyncio.create_task(self._read(offset))

    async def stop(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
            self._reading = None

    async def _read(self, offset: int) -> None:
        try:
            reader = await self._open(offset)
            try:
                await self._dispatch(reader)
            finally:
                await reader.close()
        except TopicMissing as exc:
            self._on_lost(str(exc))
        except Exception as exc:  # a bug: the table is claimed again
            log.exception("landing.failed", table=self._topic)
            self._on_lost(repr(exc))

    async def _open(self, offset: int) -> Reader:
        context, partition = self._context, landing_partition(self._topic)
        while True:
            try:
                return await context.bus.reader(context.landing_topic, partition, offset)
            except BrokerUnavailable as exc:
                log.warning("landing_topic.unreachable", table=self._topic, reason=str(exc))
                await asyncio.sleep(RETRY_S)

    async def _dispatch(self, reader: Reader) -> None:
        key, decoder = self._topic.encode(), Decoder(wire.decode_staged)
        while True:
            records = (
                await read_or_log(reader, "landing_topic.unreachable", table=self._topic) or ()
            )
            # Announcements of other tables are not decoded.
            own = (record for record in records if message_key(record.key) == key)
            read = decoder.decode(own)
            if announced := [(record.offset, staged) for record, staged in read]:
                await self._on_announced(announced)
