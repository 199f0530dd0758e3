"""Detects that this controller has lost its connection to Kafka.

Without that, a controller that is cut off would declare live consumers dead, because it reads
nothing from them.
"""

import asyncio
from collections.abc import Sequence

import structlog

from binwright.kafka.control_records import CONTROLLER_PARTITION
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record
from binwright.runtime.clock import loop_s

log = structlog.get_logger()

CHECK_S = 1.0
STALE_S = 3.0
"""How old the last successful check may be. Together with a tick this must stay below half the
consumer timeout: after a longer gap between ticks the machine restarts all consumers' timeouts, as
it does after its own process was suspended."""


class LiveReader:
    """A `Reader` of metadata partition 0 that compares its position with the partition's end."""

    def __init__(self, bus: ControlTopics, topic: str, reader: Reader) -> None:
        self._bus, self._topic, self._reader = bus, topic, reader
        self._next = 0
        self._read = asyncio.Event()
        self._checked_at = loop_s()
        self._disconnected = False

    @property
    def position(self) -> int:
        """Fit `Reader.position`."""
        return self._reader.position

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Fit `Reader.read`."""
        records = await self._reader.read(timeout_s)
        if records:
            self._next = records[-1].offset + 1
            self._read.set()
        return records

    async def close(self) -> None:
        """Fit `Reader.close`."""
        await self._reader.close()

    def is_live(self) -> bool:
        """Whether all records of a moment ago (`STALE_S`) have been read."""
        disconnected = loop_s() - self._checked_at > CHECK_S + STALE_S
        if disconnected != self._disconnected:
            log.warning(
                "reader.disconnected" if disconnected else "reader.reconnected",
                effect="no consumer is declared dead while disconnected",
            )
        self._disconnected = disconnected
        return not disconnected

    async def track_end(self) -> None:
        """Request the partition's end and wait until it has been read, once a second, for ever.

        All controllers of a process request it at the same moments: they are
        looked up in one request.
        """
        while True:
            requested_at = loop_s()
            try:
                end = await self._bus.end(self._topic, CONTROLLER_PARTITION)
            except (BrokerUnavailable, TopicMissing) as exc:
                log.debug("reader.check_failed", reason=str(exc))
            else:
                await self._read_until(end)
                self._checked_at = requested_at
            await asyncio.sleep(CHECK_S - loop_s() % CHECK_S)

    async def _read_until(self, end: int) -> None:
        while self._next < end:
            self._read.clear()
            await self._read.wait()
