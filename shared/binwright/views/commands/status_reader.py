"""Read the topics of groups, and sum each group up: once, or again and again."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from binwright.kafka.client import ClusterClient
from binwright.kafka.control_records import Decoder
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol import wire
from binwright.protocol.errors import ExternalError, TopicMissing
from binwright.protocol.measurements import Measurement
from binwright.protocol.messages import Inbound
from binwright.protocol.ports.kafka import Reader, Record
from binwright.protocol.selection import METADATA_SUFFIX
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings import Settings
from binwright.views.group_view import GroupView
from binwright.views.status import Status, status
from binwright.views.topic_readers import read_history, read_recent_measurements

READ_S, REFRESH_S, CATCH_UP_S = 0.2, 1.0, 30.0

Show = Callable[[Sequence[Status]], None]


@dataclass
class FollowedTopic:
    """A group's metadata topic, or the metrics topic, up to where it was read."""

    reader: Reader
    end: int  # of the topic, when it was opened
    decoder: Decoder[Any]
    view: GroupView = field(default_factory=GroupView)

    async def read(self, apply: Callable[[Record, Any], None], *, whole: bool) -> None:
        """Apply what is new; with `whole`, all records up to `end`."""
        while True:
            for record, message in self.decoder.decode(await self.reader.read(READ_S)):
                apply(record, message)
            if not whole or self.reader.position >= self.end:
                return

    def apply(self, record: Record, message: Inbound) -> None:
        """Apply one message of the group to its view."""
        self.view.apply(record.offset, record.timestamp_ms, message)


@dataclass
class StatusReader:
    """The groups of one Kafka cluster, and what is known of them."""

    bus: KafkaControlTopics
    settings: Settings
    groups: Collection[str]  # empty: every group there is
    followed: dict[str, FollowedTopic] = field(default_factory=dict)  # by group
    metrics: FollowedTopic | None = None

    async def run(self, show: Show, *, watch: bool) -> None:
        """Show every group once, or with `watch` every second until cancelled.

        Raises:
            ExternalError: Kafka does not answer, or there is no group.
        """
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(CATCH_UP_S):
                    await self._open(stack)
                    await self._read(whole=True)
            except TimeoutError as exc:
                raise ExternalError(f"the topics could not be read in {CATCH_UP_S:g} s") from exc
            show(self._statuses())
            while watch:
                await asyncio.sleep(REFRESH_S)
                await self._read(whole=False)
                show(self._statuses())

    async def _open(self, stack: AsyncExitStack) -> None:
        for group in self.groups or await _existing_groups(self.settings):
            topic = f"{group}{METADATA_SUFFIX}"
            if not await self.bus.partitions(topic):
                raise TopicMissing(f"there is no group {group} here: no topic {topic}")
            self.followed[group] = await self._follow_group(stack, topic)
        if not self.followed:
            raise TopicMissing(f"there is no group here: no topic named GROUP{METADATA_SUFFIX}")
        topic = self.settings.monitor.topic
        if await self.bus.partitions(topic):  # without a monitor there are no loads
            self.metrics = await self._follow_metrics(stack, topic)

    async def _follow_group(self, stack: AsyncExitStack, topic: str) -> FollowedTopic:
        reader, end = await read_history(self.bus, topic)
        stack.push_async_callback(reader.close)
        return FollowedTopic(reader, end, Decoder(wire.decode_inbound, history_end=end))

    async def _follow_metrics(self, stack: AsyncExitStack, topic: str) -> FollowedTopic:
        reader, end = await read_recent_measurements(self.bus, topic)
        stack.push_async_callback(reader.close)
        return FollowedTopic(reader, end, Decoder(wire.decode_measurement))

    async def _read(self, *, whole: bool) -> None:
        reads = [each.read(each.apply, whole=whole) for each in self.followed.values()]
        if self.metrics:
            reads.append(self.metrics.read(self._apply_measurement, whole=whole))
        await asyncio.gather(*reads)

    def _apply_measurement(self, _: Record, measurement: Measurement) -> None:
        for followed in self.followed.values():
            followed.view.apply_measurement(measurement)

    def _statuses(self) -> list[Status]:
        now_ms = wall_ms()
        found = []
        for group, followed in sorted(self.followed.items()):
            topics = self.settings.landed_topics if group == self.settings.group else None
            found.append(status(group, followed.view, now_ms, topics))
        # A topic of another system may have the same suffix.
        return [each for each in found if self.groups or each.state != "empty"]


async def _existing_groups(settings: Settings) -> list[str]:
    async with ClusterClient(settings.kafka) as cluster:
        names = (await cluster.topics(None)).leaders
    groups = (name for name in names if name.endswith(METADATA_SUFFIX))
    return sorted(name.removesuffix(METADATA_SUFFIX) for name in groups)
