"""Publishes messages to control topics until Kafka has confirmed them.

A message that is appended twice, because its confirmation was lost, changes nothing: every reader
ignores a duplicate. So what is not confirmed in time is published again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from binwright.kafka.control_records import CONTROL_TOPIC_UNREACHABLE
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable, RecordTooLarge, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.wire import RECORD_BYTES, AnyMessage, split_message
from binwright.runtime.backoff import Backoff
from binwright.runtime.logs import log
from binwright.runtime.run import must_not_end

MESSAGE_SPLIT = LogEvent.warning(
    "message.split", "A topic refused a large message; it is sent in smaller parts."
)
MESSAGE_UNDELIVERABLE = LogEvent.error(
    "message.undeliverable",
    "A message cannot be published at all: its topic is missing or takes no such record.",
)
MESSAGE_DELAYED = LogEvent.warning(
    "message.delayed",
    "Kafka does not confirm a message; it is published again until Kafka does, of a consumer's "
    "reports the next one.",
)
MESSAGE_RECOVERED = LogEvent.info("message.recovered", "Kafka confirms messages again.")

SMALLEST_RECORD_BYTES = 10_000
"""A topic that refuses records of this size is misconfigured (max.message.bytes)."""

RETRY_S, LONGEST_RETRY_S = 0.5, 1.0
"""A consumer that is silent for longer after an outage is declared dead."""


async def publish_message(
    bus: ControlTopics, topic: str, partition: int, message: AnyMessage
) -> int:
    """Append a message durably, in parts if necessary; return the offset of its last record.

    Raises:
        BrokerUnavailable: Not confirmed in time; all, some or none of its records may have been
            appended.
        TopicMissing: The topic or partition does not exist.
        RecordTooLarge: The topic refuses even records of `SMALLEST_RECORD_BYTES`.
    """
    key, value = wire.key(message), wire.encode(message)
    limit = RECORD_BYTES
    while True:
        try:
            for part in split_message(key, value, limit):
                offset = await bus.publish(topic, partition, *part)
        except RecordTooLarge as exc:
            limit = min(limit, len(value)) // 2
            if limit < SMALLEST_RECORD_BYTES:
                raise
            log(MESSAGE_SPLIT, topic=topic, reason=str(exc), then=f"parts of {limit} bytes")
        else:
            return offset


class Publisher:
    """Publishes to one partition; logs when Kafka stops and begins to confirm.

    Its methods raise `RecordTooLarge`, and `TopicMissing` unless it can create the topic.
    """

    def __init__(
        self,
        bus: ControlTopics,
        topic: str,
        partition: int,
        *,
        create: Callable[[], Awaitable[None]] | None = None,
        pause: Backoff | None = None,
    ) -> None:
        """Publish to this partition.

        Args:
            bus: The control topics.
            topic: Its name.
            partition: Its number.
            create: Creates the topic when it is missing.
            pause: Between attempts; by default up to `LONGEST_RETRY_S`.
        """
        self._bus, self._topic, self._partition = bus, topic, partition
        self._create = create
        self._pause = pause or Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        self._delayed = False

    async def publish(self, message: AnyMessage | Callable[[], AnyMessage]) -> None:
        """Publish until confirmed; a function makes the message anew for each attempt."""
        while not await self.attempt(message() if callable(message) else message):
            pass

    async def publish_or_drop(self, message: AnyMessage | Callable[[], AnyMessage]) -> None:
        """Publish until confirmed; log an error if the topic is missing or refuses any size."""
        try:
            await self.publish(message)
        except (TopicMissing, RecordTooLarge) as exc:
            log(MESSAGE_UNDELIVERABLE, topic=self._topic, reason=str(exc))

    async def attempt(self, message: AnyMessage) -> bool:
        """Publish once, and return whether it is confirmed; if not, after a pause."""
        try:
            await self._append(message)
        except BrokerUnavailable as exc:
            if not self._delayed:
                log(MESSAGE_DELAYED, topic=self._topic, kind=message.kind, reason=str(exc))
            self._delayed = True
            await asyncio.sleep(self._pause.next())
            return False
        if self._delayed:
            log(MESSAGE_RECOVERED, topic=self._topic, kind=message.kind)
        self._delayed = False
        self._pause.reset()
        return True

    async def _append(self, message: AnyMessage) -> None:
        try:
            await publish_message(self._bus, self._topic, self._partition, message)
        except TopicMissing:
            if self._create is None:
                raise
            try:
                await self._create()
                await publish_message(self._bus, self._topic, self._partition, message)
            except TopicMissing as exc:
                raise BrokerUnavailable(str(exc)) from exc


class QueuedPublisher:
    """Publishes to a topic: in order within a partition, while partitions do not wait for others.

    A command to one slot must not wait until Kafka has confirmed those to all other slots.
    """

    def __init__(self, bus: ControlTopics, topic: str) -> None:
        """Publish to this topic, as soon as `run` does."""
        self._bus, self._topic = bus, topic
        self._arrived: asyncio.Queue[tuple[int | None, AnyMessage]] = asyncio.Queue()
        self._queues: dict[int, asyncio.Queue[AnyMessage]] = {}

    def send(self, partition: int, message: AnyMessage) -> None:
        """Queue `message` for `partition`, behind all messages queued before it."""
        self._arrived.put_nowait((partition, message))

    def send_to_all(self, message: AnyMessage) -> None:
        """Queue it for every partition, whether or not a consumer reads it."""
        self._arrived.put_nowait((None, message))

    async def run(self) -> None:
        """Publish the queued messages, for ever."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                partition, message = await self._arrived.get()
                for each in await self._partitions() if partition is None else (partition,):
                    if each not in self._queues:
                        self._queues[each] = asyncio.Queue()
                        tasks.create_task(must_not_end(self._publish_queued(each)))
                    self._queues[each].put_nowait(message)

    async def _publish_queued(self, partition: int) -> None:
        publisher = Publisher(self._bus, self._topic, partition)
        while True:
            # A slot without a partition has no consumer that waits for the message. Retrying would
            # only delay the messages queued behind.
            await publisher.publish_or_drop(await self._queues[partition].get())

    async def _partitions(self) -> range:
        pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            try:
                return range(await self._bus.partitions(self._topic))
            except BrokerUnavailable as exc:
                log(CONTROL_TOPIC_UNREACHABLE, topic=self._topic, reason=str(exc))
                await asyncio.sleep(pause.next())
