"""Keep views of groups up to date from their topics: for page, status, demo, up and approve."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

import structlog

from binwright.kafka.control_records import CONTROLLER_PARTITION, METRICS_PARTITION, Decoder
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable, ExternalError, TopicMissing
from binwright.protocol.measurements import Measurement
from binwright.protocol.messages import Inbound
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record
from binwright.protocol.selection import METADATA_SUFFIX
from binwright.runtime.run import must_not_end
from binwright.views.group_view import GroupView

log = structlog.get_logger()

RECENT = 500
"""Measurements read from the end of the metrics topic: enough for the latest of every topic."""

READ_S, RETRY_S, CATCH_UP_S = 1.0, 1.0, 60.0

Connect = Callable[[], AbstractAsyncContextManager[ControlTopics]]
"""Opens a bus."""

OnOutage = Callable[[str, BrokerUnavailable], Awaitable[None]]
"""Called with the topic that cannot be read; returns when it is to be read again, or raises."""


async def group_topic(bus: ControlTopics, group: str) -> str:
    """Return the metadata topic of a group.

    Raises:
        TopicMissing: There is no such group.
        BrokerUnavailable: Kafka does not answer.
    """
    topic = f"{group}{METADATA_SUFFIX}"
    if not await bus.partitions(topic):
        raise TopicMissing(f"there is no group {group} here: no topic {topic}")
    return topic


async def read_history(bus: ControlTopics, topic: str) -> tuple[Reader, int]:
    """Open a group's metadata topic at its beginning.

    Returns:
        A reader to be closed, and the end of the topic by now: the `history_end` of a `Decoder`.

    Raises:
        TopicMissing: The topic does not exist.
        BrokerUnavailable: Kafka does not answer.
    """
    end = await bus.end(topic, CONTROLLER_PARTITION)
    return await bus.reader(topic, CONTROLLER_PARTITION, 0), end


async def read_recent_measurements(
    bus: ControlTopics, topic: str, count: int = RECENT
) -> tuple[Reader, int]:
    """Open the metrics topic at its last `count` measurements.

    Returns:
        A reader to be closed, and the end of the topic by now.

    Raises:
        TopicMissing: The topic does not exist.
        BrokerUnavailable: Kafka does not answer.
    """
    end = await bus.end(topic, METRICS_PARTITION)
    return await bus.reader(topic, METRICS_PARTITION, max(0, end - count)), end


async def raise_outage(_: str, outage: BrokerUnavailable) -> None:
    """Raise the error: for those who read a topic once."""
    raise outage


async def log_outage(topic: str, outage: BrokerUnavailable) -> None:
    """Log the error and wait a little: for those who follow a topic for ever."""
    log.warning("control_topic.unreachable", topic=topic, reason=str(outage))
    await asyncio.sleep(RETRY_S)


def _ignore(_: Any) -> None:
    pass


@dataclass(slots=True)
class _FollowedTopic:
    """One topic, up to where it was read."""

    name: str
    reader: Reader
    end: int  # of the topic, when it was opened
    decoder: Decoder[Any]
    apply: Callable[[Record, Any], None]
    on_outage: OnOutage

    async def read(self, timeout_s: float) -> None:
        """Apply what is new, within `timeout_s`."""
        try:
            records = await self.reader.read(timeout_s)
        except BrokerUnavailable as exc:
            await self.on_outage(self.name, exc)
            return
        for record, message in self.decoder.decode(records):
            self.apply(record, message)

    async def catch_up(self) -> None:
        """Apply all records up to `end`."""
        while self.reader.position < self.end:
            await self.read(READ_S)

    async def follow(self) -> None:
        """Apply what is new, for ever."""
        while True:
            await self.read(READ_S)


@dataclass(slots=True)
class GroupFollower:
    """Views of groups, folded from their metadata topics and the metrics topic, while entered.

    A metadata topic is read from its beginning without superseded reports, the metrics topic from
    its last `RECENT` measurements. While that does not exist, there are no rates.

    Attributes:
        bus: Of the topics.
        views: By metadata topic.
        metrics_topic: Of the rates; None: they are not needed.
        on_message: Called with each message of a metadata topic, once it is applied.
        on_measurement: Called with each measurement, once it is applied.
        on_outage: What happens while Kafka is away.
        until_ms: Wall clock: what came later is left out; None: nothing is.
        measurements: Read from the end of the metrics topic.
    """

    bus: ControlTopics
    views: Mapping[str, GroupView]
    metrics_topic: str | None = None
    on_message: Callable[[Inbound], None] = _ignore
    on_measurement: Callable[[Measurement], None] = _ignore
    on_outage: OnOutage = raise_outage
    until_ms: int | None = None
    measurements: int = RECENT
    _groups: list[_FollowedTopic] = field(default_factory=list)
    _metrics: _FollowedTopic | None = None
    _readers: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        """Open the topics; raise `TopicMissing` for a metadata topic, and `BrokerUnavailable`."""
        async with AsyncExitStack() as readers:
            for topic, view in self.views.items():
                reader, end = await read_history(self.bus, topic)
                readers.push_async_callback(reader.close)
                apply = self._apply_to(view)
                history_end = end if self.until_ms is None else 0  # a later report hides none
                decoder = Decoder(wire.decode_inbound, history_end=history_end)
                self._groups.append(
                    _FollowedTopic(topic, reader, end, decoder, apply, self.on_outage)
                )
            self._readers = readers.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the readers."""
        await self._readers.aclose()

    async def catch_up(self) -> None:
        """Read all topics up to their ends as of their opening."""
        await self._open_metrics()
        await asyncio.gather(*(topic.catch_up() for topic in self._topics()))

    async def read(self, timeout_s: float) -> None:
        """Read what is new in all topics, within `timeout_s`."""
        await asyncio.gather(*(topic.read(timeout_s) for topic in self._topics()))

    async def follow(self) -> None:
        """Read all topics for ever, the metrics topic once it exists."""
        async with asyncio.TaskGroup() as tasks:
            for group in self._groups:
                tasks.create_task(must_not_end(group.follow()))
            if self.metrics_topic is not None:
                tasks.create_task(must_not_end(self._follow_metrics(self.metrics_topic)))

    def _topics(self) -> list[_FollowedTopic]:
        return [*self._groups, *([self._metrics] if self._metrics else [])]

    async def _follow_metrics(self, topic: str) -> None:
        while self._metrics is None:
            try:
                if not await self._open_metrics():
                    await asyncio.sleep(RETRY_S)  # Kafka tells nobody of new topics
            except BrokerUnavailable as exc:
                await self.on_outage(topic, exc)
        await self._metrics.follow()

    async def _open_metrics(self) -> bool:
        """Open the metrics topic; False: it does not exist."""
        topic = self.metrics_topic
        if topic is None or self._metrics is not None:
            return True
        if not await self.bus.partitions(topic):
            return False
        reader, end = await read_recent_measurements(self.bus, topic, self.measurements)
        self._readers.push_async_callback(reader.close)
        decoder = Decoder(wire.decode_measurement)
        self._metrics = _FollowedTopic(
            topic, reader, end, decoder, self._apply_measurement, self.on_outage
        )
        return True

    def _apply_to(self, view: GroupView) -> Callable[[Record, Inbound], None]:
        def apply(record: Record, message: Inbound) -> None:
            if self.until_ms is not None and record.timestamp_ms > self.until_ms:
                return
            view.apply(record.offset, record.timestamp_ms, message)
            self.on_message(message)

        return apply

    def _apply_measurement(self, _: Record, measurement: Measurement) -> None:
        if self.until_ms is not None and measurement.at_ms > self.until_ms:
            return
        for view in self.views.values():
            view.apply_measurement(measurement)
        self.on_measurement(measurement)


