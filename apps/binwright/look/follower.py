"""Keep views of groups up to date from their topics: for page, status, demo, up and approve."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from binwright.group.config import GroupConfig
from binwright.group.fold import StateRecord
from binwright.kafka.control_records import (
    CONTROL_TOPIC_UNREACHABLE,
    CONTROLLER_PARTITION,
    METRICS_PARTITION,
    Decoder,
)
from binwright.look.group_view import GroupView
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable, ExternalError, TopicMissing
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.metrics import Measurement, decode_measurement
from binwright.protocol.orders import decode_order
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record
from binwright.protocol.selection import METADATA_SUFFIX, ORDERS_SUFFIX
from binwright.runtime.logs import log
from binwright.runtime.run import must_not_end

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
    """Open a group's metadata topic, or its orders topic, at the beginning.

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
    log(CONTROL_TOPIC_UNREACHABLE, topic=topic, reason=str(outage))
    await asyncio.sleep(RETRY_S)


def _ignore(_: Any) -> None:
    pass


Opened = tuple[Reader, int]
"""A reader to be closed, and the end of the topic when it was opened."""


@dataclass(slots=True)
class _FollowedTopic:
    """One topic, up to where it was read; it may not exist yet."""

    name: str
    bus: ControlTopics
    open_at: Callable[[], Awaitable[Opened]]
    apply: Callable[[Record, Any], None]
    on_outage: OnOutage
    decode: wire.Decode[Any]
    without_superseded: bool = False  # reports, which are of metadata topics only
    reader: Reader | None = None
    end: int = 0  # of the topic, when it was opened
    decoder: Decoder[Any] | None = None

    async def open(self) -> None:
        """Open it; raise `TopicMissing` and `BrokerUnavailable`."""
        self.reader, self.end = await self.open_at()
        history_end = self.end if self.without_superseded else 0
        self.decoder = Decoder(self.decode, history_end=history_end)

    async def open_if_there(self) -> bool:
        """Open it, unless it is open; return whether it is."""
        if self.reader is None and await self.bus.partitions(self.name):
            await self.open()
        return self.reader is not None

    async def read(self, timeout_s: float) -> None:
        """Apply what is new, within `timeout_s`; nothing is of a topic that was not there."""
        if self.reader is None or self.decoder is None:
            return
        try:
            records = await self.reader.read(timeout_s)
        except BrokerUnavailable as exc:
            await self.on_outage(self.name, exc)
            return
        for record, message in self.decoder.decode(records):
            self.apply(record, message)

    async def catch_up(self) -> None:
        """Apply all records up to the end as of the opening."""
        while self.reader is not None and self.reader.position < self.end:
            await self.read(READ_S)

    async def follow(self) -> None:
        """Apply what is new, for ever, once the topic exists."""
        while self.reader is None:
            try:
                if not await self.open_if_there():
                    await asyncio.sleep(RETRY_S)  # Kafka tells nobody of new topics
            except BrokerUnavailable as exc:
                await self.on_outage(self.name, exc)
        while True:
            await self.read(READ_S)

    async def close(self) -> None:
        """Close the reader."""
        if self.reader is not None:
            await self.reader.close()


