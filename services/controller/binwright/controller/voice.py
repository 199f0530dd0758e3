"""Words to the metadata topic: in order within a partition, side by side between partitions.

One slot's answer must not wait until the commands for all others are confirmed.
"""

import asyncio

import structlog

from binwright.core.errors import BrokerUnavailable, RecordTooLarge, TopicMissing
from binwright.core.messages import Message
from binwright.core.ports import Bus
from binwright.shell.letters import post
from binwright.shell.run import endless

log = structlog.get_logger()

RETRY_S = 1.0


class Voice:
    """What one reign has to say; `run` says it."""

    def __init__(self, bus: Bus, topic: str) -> None:
        self._bus, self._topic = bus, topic
        self._lanes: dict[int, asyncio.Queue[Message]] = {}
        self._opened: asyncio.Queue[int] = asyncio.Queue()

    def say(self, partition: int, message: Message) -> None:
        """Append `message` to `partition`, after all that was said to it before."""
        if partition not in self._lanes:
            self._lanes[partition] = asyncio.Queue()
            self._opened.put_nowait(partition)
        self._lanes[partition].put_nowait(message)

    async def say_to_all(self, message: Message) -> None:
        """Say it to every slot that has a partition, in the fleet or not."""
        for partition in range(1, await self._partitions()):
            self.say(partition, message)

    async def run(self) -> None:
        """Append what is said, for ever."""
        async with asyncio.TaskGroup() as lanes:
            while True:
                lanes.create_task(endless(self._speak(await self._opened.get())))

    async def _speak(self, partition: int) -> None:
        lane = self._lanes[partition]
        while True:
            await self._append(partition, await lane.get())

    async def _append(self, partition: int, message: Message) -> None:
        """Append, however long that takes: one that stands there twice changes nothing."""
        while True:
            try:
                await post(self._bus, self._topic, partition, message)
            except BrokerUnavailable as exc:
                log.warning("message.delayed", kind=message.kind, reason=str(exc))
                await asyncio.sleep(RETRY_S)
            except (TopicMissing, RecordTooLarge) as exc:
                # A slot that never was can't be waiting, and what comes next need not wait either.
                log.error("message.undeliverable", kind=message.kind, reason=str(exc))  # noqa: TRY400 - expected
                return
            else:
                return

    async def _partitions(self) -> int:
        while True:
            try:
                return await self._bus.partitions(self._topic)
            except BrokerUnavailable as exc:
                log.warning("metadata.unreachable", reason=str(exc))
                await asyncio.sleep(RETRY_S)