async def read_group(
    bus: ControlTopics,
    group: str,
    metrics_topic: str | None = None,
    *,
    until_ms: int | None = None,
    measurements: int = RECENT,
) -> GroupView:
    """Return a group as its topics have it by now, or by `until_ms` (see `GroupFollower`).

    Raises:
        ExternalError: Kafka does not answer in `CATCH_UP_S`, or there is no such group.
    """
    view = GroupView()
    try:
        async with (
            asyncio.timeout(CATCH_UP_S),
            GroupFollower(
                bus,
                {await group_topic(bus, group): view},
                metrics_topic,
                until_ms=until_ms,
                measurements=measurements,
            ) as follower,
        ):
            await follower.catch_up()
    except TimeoutError as exc:
        raise ExternalError(
            f"the topics of group {group} could not be read in {CATCH_UP_S:g} s"
        ) from exc
    return view


async def watch_group(
    bus: ControlTopics, metadata_topic: str, metrics_topic: str, view: GroupView
) -> None:
    """Keep `view` up to date until cancelled, through outages.

    Raises:
        TopicMissing: The metadata topic does not exist.
        BrokerUnavailable: Kafka does not answer at first.
    """
    views = {metadata_topic: view}
    async with GroupFollower(bus, views, metrics_topic, on_outage=log_outage) as follower:
        await follower.follow()
