"""Sends messages to the metadata topic: in order within a partition, partitions in parallel.

A message to one slot must not wait until Kafka has acknowledged those to all other slots.
"""

import asyncio

import structlog

from binwright.kafka.control_records import publish_message
from binwright.protocol.errors import BrokerUnavailable, RecordTooLarge, TopicMissing
from binwright.protocol.messages import Message
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.run import must_not_end

log = structlog.get_logger()

RETRY_S = 1.0


class Sender:
    """The outgoing messages of one leadership, a queue for each partition; `run` sends them."""

    def __init__(self, bus: ControlTopics, topic: str) -> None:
        self._bus, self._topic = bus, topic
        self._queues: dict[int, asyncio.Queue[Message]] = {}
        self._opened: asyncio.Queue[int] = asyncio.Queue()

    def send(self, partition: int, message: Message) -> None:
        """Queue `message` for `partition`, after all messages queued before it."""
        if partition not in self._queues:
            self._queues[partition] = asyncio.Queue()
            self._opened.put_nowait(partition)
        self._queues[partition].put_nowait(message)

    async def send_to_all(self, message: Message) -> None:
        """Queue it for every slot that has a partition, whether or not a consumer runs there."""
        for partition in range(1, await self._partitions()):
            self.send(partition, message)

    async def run(self) -> None:
        """Append the queued messages, for ever."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(must_not_end(self._send_queued(await self._opened.get())))

    async def _send_queued(self, partition: int) -> None:
        queue = self._queues[partition]
        while True:
            await self._append(partition, await queue.get())

    async def _append(self, partition: int, message: Message) -> None:
        """Append, and retry until Kafka acknowledges it: readers ignore a duplicate."""
        while True:
            try:
                await publish_message(self._bus, self._topic, partition, message)
            except BrokerUnavailable as exc:
                log.warning("message.delayed", kind=message.kind, reason=str(exc))
                await asyncio.sleep(RETRY_S)
            except (TopicMissing, RecordTooLarge) as exc:
                # A slot without a partition has no consumer that waits for it. Retrying would only
                # delay the messages queued behind.
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
