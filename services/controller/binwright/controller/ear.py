"""Whether a reign hears all there is: who is cut off from Kafka would take everybody for dead."""

import asyncio
from collections.abc import Sequence

import structlog

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.ports import Bus, Reader, Record
from binwright.shell.letters import INBOX

log = structlog.get_logger()

ASK_S = 1.0
STALE_S = 3.0
"""So old may the last proof be. With a tick it must stay below half the consumer timeout: after a
longer deafness the machine gives everybody time to speak, as after a sleep of its own."""


class Ear:
    """A `Reader` of metadata partition 0 that is held against the partition's end."""

    def __init__(self, bus: Bus, topic: str, reader: Reader) -> None:
        self._bus, self._topic, self._reader = bus, topic, reader
        self._next = 0
        self._read = asyncio.Event()
        self._proven_at = self._now()
        self._deaf = False

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

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

    def hears(self) -> bool:
        """Whether all that stood there a moment ago has been read."""
        deaf = self._now() - self._proven_at > ASK_S + STALE_S
        if deaf != self._deaf:
            log.warning("ear.deaf" if deaf else "ear.hears", effect="nobody is judged while deaf")
        self._deaf = deaf
        return not deaf

    async def prove(self) -> None:
        """Ask for the end, and read up to it, again and again, for ever.

        All reigns of a process ask at the same moments: a bus makes one request of them.
        """
        while True:
            asked_at = self._now()
            try:
                end = await self._bus.end(self._topic, INBOX)
            except (BrokerUnavailable, TopicMissing) as exc:
                log.debug("ear.unanswered", reason=str(exc))
            else:
                await self._until(end)
                self._proven_at = asked_at
            await asyncio.sleep(ASK_S - self._now() % ASK_S)

    async def _until(self, end: int) -> None:
        while self._next < end:
            self._read.clear()
            await self._read.wait()