@dataclass(slots=True)
class GroupFollower:
    """Views of groups, folded from their metadata and orders topics and the metrics topic.

    A metadata topic is read from its beginning without superseded reports, an orders topic from its
    beginning, the metrics topic from its last `RECENT` measurements, while this is entered. Before
    the latter two exist, there are no orders, and no rates.

    Attributes:
        bus: Of the topics.
        views: By metadata topic.
        metrics_topic: Of the rates; None: they are not needed.
        on_message: Called with each message of a group's topics, once it is applied.
        on_measurement: Called with each measurement, once it is applied.
        on_outage: What happens while Kafka is away.
        until_ms: Wall clock: what came later is left out; None: nothing is.
        measurements: Read from the end of the metrics topic.
    """

    bus: ControlTopics
    views: Mapping[str, GroupView]
    metrics_topic: str | None = None
    on_message: Callable[[StateRecord], None] = _ignore
    on_measurement: Callable[[Measurement], None] = _ignore
    on_outage: OnOutage = raise_outage
    until_ms: int | None = None
    measurements: int = RECENT
    _groups: list[_FollowedTopic] = field(default_factory=list)
    _others: list[_FollowedTopic] = field(default_factory=list)  # they may not exist

    async def __aenter__(self) -> Self:
        """Open the topics; raise `TopicMissing` for a metadata topic, and `BrokerUnavailable`."""
        for topic, view in self.views.items():
            self._follow(topic, view)
        if (metrics := self.metrics_topic) is not None:
            recent = partial(read_recent_measurements, self.bus, metrics, self.measurements)
            self._others.append(
                self._topic(metrics, recent, decode_measurement, self._apply_measurement)
            )
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self.__aexit__)
            for each in self._groups:
                await each.open()
            closing.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the readers."""
        await asyncio.gather(*(topic.close() for topic in self._topics()))

    async def catch_up(self) -> None:
        """Read all topics up to their ends as of their opening."""
        await asyncio.gather(*(topic.open_if_there() for topic in self._others))
        # First what a group reads: of the measurements some are of other groups' topics.
        await asyncio.gather(*(topic.catch_up() for topic in self._groups))
        await asyncio.gather(*(topic.catch_up() for topic in self._others))

    async def read(self, timeout_s: float) -> None:
        """Read what is new in all topics, within `timeout_s`."""
        await asyncio.gather(*(topic.read(timeout_s) for topic in self._topics()))

    async def follow(self) -> None:
        """Read all topics for ever, those that are not there once they are."""
        async with asyncio.TaskGroup() as tasks:
            for topic in self._topics():
                tasks.create_task(must_not_end(topic.follow()))

    def _follow(self, metadata: str, view: GroupView) -> None:
        orders_topic = metadata.removesuffix(METADATA_SUFFIX) + ORDERS_SUFFIX
        group = self._topic(
            metadata,
            partial(read_history, self.bus, metadata),
            decode_inbound,
            self._apply_to(view),
        )
        group.without_superseded = self.until_ms is None  # a later report hides none
        self._groups.append(group)
        history = partial(read_history, self.bus, orders_topic)
        self._others.append(self._topic(orders_topic, history, decode_order, self._apply_to(view)))

    def _topic(
        self,
        name: str,
        open_at: Callable[[], Awaitable[Opened]],
        decode: wire.Decode[Any],
        apply: Callable[[Record, Any], None],
    ) -> _FollowedTopic:
        return _FollowedTopic(name, self.bus, open_at, apply, self.on_outage, decode)

    def _topics(self) -> list[_FollowedTopic]:
        return [*self._groups, *self._others]

    def _apply_to(self, view: GroupView) -> Callable[[Record, StateRecord], None]:
        def apply(record: Record, message: StateRecord) -> None:
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


@asynccontextmanager
async def followed(
    connect: Connect, group: str, on_message: Callable[[StateRecord], None] = _ignore
) -> AsyncIterator[tuple[GroupFollower, GroupView]]:
    """Open a bus and follow a group for the block; `on_message` is as of `GroupFollower`.

    Raises:
        TopicMissing: There is no such group.
        BrokerUnavailable: Kafka does not answer.
    """
    view = GroupView()
    async with connect() as bus:
        topic = await group_topic(bus, group)
        async with GroupFollower(bus, {topic: view}, on_message=on_message) as follower:
            yield follower, view


async def read_group(
    bus: ControlTopics,
    group: str,
    metrics_topic: str | None = None,
    *,
    until_ms: int | None = None,
    measurements: int = RECENT,
    config: GroupConfig | None = None,
) -> GroupView:
    """Return a group as its topics have it by now, or by `until_ms` (see `GroupFollower`).

    Args:
        bus: Of its topics.
        group: Its name.
        metrics_topic: Of the rates; None: they are not needed.
        until_ms: Wall clock.
        measurements: Read from the end of the metrics topic.
        config: By its settings; None: they are not known.

    Raises:
        ExternalError: Kafka does not answer in `CATCH_UP_S`, or there is no such group.
    """
    view = GroupView.of(config)
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
