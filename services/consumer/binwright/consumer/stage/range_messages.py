"""What consumers of split partitions write to each other, in the group's landing topic.

Consumers may read and write that topic anyway, and what is lost there is staged by the owner.
"""

import asyncio
from collections.abc import Callable, Collection

from binwright.kafka.control_records import Decoder, landing_partition, read_or_log
from binwright.kafka.publishing import Publisher
from binwright.protocol.errors import ExternalError
from binwright.protocol.landing import RangeMessage, decode_range
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.wire import message_key
from binwright.runtime.logs import log

LANDING_TOPIC_UNREACHABLE = LogEvent.warning(
    "landing_topic.unreachable", "The landing topic cannot be read; staged files wait."
)
MESSAGE_UNDELIVERABLE = LogEvent.warning(
    "message.undeliverable",
    "A message about a part of a split partition could not be published, and counts as lost.",
)

BACK_MS = 5_000
"""Reading begins with what was written so long ago: a range may be handed out before its helper
knows that it helps."""
RETRY_S = 1.0
_KINDS = (b"stage-range/", b"range-staged/")


class RangeMessages:
    """Reads and writes them: those about a topic are in one partition of the landing topic."""

    def __init__(
        self,
        bus: ControlTopics,
        landing_topic: str,
        apply: Callable[[RangeMessage], None],
        wall_ms: Callable[[], int],
    ) -> None:
        """Hand what is read to `apply`, which returns at once."""
        self._bus, self._landing_topic = bus, landing_topic
        self._apply, self._wall_ms = apply, wall_ms
        self._wanted: frozenset[int] = frozenset()
        self._changed = asyncio.Event()

    def follow(self, topics: Collection[str]) -> None:
        """Read what is written about these topics, and no others, while `run` does."""
        self._wanted = frozenset(map(landing_partition, topics))
        self._changed.set()

    async def send(self, message: RangeMessage) -> None:
        """Publish once; a message that Kafka does not take now counts as lost."""
        partition = landing_partition(message.partition.topic)
        try:
            await Publisher(self._bus, self._landing_topic, partition).attempt(message)
        except ExternalError as exc:
            log(MESSAGE_UNDELIVERABLE, topic=self._landing_topic, reason=str(exc))

    async def run(self) -> None:
        """Read until cancelled."""
        reading: dict[int, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                for partition in reading.keys() - self._wanted:
                    reading.pop(partition).cancel()
                for partition in self._wanted - reading.keys():
                    reading[partition] = tasks.create_task(self._read(partition))
                await self._changed.wait()

    async def _read(self, partition: int) -> None:
        while True:
            try:
                since_ms = self._wall_ms() - BACK_MS
                offset = await self._bus.offset_at(self._landing_topic, partition, since_ms)
                reader = await self._bus.reader(self._landing_topic, partition, offset)
                try:
                    decoder = Decoder(decode_range)
                    while True:
                        records = await read_or_log(reader, LANDING_TOPIC_UNREACHABLE)
                        about_ranges = (r for r in records or () if _is_about_ranges(r.key))
                        for _, message in decoder.decode(about_ranges):
                            self._apply(message)
                finally:
                    await reader.close()
            except ExternalError as exc:
                log(LANDING_TOPIC_UNREACHABLE, partition=partition, reason=str(exc))
                await asyncio.sleep(RETRY_S)


def _is_about_ranges(key: bytes | None) -> bool:
    return (message_key(key) or b"").startswith(_KINDS)
