"""Reads the announcements of one table's staged files from the landing topic."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from binwright.consumer.writer.asking import landing_partition
from binwright.core import wire
from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.messages import Staged
from binwright.core.parts import whole_key
from binwright.core.ports import Bus, Reader
from binwright.shell.letters import Decoder

log = structlog.get_logger()

RETRY_S = 1.0
READ_S = 5.0

Announced = Sequence[tuple[int, Staged]]
"""Records of the landing topic about this table: offset and message, in their order."""


class Announcements:
    """One table's part of the landing topic, read from where it is told."""

    def __init__(
        self,
        bus: Bus,
        landing_topic: str,
        topic: str,
        *,
        take: Callable[[Announced], Awaitable[None]],
        on_lost: Callable[[str], None],
    ) -> None:
        """Read nothing yet.

        Args:
            bus: Where the landing topic is.
            landing_topic: Its name.
            topic: Whose table it is about.
            take: Gets what was read; nothing is read meanwhile.
            on_lost: Told that the landing topic is gone, cut or made anew: reading has ended.
        """
        self._bus, self._landing_topic, self._topic = bus, landing_topic, topic
        self._take, self._on_lost = take, on_lost
        self._reading: asyncio.Task[None] | None = None

    async def begin(self, offset: int) -> None:
        """Read from this record on, and no more from where it was read before."""
        await self.stop()
        self._reading = asyncio.create_task(self._read(offset))

    async def stop(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
            self._reading = None

    async def _read(self, offset: int) -> None:
        try:
            reader = await self._opened(offset)
            try:
                await self._pass_on(reader)
            finally:
                await reader.close()
        except TopicMissing as exc:
            self._on_lost(str(exc))
        except Exception as exc:  # our own fault: the table is begun anew
            log.exception("landing.failed", table=self._topic)
            self._on_lost(repr(exc))

    async def _opened(self, offset: int) -> Reader:
        partition = landing_partition(self._topic)
        while True:
            try:
                return await self._bus.reader(self._landing_topic, partition, offset)
            except BrokerUnavailable as exc:
                await self._rest(exc)

    async def _pass_on(self, reader: Reader) -> None:
        key, decoder = self._topic.encode(), Decoder(wire.decode_staged)
        while True:
            try:
                records = await reader.read(READ_S)
            except BrokerUnavailable as exc:
                await self._rest(exc)
                continue
            # Others' announcements are not even decoded.
            own = (record for record in records if whole_key(record.key) == key)
            read = decoder.readable(own)
            if found := [(record.offset, staged) for record, staged in read]:
                await self._take(found)

    async def _rest(self, exc: BrokerUnavailable) -> None:
        log.warning("landing.unreachable", table=self._topic, reason=str(exc))
        await asyncio.sleep(RETRY_S)
